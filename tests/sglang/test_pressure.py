"""Pools that stay full and queues that grow are said; what comes and goes is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.report.json import report
from tui.report.server import server_text
from tui.sglang.events import LogRead
from tui.sglang.facts import read
from tui.sglang.model import Sample, ServerInfo
from tui.sglang.pressure import pressure
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

CREEPING = Path(__file__).parents[1] / "data/corpus/022-running-token-usage-creeps-up.log"


def test_a_real_case_of_a_jam() -> None:
    state = reduce(ServerState(ServerInfo("jam")), LogRead(1.0, read([CREEPING.read_bytes()])))
    said = (
        "KV cache 96% full, and at least 95% for 11 s: requests wait for others to end",
        "queue grows: 3 → 41 requests in 11 s",
    )
    warnings = report(state, 1.0)["warnings"]
    assert isinstance(warnings, list) and tuple(warnings) == said
    text = server_text(state, 1.0, 200)
    assert all(each in text for each in said)


@pytest.mark.parametrize(
    ("usages", "queues", "words"),
    [
        ([0.5, 0.6, 0.7], [0, 0, 0], []),
        ([0.95, 0.99], [1, 1], []),  # too few to tell
        ([0.97, 0.5, 0.97, 0.99], [0, 0, 0, 0], []),
        ([0.97, 0.97, 0.99, 0.8], [0, 0, 0, 0], []),  # it was
        ([0.2, 0.97, 0.98, 1.0], [0, 0, 0, 0], ["KV cache 100% full, and at least 95% for 2 s"]),
        ([0.2] * 4, [9, 9, 9, 9], []),  # long, and stays so
        ([0.2] * 4, [1, 2, 3, 4], []),  # short
        ([0.2] * 4, [30, 4, 9, 12], ["queue grows: 4 → 12 requests in 2 s"]),
        ([0.2] * 4, [1, 5, 9, 7], []),
        ([], [], []),
    ],
)
def test_what_is_said(usages: list[float], queues: list[int], words: list[str]) -> None:
    series = [
        Sample(float(at), kv=kv, queued=queued) for at, (kv, queued) in enumerate(zip(usages, queues, strict=True))
    ]
    said = pressure(series)
    assert len(said) == len(words)
    assert all(text.startswith(word) for text, word in zip(said, words, strict=True))


def test_every_pool_and_what_is_long_ago() -> None:
    old = [Sample(float(at), mamba=1.0, swa=1.0) for at in range(3)]
    assert [text.split(" cache")[0] for text in pressure(old)] == ["Mamba", "sliding-window"]
    assert pressure([*old, Sample(500.0, kv=0.1)]) == ()
