"""Restarts on real processes through real agents: who restarts what, and what no session may restart."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.fleet.rig import DEADLINE, profile, reach, running, session
from tui.fleet.api import Kill, Launch
from tui.fleet.fleet import Fleet
from tui.fleet.hosts import HostWatch
from tui.fleet.policy import Limits
from tui.fleet.restarter import Restarter
from tui.host.api import Lease
from tui.sglang.model import Phase
from tui.sglang.restarts import Restarts

QUICK = Limits(first=0.05, longest=0.2, restarts=2, poll=0.2)
PATIENT = Limits(first=600.0, longest=600.0, poll=0.2)


def told(fleet: Fleet) -> Restarts:
    return fleet.supervisors["gpu0"].state.restarts


def run_of(fleet: Fleet) -> str:
    run = fleet.supervisors["gpu0"].state.run
    return run.run if run else ""


async def until(fleet: Fleet, condition: Callable[[], bool]) -> None:
    assert await fleet.until(condition, DEADLINE), (fleet.states(), told(fleet))


def gave_up(fleet: Fleet) -> bool:
    return told(fleet).why.startswith("given up after 2 restarts: 3 × ")


def folder_of(fleet: Fleet) -> Path:
    run = fleet.supervisors["gpu0"].state.run
    assert run
    return Path(run.log).parent


async def serve(fleet: Fleet) -> None:
    await fleet.act(Launch("gpu0"))
    await reach(fleet, "gpu0", Phase.READY)


def die(fleet: Fleet, *, keeper: bool = False) -> str:
    """Kill -9 the server; its run's id. ``keeper``: its only witness too, as in a reboot."""
    process = json.loads((folder_of(fleet) / "process.json").read_text())
    run = run_of(fleet)
    if keeper:
        os.kill(process["keeper"]["pid"], signal.SIGKILL)
    os.kill(process["pid"], signal.SIGKILL)
    return run


async def test_a_server_that_was_killed_from_outside_comes_back(tmp_path: Path) -> None:
    rig = profile(tmp_path, ["plain"], restart="on-failure")
    async with running(rig, tmp_path, restarts=True, limits=QUICK) as fleet:
        assert told(fleet).here and told(fleet).by and told(fleet).since
        await serve(fleet)
        first = die(fleet)
        await until(fleet, lambda: told(fleet).count == 1 and run_of(fleet) != first)
        await reach(fleet, "gpu0", Phase.READY)
        assert told(fleet).next_at is None and told(fleet).why == ""


async def test_a_run_that_vanished_as_in_a_reboot_comes_back(tmp_path: Path) -> None:
    rig = profile(tmp_path, ["plain"], restart="on-failure")
    async with running(rig, tmp_path, restarts=True, limits=QUICK) as fleet:
        await serve(fleet)
        first = die(fleet, keeper=True)
        await until(fleet, lambda: told(fleet).count == 1 and run_of(fleet) != first)


async def test_a_run_without_its_keeper_is_not_said_to_have_met_a_reboot(tmp_path: Path) -> None:
    rig = profile(tmp_path, ["plain"], restart="on-failure")
    async with running(rig, tmp_path, restarts=True, limits=PATIENT) as fleet:
        await serve(fleet)
        die(fleet, keeper=True)
        await until(fleet, lambda: told(fleet).pending)
        assert told(fleet).why.endswith("nobody recorded how it ended") and "reboot" not in told(fleet).why


async def test_never_is_the_default_and_a_session_that_does_not_stay_restarts_nothing(tmp_path: Path) -> None:
    async with running(profile(tmp_path / "a", ["plain"]), tmp_path, restarts=True, limits=QUICK) as fleet:
        await serve(fleet)
        die(fleet)
        await reach(fleet, "gpu0", Phase.FAILED)
        assert told(fleet) == Restarts()
    rig = profile(tmp_path / "b", ["plain"], restart="always")
    async with running(rig, tmp_path, limits=QUICK) as fleet:
        assert (told(fleet).by, told(fleet).here) == ("", False), "nobody restarts, and it says so"
        await serve(fleet)
        die(fleet)
        await reach(fleet, "gpu0", Phase.FAILED)
        assert told(fleet).next_at is None


