"""How soon a kill is answered in the middle of a backfill of 1 GB over a slow link, and what the link carries.

    python -m tests.bench.kill_in_backfill [ROUNDS [MBIT/S…]]    (1 round, 20 Mbit/s)

A real sshd in a network namespace whose link passes only so much (``tc``); where none can be made, behind a proxy on
loopback that does. ``kill`` is the whole of it: SIGTERM, the end of the process, the second look by a fresh process.
"""

# ruff: noqa: ASYNC110  # nothing tells of a log that is not followed
from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.bench._tidy import tidy
from tests.host.links import HostOf, opened, python, ssh_host
from tests.host.sshd import start_sshd
from tests.host.weather import namespace, weather
from tui.host import credit
from tui.host.api import LinkEvent, LogBytes
from tui.host.link import HostLink

SIZE = 1 << 30
SERVER = f"import os, time; os.ftruncate(1, {SIZE}); time.sleep(600)"
WINDOWS = {"64 KiB": (64 << 10, 64 << 10), "64 to 256 KiB": (64 << 10, 256 << 10), "256 KiB": (256 << 10, 256 << 10),
           "1 MiB": (1 << 20, 1 << 20)}  # fmt: skip


async def idle_kill(link: HostLink, number: int) -> float:
    """Milliseconds until a kill is proven while nothing else is on the link."""
    run = await link.launch(python("import time; time.sleep(600)", server=f"idle{number}"))
    asked = time.monotonic()
    assert not (await link.kill(run.run, 5)).left
    return (time.monotonic() - asked) * 1000


async def measure(link: HostLink, number: int) -> tuple[float, float, float, int]:
    """(milliseconds until an empty answer, until a kill is proven, MB/s, bytes on their way at most)."""
    got = 0

    def on_event(event: LinkEvent) -> None:
        nonlocal got
        if isinstance(event, LogBytes):
            got += len(event.data)
            event.handled()

    link.subscribe(on_event)
    run = await link.launch(python(SERVER, server=f"flood{number}"))
    while (await link.runs("p", f"flood{number}"))[0].log_size != SIZE:
        await asyncio.sleep(0.05)
    await link.follow(run.run)
    await asyncio.sleep(2.0)
    before, began = got, time.monotonic()
    answers = []
    for _ in range(10):
        asked = time.monotonic()
        await link.runs("nobody")
        answers.append((time.monotonic() - asked) * 1000)
        await asyncio.sleep(0.1)
    rate = (got - before) / (time.monotonic() - began) / 1e6
    session = link._session
    window = session._credit.window if session else 0
    asked = time.monotonic()
    report = await link.kill(run.run, 5)
    killed = (time.monotonic() - asked) * 1000
    assert not report.left
    link._listeners.remove(on_event)
    return statistics.median(answers), killed, rate, window


@asynccontextmanager
async def host(megabits: int, folder: Path) -> AsyncIterator[tuple[str, HostOf]]:
    """How the link is slowed, and a host behind it."""
    try:
        with namespace() as space:
            space.slow(f"{megabits}mbit")
            server = start_sshd(folder / f"sshd{megabits}", ip=space.ip, within=space.within)
            try:
                yield "tc", ssh_host(server, folder / "state")
            finally:
                server.stop()
    except pytest.skip.Exception:
        server = start_sshd(folder / f"sshd{megabits}")
        try:
            async with weather(server.port) as proxy:
                proxy.bytes_per_second = megabits * 125_000
                yield "proxy", ssh_host(server, folder / "state", ssh=server.address_at(proxy.port))
        finally:
            server.stop()


async def main(rounds: int = 1, *rates: int) -> None:
    print("                                         kill ms, in a backfill    without")
    print("Mbit/s  by     window          answer ms        median    worst     median   MB/s  window at the end, KiB")
    with tempfile.TemporaryDirectory() as name:
        for megabits in rates or (20,):
            async with host(megabits, Path(name)) as (how, config):
                for label, (least, most) in WINDOWS.items():
                    credit.LEAST, credit.MOST = least, most
                    credit.Credit.__init__.__defaults__ = (least, *(credit.Credit.__init__.__defaults__ or ())[1:])
                    rows, idle = [], []
                    for number in range(rounds):
                        async with opened(config) as link:
                            idle.append(await idle_kill(link, number))
                            rows.append(await measure(link, number))
                    kills = [row[1] for row in rows]
                    print(
                        f"{megabits:6}  {how:5}  {label:14} {statistics.median(row[0] for row in rows):10.0f}"
                        f"  {statistics.median(kills):12.0f}  {max(kills):7.0f}  {statistics.median(idle):9.0f}"
                        f"  {statistics.median(row[2] for row in rows):5.1f}  {rows[-1][3] >> 10:8}",
                        flush=True,
                    )


if __name__ == "__main__":
    with tidy():
        asyncio.run(main(*map(int, sys.argv[1:])))
