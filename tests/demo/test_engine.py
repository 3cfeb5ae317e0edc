"""The model of the engine: its speed is the first users', and its caches bound it."""

from __future__ import annotations

import random

import pytest

from tui.demo.batch_lines import Batch
from tui.demo.engine import Engine, Limits, Request

HICACHE = Limits(tokens=147_456, slots=48, running=9)
MTP = Limits(tokens=131_072, slots=24, running=4, draft_tokens=4)


def run(limits: Limits, requests: list[Request], steps: int) -> tuple[list[Batch], Engine]:
    """The decode reports of so many steps on a clock that follows the engine."""
    engine = Engine(limits, random.Random(0))
    for request in requests:
        engine.add(request)
    now, reports = 100.0, []
    for _ in range(steps):
        step = engine.step(now)
        now += step.seconds
        if step.decode:
            reports.append(step.decode)
        assert len(engine.running) <= limits.running
        assert engine.used <= limits.tokens
        assert engine.states <= limits.slots
    return reports, engine


def many(count: int) -> list[Request]:
    return [Request(f"r{index}", 100, 100_000 // count) for index in range(count)]


@pytest.mark.parametrize(
    ("limits", "count", "low", "high"),
    [(HICACHE, 1, 60, 64), (HICACHE, 48, 400, 418), (MTP, 1, 60, 80), (MTP, 6, 215, 275)],
)
def test_throughput_is_the_first_users(limits: Limits, count: int, low: float, high: float) -> None:
    reports, _ = run(limits, many(count), 1000)
    steady = [report.rate for report in reports[1:]]
    assert low <= sum(steady) / len(steady) <= high
    assert max(report.running for report in reports) == min(count, limits.running)


def test_accept_len_only_with_speculation() -> None:
    plain, _ = run(HICACHE, many(2), 200)
    drafted, _ = run(MTP, many(2), 200)
    assert all(report.accept_len == 0 for report in plain)
    assert all(1.5 < report.accept_len < 4 for report in drafted)


def test_requests_end_after_as_many_tokens_as_were_wanted() -> None:
    engine = Engine(MTP, random.Random(1))
    engine.add(Request("a", 10, 37))
    produced, ended = 0, 0
    while not engine.idle:
        for _, count, finished in engine.step(0.0).out:
            produced += count
            ended += finished
    assert (produced, ended) == (37, 1)


def test_a_long_prompt_is_prefilled_in_chunks() -> None:
    engine = Engine(HICACHE, random.Random(1))
    engine.add(Request("a", 20_000, 5))
    parts = [engine.step(0.0).prefill for _ in range(3)]
    assert [part.new_tokens for part in parts if part] == [8192, 8192, 20_000 - 2 * 8192]
    assert [part.pending for part in parts if part] == [20_000 - 8192, 20_000 - 2 * 8192, 0]


def test_a_prompt_that_begins_alike_is_cached() -> None:
    engine = Engine(HICACHE, random.Random(1))
    blocks = tuple(range(10))
    engine.add(Request("a", 700, 1, blocks))
    first = engine.step(0.0).prefill
    engine.add(Request("b", 800, 1, (*blocks, 99, 98)))
    second = engine.step(0.0).prefill
    assert first and second
    assert (first.cached_tokens, second.cached_tokens, second.new_tokens) == (0, 640, 160)


def test_an_aborted_request_leaves_queue_and_batch() -> None:
    engine = Engine(MTP, random.Random(1))
    for request in many(6):
        engine.add(request)
    for _ in range(8):
        engine.step(0.0)
    for request in many(6):
        engine.abort(request.rid)
    assert engine.idle
