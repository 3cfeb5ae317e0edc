"""A kill on a host that runs out of descriptors: whoever asked hears of it, and the next kill works."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest

from tests.host.links import agent_pid, python
from tests.processes import is_running
from tests.waiting import DEADLINE, eventually
from tui.host.api import HostError, HostErrorKind
from tui.host.link import HostLink

STUBBORN = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(600)"
)


async def test_a_kill_that_cannot_go_on_says_so_at_once(local: HostLink) -> None:
    run = await local.launch(python(STUBBORN))
    log = Path(run.log)
    await eventually(lambda: log.read_bytes())
    killing = asyncio.create_task(local.kill(run.run, 600.0))
    await eventually(lambda: (log.parent / "stop.json").exists())
    pid = agent_pid(local)
    taken = {int(fd.name) for fd in Path(f"/proc/{pid}/fd").iterdir()}  # noqa: ASYNC240  # a small folder
    usual = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (next(n for n in range(999) if n not in taken), usual[1]))
    with pytest.raises(HostError) as found:
        async with asyncio.timeout(DEADLINE):
            await killing
    assert found.value.kind is HostErrorKind.REFUSED and "try again" in found.value.remedy, found.value
    resource.prlimit(pid, resource.RLIMIT_NOFILE, usual)
    assert (await local.kill(run.run, 0)).left == ()
    assert run.pid and not is_running(run.pid)
