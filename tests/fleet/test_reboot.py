"""A host that was rebooted: the agent reads another boot id, over which a mount namespace puts a file of the test."""

# small files and processes of the test
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.fleet.rig import DEADLINE, session
from tests.host.links import agent_pid
from tests.ports import free_port
from tests.processes import is_running, kill_now
from tui.fleet.api import Kill, Launch
from tui.host import link
from tui.host.link import HostLink
from tui.profile.load import loads
from tui.sglang import verdict
from tui.sglang.model import Phase

BOOT_ID = "/proc/sys/kernel/random/boot_id"
IDLE = "import time; print('The server is fired up and ready to roll!', flush=True); time.sleep(600)"


def python_on_another_boot(folder: Path) -> Path:
    """An interpreter that reads ``folder/boot_id`` for the kernel's; skips, with the reason, where it cannot."""
    inside = f'mount --bind {folder}/boot_id {BOOT_ID} && exec "{sys.executable}" "$@"'
    wrapper = folder / "python"
    wrapper.write_text(f"#!/bin/sh\nexec unshare -m /bin/sh -c '{inside}' python \"$@\"\n")
    wrapper.chmod(0o700)
    (folder / "boot_id").write_text(f"{uuid.uuid4()}\n")
    tried = subprocess.run(
        [wrapper, "-c", f"print(open('{BOOT_ID}').read())"], capture_output=True, text=True, check=False
    )
    if tried.stdout.strip() != (folder / "boot_id").read_text().strip():
        pytest.skip(f"no mount namespaces here: {tried.stderr.strip()}")
    return wrapper


async def test_a_run_from_before_a_reboot_is_lost_and_its_pid_is_somebody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "FIRST_RETRY_SECONDS", 0.05)
    hosts = {
        "here": {"ssh": "local", "python": str(python_on_another_boot(tmp_path)), "state_dir": f"{tmp_path}/state"}
    }
    servers = {"gpu0": {"host": "here", "command": [sys.executable, "-c", IDLE], "port": free_port()}}
    rig = loads(json.dumps({"name": "rig", "hosts": hosts, "servers": servers}))
    async with session(rig, tmp_path) as fleet:
        supervisor = fleet.supervisors["gpu0"]
        assert (await fleet.act(Launch("gpu0"))).ok
        assert await fleet.until(lambda: supervisor.state.log.ready, DEADLINE)
        run = supervisor.state.run
        assert run and run.pid
        try:
            (tmp_path / "boot_id").write_text(f"{uuid.uuid4()}\n")
            assert isinstance(supervisor.link, HostLink)
            kill_now(agent_pid(supervisor.link))  # its process, and all others, end with the machine
            assert await fleet.until(lambda: supervisor.state.vanished, DEADLINE)
            assert verdict.phase(supervisor.state) is Phase.LOST
            assert supervisor.state.log.ready, "what was known stays known"
            await fleet.act(Kill("gpu0", 0.0))
            assert is_running(run.pid), "a process that has the same number after a reboot is not the server"
        finally:
            for pid in (json.loads((Path(run.log).parent / "process.json").read_text())["keeper"]["pid"], run.pid):
                os.kill(pid, signal.SIGKILL)
