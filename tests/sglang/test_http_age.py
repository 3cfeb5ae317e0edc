"""Figures by HTTP carry the host's local time: their age is right in every zone, and outlasts the time between two."""

from __future__ import annotations

import pytest

from tui.fleet import probe
from tui.sglang import verdict
from tui.sglang.events import HttpRead, Launched, Watched
from tui.sglang.model import RunInfo, Sample, ServerInfo
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

T = 1_785_418_500.0


@pytest.mark.parametrize("offset", [0, 7200, -18000])
def test_age(offset: int) -> None:
    state = ServerState(ServerInfo("silent", port=30000))
    run = RunInfo("r", 1, T, (), "/log", utc_offset=offset)
    answer = HttpRead(T + 5, True, Sample(T + 5 + offset, generate=5.0, prefill=7.0))
    for event in (Launched(T, run), Watched(T, alive=True), Watched(T, listening="own"), answer):
        state = reduce(state, event)
    late = T + 5 + 2 * probe.PROBE_SECONDS
    assert verdict.throughput(state, late) == verdict.Throughput(5.0, 7.0)
    assert verdict.throughput(state, T + 100) == verdict.Throughput(0.0, 0.0, stale=True)


def test_it_is_as_rare_as_it_is_taken_for() -> None:
    assert verdict.HTTP_INTERVAL == probe.PROBE_SECONDS
