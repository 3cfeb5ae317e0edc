"""From the byte written on the host to ``LogBytes`` on this side, over a real sshd on loopback.

    python -m tests.bench.latency

Each line carries the time at which it was written; both ends are one machine, so the clocks agree.
"""

# ruff: noqa: ASYNC110  # nothing tells of a log that is not followed
from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.bench._tidy import tidy
from tests.host.links import HostOf, opened, python, ssh_host
from tests.host.sshd import start_sshd
from tui.host.api import LinkEvent, LogBytes
from tui.host.link import HostLink

WRITER = """
import sys, time
count, pause = int(sys.argv[1]), float(sys.argv[2])
for i in range(count):
    time.sleep(pause * (0.75 + (i * 7919 % 101) / 202))
    print(time.time(), "x" * 120, flush=True)
"""


def lines_of(event: LogBytes, at: float, carry: dict[str, bytes]) -> list[float]:
    """Milliseconds from write to receipt of the lines that end in this event."""
    *whole, carry[event.run] = (carry.get(event.run, b"") + event.data).split(b"\n")
    return [(at - float(line.split()[0])) * 1000 for line in whole if line]


async def measure(link: HostLink, servers: int, count: int, pause: float) -> list[float]:
    """Delays of all lines of ``servers`` servers that write ``count`` lines each."""
    delays: list[float] = []
    carry: dict[str, bytes] = {}
    done = asyncio.Event()

    def on_event(event: LinkEvent) -> None:
        if isinstance(event, LogBytes):
            delays.extend(lines_of(event, time.time(), carry))
            event.handled()
            if len(delays) >= servers * count:
                done.set()

    link.subscribe(on_event)
    for number in range(servers):
        run = await link.launch(python(WRITER, str(count), str(pause), server=f"{time.time()}-{number}"))
        await link.follow(run.run)
        await link.watch(run.run)
    async with asyncio.timeout(120):
        await done.wait()
    link._listeners.remove(on_event)
    return delays


def cpu_of_agents(pids: list[int]) -> float:
    """Seconds."""
    spent = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        spent += int(fields[11]) + int(fields[12])
    return spent / 100


async def kill_in_backfill(host: HostOf) -> float:
    """Milliseconds until a kill is answered while the log of 1 GB is being read and not consumed fast."""
    async with opened(host) as link:
        held: list[LogBytes] = []
        link.subscribe(lambda event: held.append(event) if isinstance(event, LogBytes) else None)
        flood = "for _ in range(256): sys.stdout.write('x' * (1 << 22))"
        code = f"import sys, time\n{flood}\nprint(flush=True); time.sleep(600)"
        run = await link.launch(python(code, server="flood"))
        while (await link.runs(None, "flood"))[0].log_size != (1 << 30) + 1:
            await asyncio.sleep(0.1)
        await link.follow(run.run)
        await asyncio.sleep(0.5)
        began = time.monotonic()
        report = await link.kill(run.run, 5)
        assert not report.left
        return (time.monotonic() - began) * 1000


async def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        sshd = start_sshd(Path(folder) / "sshd")
        try:
            for notify in (True, False):
                for servers, count, pause in ((1, 60, 0.3), (1, 500, 0.01), (4, 500, 0.01)):
                    async with opened(ssh_host(sshd, Path(folder) / "state"), inotify=notify) as link:
                        agents = [pid for pid in sshd.below() if pid not in sshd.sessions()]
                        spent, began = cpu_of_agents(agents), time.monotonic()
                        delays = await measure(link, servers, count, pause)
                        share = (cpu_of_agents(agents) - spent) / (time.monotonic() - began) * 100
                        rows.append((notify, servers, pause, sorted(delays), share))
            kill = await kill_in_backfill(ssh_host(sshd, Path(folder) / "state"))
        finally:
            sshd.stop()
    print(f"Python {sys.version.split()[0]}, asyncssh over sshd on loopback\n")
    print("inotify  logs  lines/s each  median ms  p99 ms  max ms  agent %")
    for notify, servers, pause, delays, share in rows:
        p99 = delays[int(len(delays) * 0.99) - 1]
        print(
            f"{'yes' if notify else 'no':7}  {servers:4}  {1 / pause:12.0f}  {statistics.median(delays):9.2f}"
            f"  {p99:6.1f}  {delays[-1]:6.1f}  {share:7.2f}"
        )
    print(f"\nkill answered in the middle of a 1 GB backfill that nobody consumes: {kill:.0f} ms")


if __name__ == "__main__":
    with tidy():
        asyncio.run(main())
