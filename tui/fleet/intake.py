"""Brings one run's log from its host: head, end and middle in this order, and everything new at once."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from typing import Any

from tui.fleet.logreader import LogGapError, LogReader
from tui.host.api import HostError, HostErrorKind, Link, LogBytes, RunRecord
from tui.sglang.facts import LogFacts


class LogIntake:
    """Asks for what its reader wants next. A link that was lost asks again by itself."""

    def __init__(
        self, link: Link, record: RunRecord, reader: LogReader, told: Callable[[LogFacts | None], None]
    ) -> None:
        self.reader = reader
        self._told = told  # what reading the spool brought
        self._link = link
        self._run = record.run
        self._size = record.log_size or 0  # bytes that stood there when the run was found
        self._inode = record.log_inode
        self._following = False
        self._until = 0  # end of the stretch that is being sent
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def caught_up(self) -> bool:
        """Whether beginning and end of what stood on the host are read."""
        return self._following and self.reader.reach >= self._size

    @property
    def whole(self) -> bool:
        """Whether all that stood on the host is read."""
        return self._following and self.reader.offset >= self._size

    async def begin(self) -> None:
        """Ask for the first stretch, or follow. Raises ``HostError``."""
        stretch = None if self._following else self.reader.head(self._size)
        if stretch:
            await self._fill(stretch, middle=False)
        elif not self._following:
            self._following = True
            self._go_on()  # the middle; a link that is lost at this moment remembers both
            await self._link.follow(self._run, self.reader.leap(self._size), self._inode)
        elif self.reader.middle_is_spooled:
            self._later(self._catch_up())
        elif middle := self.reader.middle():
            await self._fill(middle, middle=True)

    async def _catch_up(self) -> None:
        """The middle from the spool, as far as that goes, in half of the time."""
        while self.reader.middle_is_spooled:
            began = time.perf_counter()
            self._told(self.reader.catch_up())
            await asyncio.sleep(time.perf_counter() - began)
        self._go_on()

    async def _fill(self, stretch: tuple[int, int], *, middle: bool) -> None:
        self._until = stretch[1]
        try:
            await self._link.fill(self._run, *stretch, self._inode, middle=middle)
        except HostError as error:
            if error.kind is not HostErrorKind.REFUSED or middle:
                raise  # the middle of a log that began anew is given up when its new beginning comes
            self._size = 0
            self._go_on()

    def take(self, event: LogBytes) -> LogFacts | None:
        """Spool and read a stretch of the log, and let the link send more."""
        began = time.perf_counter()
        behind = self.reader.behind(event.offset) and not event.anew
        try:
            return self._read(event)
        except LogGapError as gap:
            self._later(self._link.follow(event.run, gap.have, event.inode))
            return None
        finally:
            if behind:  # at most half of the time goes into the past, so that the present stays fluent
                asyncio.get_running_loop().call_later(time.perf_counter() - began, event.handled)
            else:
                event.handled()

    def _read(self, event: LogBytes) -> LogFacts | None:
        if event.anew:
            self._size = self._until = 0
        elif self._inode not in (None, event.inode):
            return None  # on its way when the log began anew
        self._inode = event.inode
        facts = self.reader.feed(event.offset, event.data, anew=event.anew)
        if self._until and self.reader.offset >= self._until:
            self._until = 0
            self._go_on()
        return facts

    def _go_on(self) -> None:
        self._later(self.begin())

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        """Send a request whose failure changes nothing: a link that comes back asks again."""
        task = asyncio.get_running_loop().create_task(_suppressed(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self.reader.close()


async def _suppressed(work: Coroutine[Any, Any, None]) -> None:
    with contextlib.suppress(HostError):
        await work
