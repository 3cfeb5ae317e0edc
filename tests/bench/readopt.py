"""A new session with an empty spool: ten running servers with logs of 100 MB, over a real sshd.

python -m tests.bench.readopt [RUNS [MEGABYTES]]    (3 runs, 100 MB)
"""

# ruff: noqa: ASYNC110  # nothing tells of a log that is not followed
from __future__ import annotations

import asyncio
import json
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.bench._tidy import tidy
from tests.fleet.rig import DEADLINE
from tests.fleet.test_readoption import CLUE, SERVER, STARTUP, batches
from tests.host.links import ssh_host
from tests.host.sshd import start_sshd
from tests.ports import free_port
from tui.fleet.api import Kill, Launch
from tui.fleet.fleet import Fleet
from tui.fleet.places import Places
from tui.fleet.supervisor import Supervisor
from tui.host.connect import SshLink
from tui.profile.load import loads
from tui.profile.model import Profile

SERVERS = 10


def profile(folder: Path, sshd_folder: Path, address: str) -> Profile:
    host = {"ssh": address, "identity": str(sshd_folder / "id"), "known_hosts": str(sshd_folder / "known_hosts")}
    command = [sys.executable, "-c", SERVER, str(folder / "log")]
    servers = {f"gpu{number}": {"command": command, "port": free_port()} for number in range(SERVERS)}
    hosts = {"box": {**host, "python": sys.executable, "state_dir": str(folder / "state")}}
    return loads(json.dumps({"name": "rig", "hosts": hosts, "defaults": {"host": "box"}, "servers": servers}))


def in_view(supervisor: Supervisor) -> bool:
    """Stages, pools and the newest figures are there."""
    log = supervisor.state.log
    return bool(log.ready and log.pools and supervisor._intake and supervisor._intake.caught_up)


def is_whole(supervisor: Supervisor, size: int) -> bool:
    return supervisor.state.log.size >= size and not supervisor.state.log.missing


async def session(rig: Profile, spool: Path, size: int, whole: bool) -> tuple[float, float, float]:
    """Seconds until connected, until all servers are in view, and until their logs are whole (or 0)."""
    began = time.monotonic()
    fleet = Fleet(rig, places=Places(spool, spool / "history"))
    fleet.start()
    everyone = fleet.supervisors.values()
    try:
        await fleet.until(lambda: all(host.phase == "connected" for host in fleet.hosts()), DEADLINE)
        connected = time.monotonic() - began
        assert await fleet.until(lambda: all(in_view(s) for s in everyone), DEADLINE)
        seen = time.monotonic() - began
        if whole:
            assert await fleet.until(lambda: all(is_whole(s, size) for s in everyone), 600)
            assert all(s.state.log.failure for s in everyone), "the failure in the middle"
        return connected, seen, time.monotonic() - began if whole else 0.0
    finally:
        await fleet.close()


async def launched(rig: Profile, folder: Path, size: int) -> None:
    fleet = Fleet(rig, places=Places(folder / "none", folder / "history"))
    fleet.start()
    await fleet.settled()
    for name in fleet.supervisors:
        assert (await fleet.act(Launch(name))).ok
    link = next(iter(fleet.supervisors.values())).link
    assert isinstance(link, SshLink)
    while any((record.log_size or 0) < size for record in await link.runs()):
        await asyncio.sleep(0.2)
    await fleet.close()


async def ended(rig: Profile, folder: Path) -> None:
    fleet = Fleet(rig, places=Places(folder / "none", folder / "history"))
    fleet.start()
    await fleet.settled()
    for name in fleet.supervisors:
        await fleet.act(Kill(name, 0.0))
    await fleet.close()


async def main(runs: int = 3, megabytes: int = 100) -> None:
    half = batches(0, megabytes * 3_600)
    log = STARTUP + half + CLUE + half
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "log").write_bytes(log)
        sshd = start_sshd(folder / "sshd")
        rig = profile(folder, sshd.folder, ssh_host(sshd, folder / "state").ssh)
        try:
            await launched(rig, folder, len(log))
            for run in range(runs):
                rows.append(await session(rig, folder / f"spool{run}", len(log), whole=run == runs - 1))
            spooled = [await session(rig, folder / f"spool{runs - 1}", len(log), whole=False) for _ in range(runs)]
        finally:
            await ended(rig, folder)
            sshd.stop()
    print(f"{SERVERS} servers, {len(log) / 1e6:.0f} MB of log each, over sshd on loopback, spool empty, {runs} runs\n")
    print("                              median s   worst s")
    for label, column in (("connected", 0), ("head and end of all in view", 1)):
        taken = [row[column] for row in rows]
        print(f"{label:28} {statistics.median(taken):9.2f} {max(taken):9.2f}")
    taken = [row[1] for row in spooled]
    print(f"{'the same with a full spool':28} {statistics.median(taken):9.2f} {max(taken):9.2f}")
    print(f"{'all logs whole (once)':28} {rows[-1][2]:9.2f}")
    print(f"\nmemory of this process at its peak: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    with tidy():
        asyncio.run(main(*map(int, sys.argv[1:])))
