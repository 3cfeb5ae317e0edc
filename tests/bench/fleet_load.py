"""Many hosts with many servers that write without a pause: is every byte spooled, and what does the watching cost?

    python -m tests.bench.fleet_load [--hosts 16] [--servers 4] [--rate 100] [--seconds 20]

One real sshd on loopback for each host, one fleet without a screen as the client. Every server writes its lines one by
one, as SGLang does, listens on its port and answers what is asked there. All of it shares one machine, so the figures
of a crowded one are too high. CPU is the kernel's account of each process (``schedstat``), in percent of one core.
"""

# ruff: noqa: ASYNC240  # files of the benchmark
from __future__ import annotations

import argparse
import asyncio
import filecmp
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench._tidy import tidy
from tests.host.sshd import Sshd, start_sshd
from tests.ports import free_port
from tui.fleet.api import Kill, Launch, Outcome
from tui.fleet.fleet import Fleet
from tui.fleet.places import Places
from tui.host.api import LinkEvent, LogBytes
from tui.profile.load import loads
from tui.profile.model import Profile

SERVER = r"""
import select, socket, sys, time
port, rate = int(sys.argv[1]), float(sys.argv[2])
ear = socket.create_server(("127.0.0.1", port))
print("[2026-11-30 10:00:00] The server is fired up and ready to roll!", flush=True)
began, count = time.monotonic(), 0
while True:
    wait = began + count / rate - time.monotonic()
    if select.select([ear], [], [], max(0.0, wait))[0]:
        asker = ear.accept()[0]
        asker.recv(65536)
        asker.sendall(b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        asker.close()
        continue
    now = time.time()
    stamp = time.strftime("[%Y-%m-%d %H:%M:%S", time.localtime(now))
    print(f"{stamp} TP0] Decode batch, #running-req: {count % 48}, #token: {count * 37 % 250000}, token usage: 0.55, "
          f"cuda graph: True, gen throughput (token/s): {400 + count % 9}.5, #queue-req: 12, at={now:.4f}", flush=True)
    count += 1
"""
MARKS = (25, 50, 75, 100)  # percent of the time
EVERY = 16
DEADLINE = 120.0  # seconds for the fleet to come up, and to go down


@dataclass
class Ear:
    """Delays from write to receipt in milliseconds: of all lines in one of ``EVERY`` pieces of logs."""

    delays: list[float] = field(default_factory=list)
    pieces: int = 0

    def __call__(self, event: LinkEvent) -> None:
        if isinstance(event, LogBytes):
            self.pieces += 1
            if self.pieces % EVERY == 0:
                now = time.time()
                self.delays += [(now - float(at)) * 1000 for at in re.findall(rb"at=(\d+\.\d{4})\n", event.data)]


def profile(servers: Mapping[str, Sshd], folder: Path, each: int, rate: float) -> Profile:
    hosts = {
        name: {"ssh": one.address, "identity": one.identity, "known_hosts": one.known_hosts, "python": sys.executable,
               "state_dir": str(folder / name)}
        for name, one in servers.items()
    }  # fmt: skip
    command = [sys.executable, "-ISc", SERVER, "{port}", str(rate)]
    declared = {
        f"{name}-{number}": {"host": name, "command": command, "port": free_port()}
        for name in hosts
        for number in range(each)
    }
    return loads(json.dumps({"name": "load", "hosts": hosts, "servers": declared}))


