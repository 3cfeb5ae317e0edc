"""Two sessions at one laptop, and two people at one server."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.fleet.rig import profile, reach, running, session
from tui.fleet.api import Launch, Outcome
from tui.host.connect import open_link
from tui.sglang.model import Phase


async def test_two_dashboards_share_a_spool(tmp_path: Path) -> None:
    """Both write the same bytes at the same places: the file is the host's log, byte for byte, and both read all."""
    rig = profile(tmp_path, ["hicache"])
    async with running(rig, tmp_path) as first:
        assert (await first.act(Launch("gpu0"))).ok
        async with session(rig, tmp_path) as second:
            await asyncio.gather(reach(first, "gpu0", Phase.READY), reach(second, "gpu0", Phase.READY))
            paths = [fleet.supervisors["gpu0"].log_path for fleet in (first, second)]
            assert paths[0] is not None and paths[0] == paths[1]
            run = first.supervisors["gpu0"].state.run
            assert run is not None
            link = open_link(rig.servers[0].host)
            try:
                await link.open()
                size = first.supervisors["gpu0"].state.log.size
                theirs = await link.read(run.run, 0, size)
            finally:
                await link.close()
            assert size > 1000 and (await asyncio.to_thread(paths[0].read_bytes))[:size] == theirs
            lines = [fleet.supervisors["gpu0"].state.log.pools for fleet in (first, second)]
            assert lines[0] and lines[0] == lines[1]


async def test_of_two_launches_at_once_one_wins_and_both_watch_it(tmp_path: Path) -> None:
    rig = profile(tmp_path, ["hicache"])
    async with running(rig, tmp_path) as first, session(rig, tmp_path) as second:
        told: list[Outcome] = await asyncio.gather(*(fleet.act(Launch("gpu0")) for fleet in (first, second)))
        assert all(outcome.ok for outcome in told)
        [late] = [outcome for outcome in told if outcome.details.get("already")]
        assert "already runs as pid" in late.message and "launched by" in late.message and " at 20" in late.message
        runs = {fleet.supervisors["gpu0"].state.run for fleet in (first, second)}
        assert len({run.run for run in runs if run}) == 1
