"""Launches on one host begin apart where the profile says so: real launches, and the times that the host recorded."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.fleet.rig import DEADLINE, profile, reach, running
from tui.fleet.api import Kill, Launch, Relaunch
from tui.fleet.fleet import Fleet
from tui.fleet.policy import Limits
from tui.profile.model import Profile
from tui.sglang.model import Phase

SECONDS = 0.5


def staggered(folder: Path, count: int, seconds: float = SECONDS, **keys: Any) -> Profile:
    rig = profile(folder, ["plain"] * count, **keys)
    host = rig.hosts[0].model_copy(update={"stagger": seconds})
    servers = tuple(server.model_copy(update={"host": host}) for server in rig.servers)
    return rig.model_copy(update={"hosts": (host,), "servers": servers})


def begun(fleet: Fleet) -> list[float]:
    """When each server's run began, by the host's clock, in the profile's order."""
    return [state.run.started for state in fleet.states() if state.run]


def apart(times: list[float]) -> bool:
    return all(later - sooner >= SECONDS for sooner, later in pairwise(times))


async def test_launches_at_once_begin_one_after_the_other(tmp_path: Path) -> None:
    async with running(staggered(tmp_path, 3), tmp_path) as fleet:
        seen: set[str] = set()
        fleet.listeners.append(lambda s, _b, _e: seen.add(s.server.name) if s.state.launch_at else None)
        done = await asyncio.gather(*(fleet.act(Launch(name)) for name in fleet.supervisors))
        assert all(outcome.ok for outcome in done), done
        assert len(begun(fleet)) == 3 and apart(begun(fleet)), begun(fleet)
        assert seen == {"gpu1", "gpu2"}, "those that wait say until when"
        assert all(state.launch_at is None for state in fleet.states())
        again = await asyncio.gather(*(fleet.act(Relaunch(name)) for name in fleet.supervisors))
        assert all(outcome.ok for outcome in again), again
        assert apart(sorted(begun(fleet))), begun(fleet)


async def test_restarts_take_their_turns_too(tmp_path: Path) -> None:
    rig = staggered(tmp_path, 2, restart="on-failure", command=["/bin/sh", "-c", "exit 3"])
    limits = Limits(first=0.01, longest=0.01, restarts=1, poll=0.2)
    async with running(rig, tmp_path, restarts=True, limits=limits) as fleet:
        await asyncio.gather(*(fleet.act(Launch(name)) for name in fleet.supervisors))
        over = [s.restarts for s in fleet.states()]
        assert await fleet.until(lambda: all("given up" in s.restarts.why for s in fleet.states()), DEADLINE), over
        records = await fleet.host_of("gpu0").link.runs("rig")
        assert len(records) == 4 and apart(sorted(r.started for r in records)), records


async def test_a_launch_that_waits_its_turn_can_be_given_up(tmp_path: Path) -> None:
    async with running(staggered(tmp_path, 2, seconds=600.0), tmp_path) as fleet:
        await fleet.act(Launch("gpu0"))
        waiting = asyncio.create_task(fleet.act(Launch("gpu1")))
        assert await fleet.until(lambda: fleet.supervisors["gpu1"].state.launch_at is not None, DEADLINE)
        assert (await fleet.act(Kill("gpu1"))).ok
        outcome = await waiting
        assert not outcome.ok and "waited its turn" in outcome.message
        assert fleet.supervisors["gpu1"].state.launch_at is None
        await reach(fleet, "gpu0", Phase.READY)


async def test_a_refused_launch_costs_no_turn(tmp_path: Path) -> None:
    rig = staggered(tmp_path, 2, seconds=600.0)
    missing = rig.servers[0].model_copy(update={"cwd": str(tmp_path / "nowhere")})
    async with running(rig.model_copy(update={"servers": (missing, rig.servers[1])}), tmp_path) as fleet:
        refused, launched = await asyncio.gather(*(fleet.act(Launch(name)) for name in fleet.supervisors))
        assert not refused.ok and launched.ok, launched.message
