"""What a server has left when it ended: a launch names it, a relaunch and a kill end it; and how an end is told."""

from __future__ import annotations

import time
from pathlib import Path

from tests.fleet.rig import profile, reach, running
from tests.host.test_left import DAEMON, OWN_SIGKILL
from tests.processes import is_running, kill_now
from tests.waiting import DEADLINE
from tui.fleet.api import Kill, Launch, Relaunch
from tui.fleet.fleet import Fleet
from tui.fleet.runs import runs_of
from tui.report.runs import runs_table
from tui.sglang.model import Phase

PYTHON = "python3"


async def leave(fleet: Fleet) -> int:
    """Launch a server, kill it from outside, and return the pid of what it leaves."""
    supervisor = fleet.supervisors["gpu0"]
    launched = await fleet.act(Launch("gpu0"))
    assert launched.ok, launched.message
    assert await fleet.until(lambda: supervisor.state.log.lines > 0, DEADLINE)
    run = supervisor.state.run
    assert run and run.pid and run.log
    kill_now(run.pid)
    await reach(fleet, "gpu0", Phase.FAILED)
    return int(Path(run.log).read_text())  # noqa: ASYNC240  # a small file of the test


async def test_a_launch_names_what_is_left_and_a_kill_ends_it(tmp_path: Path) -> None:
    async with running(profile(tmp_path, ["plain"], command=[PYTHON, "-c", DAEMON]), tmp_path) as fleet:
        state = fleet.supervisors["gpu0"]
        daemon = await leave(fleet)
        named = f"pid {daemon} ("
        assert await fleet.until(lambda: any(named in word for word in state.state.warnings), DEADLINE)
        async with runs_of(state.server.host) as runs:
            [record] = await runs.records("rig")
            assert named in " ".join(runs_table([await runs.look(record)], time.time()).split())
        refused = await fleet.act(Launch("gpu0"))
        assert not refused.ok and named in refused.message and "hcs-tui down" in refused.message
        killed = await fleet.act(Kill("gpu0"))
        assert killed.ok and killed.message.endswith("nothing left") and not is_running(daemon), killed.message
        assert (await fleet.act(Launch("gpu0"))).ok


async def test_a_relaunch_ends_what_is_left(tmp_path: Path) -> None:
    async with running(profile(tmp_path, ["plain"], command=[PYTHON, "-c", DAEMON]), tmp_path) as fleet:
        daemon = await leave(fleet)
        done = await fleet.act(Relaunch("gpu0"))
        assert done.ok and "1 process, SIGKILL" in done.message and "launched" in done.message, done.message
        assert not is_running(daemon)


async def test_who_ends_itself_by_sigkill_was_not_forced(tmp_path: Path) -> None:
    async with running(profile(tmp_path, ["plain"], command=[PYTHON, "-c", OWN_SIGKILL]), tmp_path) as fleet:
        supervisor = fleet.supervisors["gpu0"]
        await fleet.act(Launch("gpu0"))
        assert await fleet.until(lambda: supervisor.state.log.lines > 0, DEADLINE)
        killed = await fleet.act(Kill("gpu0", 60.0))
        assert killed.details["signals"] == ["SIGTERM"]
        await reach(fleet, "gpu0", Phase.STOPPED)
        assert supervisor.state.exit and supervisor.state.exit.by == "after SIGTERM"
        async with runs_of(supervisor.server.host) as runs:
            [record] = await runs.records("rig")
            table = runs_table([await runs.look(record)], time.time())
        assert "stopped after SIGTERM" in table and "SIGKILL" not in table