def status(pid: int, key: str) -> float:
    """A size of ``/proc/PID/status`` in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def cpu(pid: int) -> float:
    """Seconds of CPU that the threads of a process have had."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def busy() -> float:
    """Seconds of CPU that this machine has spent on anything, by whomever."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return sum(int(field) for at, field in enumerate(fields[1:9]) if at not in (3, 4)) / os.sysconf("SC_CLK_TCK")


def named(pids: Iterator[int], word: str) -> list[int]:
    return [pid for pid in pids if word in Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")]


def keepers(fleet: Fleet) -> list[int]:
    logs = [s.state.run.log for s in fleet.supervisors.values() if s.state.run and s.state.run.log]
    return [json.loads((Path(log).parent / "process.json").read_text())["keeper"]["pid"] for log in logs]


def spread(values: list[float]) -> str:
    return f"median {statistics.median(values):6.2f}   max {max(values):6.2f}"


async def watch(fleet: Fleet, agents: list[int], seconds: float) -> None:
    """Let it run, and print what it costs."""
    ear = Ear()
    for supervisor in {id(s.link): s for s in fleet.supervisors.values()}.values():
        supervisor.link.subscribe(ear)
    kept = keepers(fleet)
    writers = [s.state.run.pid for s in fleet.supervisors.values() if s.state.run and s.state.run.pid]
    everyone = [os.getpid(), *agents, *kept, *writers]
    others, before, began = busy(), {pid: cpu(pid) for pid in everyone}, time.monotonic()
    for mark in MARKS:
        await asyncio.sleep(max(0.0, began + seconds * mark / 100 - time.monotonic()))
        print(f"client RSS at {mark:3} %   {status(os.getpid(), 'VmRSS'):8.1f} MB", flush=True)
    took = time.monotonic() - began
    used = {pid: (cpu(pid) - before[pid]) / took * 100 for pid in everyone}
    delays = sorted(ear.delays)
    print(f"client CPU          {used[os.getpid()]:8.1f} %")
    print(f"agents CPU %        {spread([used[pid] for pid in agents])}   goal 1")
    print(f"agents RSS MB       {spread([status(pid, 'VmRSS') for pid in agents])}   goal 15")
    print(f"keepers CPU %       {spread([used[pid] for pid in kept])}")
    print(f"keepers RSS MB      {spread([status(pid, 'VmRSS') for pid in kept])}   goal 10")
    print(f"latency ms          median {statistics.median(delays):.0f}   99 % {delays[len(delays) * 99 // 100]:.0f}"
          f"   max {delays[-1]:.0f}   of {len(delays)} lines")  # fmt: skip
    print(f"servers CPU         {sum(used[pid] for pid in writers):8.1f} %")
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"whole machine CPU   {(busy() - others) / took * 100:8.1f} % of {os.cpu_count()} CPUs, load {load}")


def pairs(fleet: Fleet) -> list[tuple[Path, Path]]:
    """(log on the host, spool) of every server."""
    states = fleet.supervisors.values()
    return [(Path(s.state.run.log), s.log_path) for s in states if s.state.run and s.state.run.log and s.log_path]


def sizes(fleet: Fleet) -> list[tuple[int, int]]:
    return [(log.stat().st_size, spool.stat().st_size) for log, spool in pairs(fleet)]


async def compare(fleet: Fleet) -> None:
    """All servers are gone: are the spools the hosts' logs?"""
    both = pairs(fleet)
    same = sum(filecmp.cmp(log, spool, shallow=False) for log, spool in both)
    written = sum(log.read_bytes().count(b"\n") for log, _ in both)
    spooled = sum(spool.read_bytes().count(b"\n") for _, spool in both)
    print(f"lines               written {written}   spooled {spooled}   lost {written - spooled}")
    print(
        f"spools identical    {same} of {len(fleet.supervisors)}   {sum(size for size, _ in sizes(fleet)) / 1e6:.1f} MB"
    )


async def act(fleet: Fleet, kind: type[Launch] | type[Kill]) -> None:
    """The same action on all servers, the hosts side by side."""
    outcomes: list[Outcome] = await asyncio.gather(*(fleet.act(kind(name)) for name in fleet.supervisors))
    assert all(one.ok for one in outcomes), [one.message for one in outcomes if not one.ok]


async def main(hosts: int, servers: int, rate: float, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        running = {f"h{n}": start_sshd(folder / f"sshd{n}") for n in range(hosts)}
        for one in running.values():
            stack.callback(one.stop)
        declared = profile(running, folder, servers, rate)
        print(f"{hosts} hosts with {servers} servers, {rate:g} lines/s each, {seconds:g} s", flush=True)
        fleet = Fleet(declared, places=Places(folder / "spool", folder / "history"))
        fleet.start()
        try:
            await fleet.settled()
            await act(fleet, Launch)
            states = fleet.supervisors.values()
            assert await fleet.until(lambda: all(s.state.listening == "own" for s in states), DEADLINE)
            agents = [pid for one in running.values() for pid in named(iter(one.below()), "-ISBu")]
            agents = [pid for pid in agents if Path(f"/proc/{pid}/comm").read_text().startswith("python")]
            await asyncio.sleep(3.0)
            await watch(fleet, agents, seconds)
        finally:
            await act(fleet, Kill)
            assert await fleet.until(lambda: all(s.state.exit for s in fleet.supervisors.values()), DEADLINE)
            assert await fleet.until(lambda: all(here == there for there, here in sizes(fleet)), DEADLINE)
            await compare(fleet)
            await fleet.close()


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--hosts", type=int, default=16)
    asked.add_argument("--servers", type=int, default=4)
    asked.add_argument("--rate", type=float, default=100.0)
    asked.add_argument("--seconds", type=float, default=20.0)
    options = asked.parse_args()
    with tidy():
        asyncio.run(main(options.hosts, options.servers, options.rate, options.seconds))