async def test_a_kill_by_any_session_is_final(tmp_path: Path) -> None:
    rig = profile(tmp_path, ["plain"], restart="always")
    async with running(rig, tmp_path, restarts=True, limits=QUICK) as fleet:
        await serve(fleet)
        async with session(rig, tmp_path / "other") as other:
            assert (await other.act(Kill("gpu0"))).ok
        await reach(fleet, "gpu0", Phase.STOPPED)
        assert told(fleet).next_at is None
        await serve(fleet)
        assert (await fleet.act(Kill("gpu0"))).ok
        await reach(fleet, "gpu0", Phase.STOPPED)
        assert told(fleet).next_at is None and told(fleet).count == 0


async def test_one_of_two_sessions_restarts_and_the_other_takes_over(tmp_path: Path) -> None:
    rig = profile(tmp_path, ["plain"], restart="on-failure")
    async with session(rig, tmp_path / "one", restarts=True, limits=PATIENT) as one:
        await serve(one)
        async with running(rig, tmp_path / "two", restarts=True, limits=QUICK) as two:
            assert told(one).here and not told(two).here
            assert told(two).by == told(one).by and told(two).since == told(one).since
            first = die(one)
            await until(two, lambda: bool(told(two).why))
            await until(one, lambda: told(one).next_at is not None)
            await until(two, lambda: told(two).next_at == told(one).next_at)
            assert told(two).by == told(one).by and not told(two).here, "the other one does it, and says when"
            await one.close()
            await until(two, lambda: told(two).here and told(two).count == 1 and run_of(two) != first)


async def test_a_kill_while_it_waits_is_heard_by_whoever_takes_over(tmp_path: Path) -> None:
    rig = profile(tmp_path, ["plain"], restart="on-failure")
    async with session(rig, tmp_path / "one", restarts=True, limits=PATIENT) as one:
        await serve(one)
        async with running(rig, tmp_path / "two", restarts=True, limits=QUICK) as two:
            first = die(one)
            await until(two, lambda: bool(told(two).why))
            await until(one, lambda: told(one).next_at is not None)
            given_up = await one.act(Kill("gpu0"))
            assert given_up.ok and "not restarted" in given_up.message
            assert told(one).next_at is None and "somebody ended it" in told(one).why
            await one.close()
            await until(two, lambda: told(two).here and "somebody ended it" in told(two).why)
            assert run_of(two) == first


async def test_what_would_fail_again_is_left(tmp_path: Path) -> None:
    rig = profile(tmp_path, ["host-memory"], restart="always")
    async with running(rig, tmp_path, restarts=True, limits=QUICK) as fleet:
        await fleet.act(Launch("gpu0"))
        await until(fleet, lambda: "would fail again" in told(fleet).why)
        assert "host memory" in told(fleet).why and told(fleet).count == 0


async def test_it_is_given_up_with_its_reasons(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "exit 3"]
    rig = profile(tmp_path, ["plain"], restart="on-failure", command=command)
    async with running(rig, tmp_path, restarts=True, limits=QUICK) as fleet:
        await fleet.act(Launch("gpu0"))
        await until(fleet, lambda: told(fleet).why.startswith("given up after 2 restarts: 3 × "))
        assert told(fleet).count == 2
        assert len([run for run in folder_of(fleet).parent.iterdir() if run.is_dir()]) == 3
        await fleet.act(Launch("gpu0"))
        await until(fleet, lambda: told(fleet).why.startswith("given up") and told(fleet).count == 2)
        assert len([run for run in folder_of(fleet).parent.iterdir() if run.is_dir()]) == 6, "a launch begins anew"


async def test_a_clean_end_is_followed_by_a_launch_under_always_alone(tmp_path: Path) -> None:
    for policy, count in (("on-failure", 0), ("always", 2)):
        rig = profile(tmp_path / policy, ["plain"], restart=policy, command=["/bin/sh", "-c", "exit 0"])
        async with running(rig, tmp_path / policy, restarts=True, limits=QUICK) as fleet:
            await fleet.act(Launch("gpu0"))
            await reach(fleet, "gpu0", Phase.STOPPED)
            if count:
                await until(fleet, lambda: told(fleet).why.startswith("given up"))
            assert told(fleet).count == count and told(fleet).next_at is None


