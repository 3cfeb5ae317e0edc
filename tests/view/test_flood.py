"""Logs that grow faster than anybody reads, and many servers that change all the time: nothing is lost on the way to
the screen, keys act in order, and what matters is seen at once."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.view import sources
from tests.view.sources import NOW, FixedSource, decode_line
from tests.view.test_app import running, until
from tests.view.test_log_reader import reader, screen
from tui.sglang.state import ServerState
from tui.view import pace
from tui.view.draw.row import Row, Span
from tui.view.glances import AT_ONCE, STEADY, Glances
from tui.view.log.filters import FILTERS, Choice
from tui.view.log.pane import LogPane
from tui.view.log.reader import LogReader
from tui.view.pace import FAST, SLOW, Pace
from tui.view.sheet import _changed
from tui.view.snapshot import screen_text


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_end_of_a_flood_is_what_a_fresh_reader_shows(tmp_path: Path, wrapped: bool) -> None:
    """However much was written between two looks, whole lines or not, with hidden ones between."""
    chance = random.Random(3)
    path = tmp_path / "flood.log"
    path.touch()
    log = reader(path)
    log.wrapped = wrapped
    for n in range(60):
        lines = [
            'INFO:     127.0.0.1:4000 - "GET /health HTTP/1.1" 200 OK' if chance.random() < 0.3 else
            f"line {n}.{k} " + "x" * chance.choice((0, 40, 700)) for k in range(chance.choice((0, 1, 7, 400)))
        ]  # fmt: skip
        with path.open("a") as file:
            file.write("".join(f"{line}\n" for line in lines) + chance.choice(("", "half a ", "\r 50%|")))
        log.look()
        fresh = LogReader(path)
        fresh.wrapped = wrapped
        fresh.draw(log.columns, log.rows)
        assert screen(log) == screen(fresh), n


def test_a_filter_finds_its_lines_in_a_flood_of_batches(tmp_path: Path) -> None:
    path = tmp_path / "flood.log"
    path.touch()
    log = reader(path)
    log.choose(Choice(next(one for one in FILTERS if one.name == "problems")))
    for n in range(5):
        with path.open("a") as file:
            file.write("".join(decode_line(k, 1.0) + "\n" for k in range(4000)))
            file.write(f"ValueError: number {n}\r\n")
            file.write("".join(decode_line(k, 1.0) + "\r" for k in range(3)) + f"RuntimeError: glued {n}\n")
        while log.look() and not log.window.at_end:
            pass
    assert screen(log)[-2:] == ["ValueError: number 4", "RuntimeError: glued 4"]
    log.home()
    while log.look():
        screen(log)
    assert screen(log)[:2] == ["ValueError: number 0", "RuntimeError: glued 0"]


async def test_keys_during_a_flood_act_in_order_and_its_last_line_is_shown(tmp_path: Path) -> None:
    source = sources.fleet(tmp_path)
    chance = random.Random(4)
    async with running(source, frozen=False) as (app, pilot):
        at = 0
        for step in range(40):
            for path in set(source.logs.values()):
                with path.open("a") as file:
                    file.write("".join(decode_line(n, float(step)) + "\n" for n in range(300)))
            key, by = chance.choice((("j", 1), ("k", -1)))
            await pilot.press(key)
            at = max(0, min(3, at + by))
            assert app.selected == f"gpu{at}"
        for server, path in source.logs.items():
            with path.open("a") as file:
                file.write(f"the last line of {server}\n")
        await until(lambda: f"the last line of gpu{at}" in screen_text(app), pilot)
        await pilot.press("w")
        await until(lambda: all(f"the last line of {server}" in screen_text(app) for server in source.logs), pilot)


async def test_a_log_that_stands_still_stays_in_a_flood_and_says_so_at_once(source: FixedSource) -> None:
    async with running(source, frozen=False) as (app, pilot):
        await pilot.press("pageup")
        assert "End follows" in screen_text(app)
        place = app.query_one(LogPane).reader
        assert place is not None
        before = place.place()
        with source.logs["gpu0"].open("a") as file:
            file.write((decode_line(1, 1.0) + "\n") * 5000)
        await until(lambda: place.file.size > 500_000, pilot)
        assert place.place() == before
        await pilot.press("end")
        assert "following" in screen_text(app)


def test_only_rows_that_are_different_are_drawn_again() -> None:
    before: list[Row] = [[Span(text)] for text in "abcdef"]
    after: list[Row] = [[Span(text)] for text in "abXYeZ"]
    assert _changed(before, after, 6) == [(2, 4), (5, 6)]
    assert _changed(before, before[:4], 6) == [(4, 6)]
    assert _changed(before, [list(row) for row in before], 6) == []


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_key_holds_up_frames_and_hammered_keys_do_not_stop_them() -> None:
    clock = Clock()
    when = Pace(clock, lambda: 0.0)
    assert when.due(SLOW)
    clock.now += 0.11
    when.key()
    assert not when.due(SLOW)
    clock.now += pace.AFTER_KEY
    assert when.due(SLOW)
    drawn = 0
    for _ in range(100):
        clock.now += 0.03
        when.key()
        drawn += when.due(SLOW)
    assert 4 <= drawn <= 7


def test_frames_that_cost_much_come_seldom() -> None:
    clock, spent = Clock(), Clock()
    when = Pace(clock, spent)
    assert when.due(FAST)
    when.begin()
    clock.now, spent.now = clock.now + 0.1, spent.now + 0.1
    when.painted()
    clock.now += 0.1
    assert not when.due(FAST)
    clock.now += 0.15
    assert when.due(FAST)


def served(state: ServerState, rate: float) -> ServerState:
    assert state.log.latest is not None
    return replace(state, log=replace(state.log, latest=replace(state.log.latest, generate=rate)))


def test_servers_that_serve_on_are_looked_at_in_turn() -> None:
    clock, many = Clock(), [sources.ready(f"gpu{n:02}", n, 400.0) for n in range(40)]
    glances = Glances(clock)
    glances.look(many, NOW, "gpu00")
    assert not glances.late
    newer = [served(state, 7.0) for state in many]
    told = glances.look(newer, NOW, "gpu00")
    assert [one.name for one in told if one.state in newer] == ["gpu00"] and glances.late
    clock.now += STEADY
    seen = []
    while glances.late:
        told = glances.look(newer, NOW, "gpu00")
        seen.append(sum(one.state.log is state.log for one, state in zip(told, newer, strict=True)))
    assert seen[0] <= AT_ONCE + 1 and seen[-1] == len(many) and seen == sorted(seen)


def test_what_is_no_figure_is_seen_at_once() -> None:
    state = sources.ready("gpu0", 0, 400.0)
    changes = (
        replace(state, unreachable_since=NOW), replace(state, alive=False), replace(state, stop_asked=NOW),
        replace(state, log=replace(state.log, failure=sources.HOST_OOM)), replace(state, notes=("said",)),
        replace(state, log=replace(state.log, unhealthy=True)),
    )  # fmt: skip
    for changed in changes:
        glances = Glances(Clock())
        glances.look([state], NOW, None)
        (told,) = glances.look([changed], NOW, None)
        assert told.state is changed and not glances.late


async def test_what_is_as_it_was_is_not_drawn_again() -> None:
    source = FixedSource((sources.ready("gpu0", 0, 400.0),))
    async with running(source) as (app, pilot):
        await pilot.pause()
        app.look()
        assert not app.look()
        source.change("gpu0", notes=("something else",))
        assert app.look() and not app.look()
