"""Stretches of a log that is long: exact, behind what is new, and over a reconnect."""

# ruff: noqa: ASYNC240  # small files of the test
from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.host.links import agent_pid, python
from tests.processes import kill_now
from tests.waiting import DEADLINE, eventually
from tui.host import credit, link
from tui.host.api import HostError, HostErrorKind, LinkEvent, LogBytes, RunRecord
from tui.host.link import HostLink

LOG = b"".join(b"%07d\n" % n for n in range(250_000))  # 2 MB
CODE = """
import os, sys, time
for n in range(250_000): sys.stdout.write("%07d\\n" % n)
sys.stdout.flush()
while not os.path.exists(sys.argv[1]): time.sleep(0.005)
print("new", flush=True)
time.sleep(600)
"""


class Held:
    """What came, unhandled: the agent may send no more than its credit until ``let_go``."""

    def __init__(self, link: HostLink) -> None:
        self.events: list[LogBytes] = []
        self._handled = 0
        self._changed = asyncio.Event()
        link.subscribe(self._on_event)

    def _on_event(self, event: LinkEvent) -> None:
        if isinstance(event, LogBytes):
            self.events.append(event)
            self._changed.set()

    def let_go(self) -> None:
        for event in self.events[self._handled :]:
            event.handled()
        self._handled = len(self.events)

    async def until(self, condition: Callable[[], bool], *, letting_go: bool = False) -> None:
        async with asyncio.timeout(DEADLINE):
            while not condition():
                self._changed.clear()
                if letting_go:
                    self.let_go()
                await self._changed.wait()

    def bytes_of(self, start: int, end: int) -> bytes:
        """What came of that stretch, in order."""
        found = bytearray()
        for event in self.events:
            if event.offset == start + len(found) and event.offset < end:
                found += event.data
        return bytes(found)

    def has(self, start: int, size: int) -> bool:
        return len(self.bytes_of(start, start + size)) >= size


async def standing(link: HostLink, flag: Path) -> RunRecord:
    """A server whose log stands there, and that adds a line once ``flag`` exists."""
    run = await link.launch(python(CODE, str(flag)))
    await eventually(lambda: Path(run.log).stat().st_size >= len(LOG))
    return run


async def test_what_is_new_overtakes_what_is_old(local: HostLink, tmp_path: Path) -> None:
    held = Held(local)
    run = await standing(local, tmp_path / "flag")
    await local.fill(run.run, 0, len(LOG), middle=True)
    await held.until(lambda: sum(len(event.data) for event in held.events) >= credit.LEAST)
    (tmp_path / "flag").touch()
    await eventually(lambda: Path(run.log).stat().st_size > len(LOG))
    await local.follow(run.run, len(LOG))  # the agent looks at once, and has no credit
    await held.until(lambda: any(event.data == b"new\n" for event in held.events), letting_go=True)
    assert len(held.bytes_of(0, len(LOG))) <= credit.LEAST + credit.MOST
    await held.until(lambda: len(held.bytes_of(0, len(LOG))) == len(LOG), letting_go=True)
    assert held.bytes_of(0, len(LOG)) == LOG
    assert not local._of(run.run)[1:], "a stretch that was sent is forgotten"


async def test_a_stretch_survives_a_reconnect(local: HostLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "FIRST_RETRY_SECONDS", 0.05)
    held = Held(local)
    run = await standing(local, tmp_path / "flag")
    await local.fill(run.run, 100_001, 1_500_001)
    for size in (200_000, 500_000, 800_000, 1_100_000):
        await held.until(partial(held.has, 100_001, size), letting_go=True)
        kill_now(agent_pid(local))
        await held.until(partial(held.has, 100_001, size + 100_000), letting_go=True)
    await held.until(partial(held.has, 100_001, 1_400_000), letting_go=True)
    assert held.bytes_of(100_001, 1_500_001) == LOG[100_001:1_500_001]
    assert all(event.offset + len(event.data) <= 1_500_001 for event in held.events)


async def test_what_the_log_does_not_hold_is_refused(local: HostLink, tmp_path: Path) -> None:
    run = await standing(local, tmp_path / "flag")
    inode = Path(run.log).stat().st_ino
    for start, end, file in ((0, len(LOG) + 1, inode), (0, 10, inode + 1)):
        with pytest.raises(HostError, match="no longer holds") as found:
            await local.fill(run.run, start, end, file)
        assert found.value.kind is HostErrorKind.REFUSED
    assert not local._of(run.run)