async def test_a_port_that_is_taken_meanwhile_ends_the_restarts(tmp_path: Path) -> None:
    rig = profile(tmp_path, ["plain"], restart="on-failure")
    async with session(rig, tmp_path / "one", restarts=True, limits=PATIENT) as one:
        await serve(one)
        async with running(rig, tmp_path / "two", restarts=True, limits=QUICK) as two:
            die(one)
            await until(two, lambda: bool(told(two).why))
            with socket.create_server(("127.0.0.1", rig.servers[0].port)):
                await one.close()
                await until(two, lambda: "would fail again" in told(two).why)
            assert told(two).count == 1, "an attempt, which the delays and the limit count too"


async def test_the_lease_ends_with_the_agent_and_is_taken_up_again(tmp_path: Path) -> None:
    rig = profile(tmp_path, ["plain"], restart="on-failure")
    async with running(rig, tmp_path, restarts=True, limits=QUICK) as fleet:
        await serve(fleet)
        first = die(fleet)
        await until(fleet, lambda: told(fleet).count == 1 and run_of(fleet) != first)
        lock = json.loads((folder_of(fleet).parent / "restarts.lock").read_text())
        os.kill(lock["pid"], signal.SIGKILL)
        await until(fleet, lambda: told(fleet).by is None)
        await until(fleet, lambda: told(fleet).here)
        again = json.loads((folder_of(fleet).parent / "restarts.lock").read_text())
        assert again["pid"] != lock["pid"]


async def test_what_was_given_up_is_so_for_all_and_a_launch_by_hand_begins_anew_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sessions that restart, and a third that only launches. Count, delay and limit agree in each."""
    monkeypatch.setattr("tui.fleet.hosts._RESCAN_SECONDS", 0.2)
    lives = tmp_path / "lives"
    command = ["/bin/sh", "-c", f"test -e {lives} && exec sleep 600; exit 3"]
    rig = profile(tmp_path, ["plain"], restart="on-failure", command=command)
    async with (
        running(rig, tmp_path / "two", limits=QUICK) as hand,
        session(rig, tmp_path / "one", restarts=True, limits=QUICK) as one,
        session(rig, tmp_path / "other", restarts=True, limits=QUICK) as other,
    ):
        await one.act(Launch("gpu0"))
        for fleet in (one, other, hand):
            await until(fleet, partial(gave_up, fleet))
            assert (told(fleet).count, told(fleet).pending) == (2, False)
        await one.close()
        await until(other, lambda: told(other).here)
        runs = folder_of(other).parent
        lives.touch()
        with monkeypatch.context() as patch:
            patch.setattr("tui.fleet.translate.who", lambda: "ann@laptop (pid 1)")
            assert (await hand.act(Launch("gpu0"))).ok
        made = len([run for run in runs.iterdir() if run.is_dir()])
        assert made == 4, "who takes over restarts nothing that was given up"
        await until(other, lambda: told(other).count == 0 and run_of(other) == run_of(hand))
        await until(other, lambda: other.supervisors["gpu0"].state.alive is True)
        lives.unlink()
        die(other)
        await until(other, lambda: told(other).why.startswith("given up after 2 restarts: "))
        assert told(other).count == 2
        assert len([run for run in runs.iterdir() if run.is_dir()]) == made + 2


async def test_the_agent_of_a_lost_connection_is_no_other_session(tmp_path: Path) -> None:
    async with session(profile(tmp_path, ["plain"]), tmp_path) as fleet:
        supervisor = fleet.supervisors["gpu0"]
        watch = HostWatch(supervisor.link, "rig", "local", clock=time.time, changed=lambda: None)
        restarter = Restarter(supervisor, watch, QUICK)
        restarter.lease(Lease(True, "me", 5.0))
        assert told(fleet).here
        restarter.lost()
        restarter.lease(Lease(False, "me", 5.0))
        assert told(fleet).by is None, "it holds the lock until it ends"
        restarter.lease(Lease(False, "ann", 7.0, {"over": "of another release"}))
        assert told(fleet).by == "ann" and not told(fleet).here
        restarter.lease(Lease(True, "me", 9.0))
        assert told(fleet).here
