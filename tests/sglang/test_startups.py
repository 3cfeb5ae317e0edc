"""Every start-up of ``tests/data/startups.txt`` is read as an expert reads it."""

from __future__ import annotations

import pytest

from tests.sglang.startups import Startup, startups
from tui.sglang import verdict
from tui.sglang.events import LogRead
from tui.sglang.facts import read
from tui.sglang.model import ServerInfo
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

ALL = startups()
each = pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])


def state_of(case: Startup) -> ServerState:
    return reduce(ServerState(ServerInfo(case.name)), LogRead(0.0, read([case.log])))


@each
def test_phase_and_stage(case: Startup) -> None:
    state = state_of(case)
    assert (verdict.phase(state), verdict.stage(state)) == (case.facts["phase"], case.facts["stage"])
    assert state.log.missing_ranks == case.missing
    if case.reached is not None:
        assert [span.stage for span in state.log.stages] == case.reached


@each
def test_pools(case: Startup) -> None:
    if case.pools or case.reached is not None:
        assert list(state_of(case).log.pools) == case.pools


@each
def test_numbers(case: Startup) -> None:
    log = state_of(case).log
    assert log.max_total_num_tokens == case.number("tokens")
    assert log.max_running_requests == case.number("running")
    assert log.context_len == case.number("context")
    assert log.storage == case.facts.get("storage")
