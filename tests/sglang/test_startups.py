"""Every start-up of ``tests/data/startups.txt`` is read as an expert reads it."""

from __future__ import annotations

import random
import re
from collections import defaultdict

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


def shuffled(case: Startup, seed: int) -> bytes:
    """The same log with the ranks' lines in another order: each rank's own order and the main process's stay."""
    choose, lines = random.Random(seed), []
    waiting: dict[str, list[str]] = defaultdict(list)
    for line in [*case.lines, ""]:
        rank = re.match(r"\[[\d :-]{19} ([A-Z_]+\d.*?)\]", line)
        if rank:
            waiting[rank[1]].append(line)
            continue
        while waiting:
            name = choose.choice(sorted(waiting))
            lines.append(waiting[name].pop(0))
            if not waiting[name]:
                del waiting[name]
        lines.append(line)
    return "\n".join(lines).encode()


@each
def test_the_order_in_which_ranks_write_does_not_matter(case: Startup) -> None:
    plain = state_of(case).log
    for seed in range(5):
        log = read([shuffled(case, seed)])
        assert (log.stage, log.missing_ranks) == (plain.stage, plain.missing_ranks)
        assert sorted(map(str, log.pools)) == sorted(map(str, plain.pools))
