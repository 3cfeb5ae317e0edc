"""The fleet's promises, on real processes: launch, readiness, failures, adoption, relaunch, kill."""

from __future__ import annotations

import filecmp
import os
import signal
import socket
from pathlib import Path

from tests.fleet.rig import DEADLINE, profile, reach, running, session
from tui.fleet.api import Kill, Launch, Relaunch, SmokeTest
from tui.sglang import verdict
from tui.sglang.model import FailureKind, Phase, Stage


async def test_a_server_comes_to_life_and_quitting_leaves_it_alive(tmp_path: Path) -> None:
    rig = profile(tmp_path, ["hicache"])
    async with session(rig, tmp_path) as fleet:
        launched = await fleet.act(Launch("gpu0"))
        assert launched.ok, launched.message
        await reach(fleet, "gpu0", Phase.READY)
        state = fleet.supervisors["gpu0"].state
        assert state.listening == "own" and state.alive
        assert {(p.place, p.kind, p.gb) for p in state.log.pools if p.place == "host"} == {
            ("host", "KV", 150.00),
            ("host", "Mamba", 150.10),
        }
        first = state.run
    async with running(rig, tmp_path / "another machine") as again:
        state = again.supervisors["gpu0"].state
        assert verdict.phase(state) is Phase.READY, repr(state)
        assert first and state.run and state.run.run == first.run and state.run.adopted
        assert Stage.HOST_CACHE in [s.stage for s in verdict.stages(state)]
        relaunching = await again.act(Launch("gpu0"))
        assert relaunching.ok and relaunching.details["already"]
        done = await again.act(SmokeTest("gpu0"))
        assert done.ok and done.details["tokens"], done.message


async def test_kill_proves_that_nothing_is_left(tmp_path: Path) -> None:
    async with running(profile(tmp_path, ["plain"]), tmp_path) as fleet:
        await fleet.act(Launch("gpu0"))
        await reach(fleet, "gpu0", Phase.READY)
        killed = await fleet.act(Kill("gpu0"))
        assert killed.ok and killed.details["left"] == [] and killed.details["port_free"], killed.message
        await reach(fleet, "gpu0", Phase.STOPPED)
        again = await fleet.act(Kill("gpu0"))
        assert again.ok and "nothing left" in again.message


async def test_relaunch_is_a_new_run(tmp_path: Path) -> None:
    async with running(profile(tmp_path, ["plain"]), tmp_path) as fleet:
        await fleet.act(Launch("gpu0"))
        await reach(fleet, "gpu0", Phase.READY)
        before = fleet.supervisors["gpu0"].state.run
        done = await fleet.act(Relaunch("gpu0"))
        assert done.ok and "nothing left; gpu0 launched" in done.message, done.message
        await reach(fleet, "gpu0", Phase.READY)
        state = fleet.supervisors["gpu0"].state
        assert before and state.run and state.run.run != before.run
        assert state.previous_stages, "the stages of the run before are there to compare with"


async def test_too_little_host_memory_is_told_with_the_line(tmp_path: Path) -> None:
    async with running(profile(tmp_path, ["host-memory"]), tmp_path) as fleet:
        await fleet.act(Launch("gpu0"))
        await reach(fleet, "gpu0", Phase.FAILED)
        assert await fleet.until(lambda: fleet.supervisors["gpu0"].state.exit is not None, DEADLINE)
        failure = verdict.failure(fleet.supervisors["gpu0"].state)
        assert failure and failure.kind is FailureKind.OOM_HOST_HICACHE
        assert "Requesting 150.10 GB" in failure.line and failure.line_number > 0


async def test_a_silent_death_is_a_failure(tmp_path: Path) -> None:
    async with running(profile(tmp_path, ["plain"]), tmp_path) as fleet:
        await fleet.act(Launch("gpu0"))
        await reach(fleet, "gpu0", Phase.READY)
        run = fleet.supervisors["gpu0"].state.run
        assert run and run.pid
        os.kill(run.pid, signal.SIGKILL)
        await reach(fleet, "gpu0", Phase.FAILED)
        failure = verdict.failure(fleet.supervisors["gpu0"].state)
        assert failure and failure.kind in (FailureKind.CHILD_DIED, FailureKind.OS_OOM_KILLED)
        exit = fleet.supervisors["gpu0"].state.exit
        assert exit and exit.signal == "SIGKILL"


async def test_a_foreign_server_on_the_port_is_named(tmp_path: Path) -> None:
    rig = profile(tmp_path, ["plain"])
    with socket.create_server(("127.0.0.1", rig.servers[0].port)):
        async with running(rig, tmp_path) as fleet:
            refused = await fleet.act(Launch("gpu0"))
            assert not refused.ok and str(os.getpid()) in refused.message
            failure = verdict.failure(fleet.supervisors["gpu0"].state)
            assert failure and failure.kind is FailureKind.PORT_IN_USE


async def test_one_refused_launch_does_not_hinder_the_others(tmp_path: Path) -> None:
    rig = profile(tmp_path, ["plain", "plain"])
    missing = rig.servers[0].model_copy(update={"cwd": str(tmp_path / "nowhere")})
    async with running(rig.model_copy(update={"servers": (missing, rig.servers[1])}), tmp_path) as fleet:
        refused = await fleet.act(Launch("gpu0"))
        assert not refused.ok and "nowhere" in refused.message
        assert verdict.phase(fleet.supervisors["gpu0"].state) is Phase.FAILED
        assert (await fleet.act(Launch("gpu1"))).ok
        await reach(fleet, "gpu1", Phase.READY)


async def test_readiness_by_http_where_the_profile_says_so(tmp_path: Path) -> None:
    rig = profile(tmp_path, ["plain"], ready_by="http")
    async with running(rig, tmp_path) as fleet:
        await fleet.act(Launch("gpu0"))
        await reach(fleet, "gpu0", Phase.READY)
        assert fleet.supervisors["gpu0"].state.http_ready


async def test_read_only_launches_and_kills_nothing(tmp_path: Path) -> None:
    rig = profile(tmp_path, ["plain"])
    async with running(rig, tmp_path) as fleet:
        await fleet.act(Launch("gpu0"))
        async with session(rig, tmp_path / "other", read_only=True) as looker:
            for action in (Launch("gpu0"), Kill("gpu0"), Relaunch("gpu0")):
                refused = await looker.act(action)
                assert not refused.ok and "read-only" in refused.message
        await reach(fleet, "gpu0", Phase.READY)


async def test_the_spool_holds_the_log_of_the_host_byte_by_byte(tmp_path: Path) -> None:
    async with running(profile(tmp_path, ["plain"]), tmp_path) as fleet:
        await fleet.act(Launch("gpu0"))
        await reach(fleet, "gpu0", Phase.READY)
        supervisor = fleet.supervisors["gpu0"]
        run, spool = supervisor.state.run, supervisor.log_path
        assert run and spool
        await fleet.act(Kill("gpu0"))
        await reach(fleet, "gpu0", Phase.STOPPED)
        on_host = Path(run.log)
        assert await fleet.until(lambda: spool.stat().st_size == on_host.stat().st_size, DEADLINE)
    assert filecmp.cmp(spool, on_host, shallow=False)
