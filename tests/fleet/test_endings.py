"""Kills in a fleet: during a launch, and while the link to the host goes and comes back."""

# small files of the test
from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.fleet.rig import profile, reach, running
from tests.host.links import agent_pid
from tests.processes import is_running, kill_now
from tests.waiting import DEADLINE, eventually
from tui.fleet.api import Kill, Launch, Relaunch
from tui.fleet.fleet import Fleet
from tui.host import link
from tui.host.link import HostLink
from tui.sglang.model import Phase

STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(600)",
]


def host_link(fleet: Fleet) -> HostLink:
    found = fleet.supervisors["gpu0"].link
    assert isinstance(found, HostLink)
    return found


async def test_a_launch_is_ended_while_its_setup_lines_run(tmp_path: Path) -> None:
    started = tmp_path / "started"
    async with running(profile(tmp_path, ["plain"], setup=f"touch {started}\nsleep 600"), tmp_path) as fleet:
        launching = asyncio.create_task(fleet.act(Launch("gpu0")))
        await eventually(started.exists)
        killed = await fleet.act(Kill("gpu0", 5.0))
        assert killed.ok and killed.message.endswith("nothing left"), killed.message
        launched = await launching
        assert not launched.ok and "ended while it was being launched" in launched.message
        await reach(fleet, "gpu0", Phase.STOPPED)
        assert not [record for record in await host_link(fleet).runs() if record.alive]


async def test_a_relaunch_is_given_up_by_a_kill(tmp_path: Path) -> None:
    """The kill comes while the old server, which is stubborn, is being ended: no new one is launched."""
    async with running(profile(tmp_path, ["plain"], stop_grace="2s"), tmp_path) as fleet:
        await fleet.act(Launch("gpu0"))
        await reach(fleet, "gpu0", Phase.READY)
        relaunching = asyncio.create_task(fleet.act(Relaunch("gpu0")))
        [record] = await host_link(fleet).runs()
        await eventually((Path(record.log).parent / "stop.json").exists)
        killed = await fleet.act(Kill("gpu0", 5.0))
        assert killed.ok, killed.message
        relaunched = await relaunching
        found = await host_link(fleet).runs()
        assert not [run for run in found if run.alive], (relaunched.message, killed.message)


@pytest.mark.parametrize("agent_too", [False, True])
async def test_a_kill_outlives_its_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent_too: bool) -> None:
    """The channel goes in the middle of the grace, or the agent with it: the same kill is told, or done again."""
    monkeypatch.setattr(link, "FIRST_RETRY_SECONDS", 0.05)
    async with running(profile(tmp_path, ["plain"], command=STUBBORN), tmp_path) as fleet:
        await fleet.act(Launch("gpu0"))
        assert await fleet.until(lambda: fleet.supervisors["gpu0"].state.log.lines > 0, DEADLINE)
        [record] = await host_link(fleet).runs()
        folder = Path(record.log).parent
        killing = asyncio.create_task(fleet.act(Kill("gpu0", 1.0)))
        await eventually((folder / "stop.json").exists)
        if agent_too:
            kill_now(agent_pid(host_link(fleet)))
        else:
            session = host_link(fleet)._session
            assert session
            session._channel._stdin.close()  # type: ignore[attr-defined]  # the channel of a local link is a pipe
        killed = await killing
        assert killed.ok and killed.message.endswith("nothing left"), killed.message
        assert killed.details["signals"] == ["SIGTERM", "SIGKILL"]
        assert record.pid and not is_running(record.pid)
        assert ("report" in json.loads((folder / "kill.json").read_text())) is not agent_too
        await reach(fleet, "gpu0", Phase.STOPPED)
