"""Servers for benchmarks: runs of their agent over a real sshd on loopback, whose logs one process writes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fleet.rig import ROOT
from tests.fleet.test_readoption import STARTUP
from tests.host.sshd import Sshd, start_sshd
from tests.ports import free_port
from tui.fleet.api import Kill, Launch
from tui.fleet.fleet import Fleet
from tui.fleet.places import Places
from tui.profile.load import loads

_LISTEN = "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(1e6)"


@dataclass(frozen=True)
class Rig:
    """A profile file and, by server, the log on the host."""

    folder: Path
    profile: Path
    logs: dict[str, Path]
    sshd: Sshd

    def spool(self, server: str) -> Path:
        """Where the dashboard at home in ``folder`` keeps the server's log."""
        (found,) = (self.folder / "spool" / "bench" / server).glob("*.log")
        return found

    def same(self, server: str) -> bool:
        """Whether the spool holds the log, byte for byte."""
        return subprocess.run(["cmp", "-s", self.logs[server], self.spool(server)], check=False).returncode == 0

    def write(self, rate: float, seconds: float, servers: Sequence[str]) -> subprocess.Popen[bytes]:
        """The writer of ``rate`` lines per second to each of ``servers``."""
        command = [sys.executable, "-m", "tests.bench._writer", str(rate), str(seconds)]
        return subprocess.Popen([*command, *(str(self.logs[server]) for server in servers)], cwd=ROOT)


@contextmanager
def ready_servers(folder: Path, count: int) -> Iterator[Rig]:
    """``count`` servers gpu00, gpu01, … that are ready by what their logs say. They are ended at last."""
    sshd = start_sshd(folder / "sshd")
    host = {"ssh": sshd.address, "identity": sshd.identity, "known_hosts": sshd.known_hosts}
    hosts = {"box": {**host, "python": sys.executable, "state_dir": str(folder / "state")}}
    ports = {f"gpu{n:02}": free_port() for n in range(count)}
    servers = {
        name: {"command": [sys.executable, "-ISc", _LISTEN, str(port)], "port": port} for name, port in ports.items()
    }
    text = json.dumps({"name": "bench", "hosts": hosts, "defaults": {"host": "box"}, "servers": servers})
    path = folder / "bench.yaml"
    path.write_text(text)
    try:
        logs = asyncio.run(_launched(text, folder))
        for log in logs.values():
            with log.open("ab") as file:
                file.write(STARTUP)
        yield Rig(folder, path, logs, sshd)
    finally:
        asyncio.run(_ended(text, folder))
        sshd.stop()


async def _launched(text: str, folder: Path) -> dict[str, Path]:
    fleet = Fleet(loads(text), places=Places(folder / "none", folder / "history"))
    fleet.start()
    await fleet.settled()
    logs = {}
    for name, supervisor in fleet.supervisors.items():
        outcome = await fleet.act(Launch(name))
        assert outcome.ok and supervisor.state.run and supervisor.state.run.log, outcome
        logs[name] = Path(supervisor.state.run.log)
    await fleet.close()
    return logs


async def _ended(text: str, folder: Path) -> None:
    fleet = Fleet(loads(text), places=Places(folder / "none", folder / "history"))
    fleet.start()
    await fleet.settled()
    await asyncio.gather(*(fleet.act(Kill(name, 0.0)) for name in fleet.supervisors))
    await fleet.close()


def prefer(level: int) -> None:
    """Let this process and the program go before the neighbours on this machine; where that is not allowed, their load
    is in the figures. Linux shares CPUs between sessions first, so the session's share is what counts."""
    if not level:
        return
    try:
        with contextlib.suppress(PermissionError):  # the leader of a group keeps its session
            os.setsid()
        os.nice(-level)
        Path("/proc/self/autogroup").write_text(str(-level))
    except OSError as error:
        print(f"not allowed to go before others: {error}", file=sys.stderr)


def load() -> str:
    """The machine's load, for the table."""
    return f"{time.strftime('%H:%M')}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
