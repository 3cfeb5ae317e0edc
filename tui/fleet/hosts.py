"""One HostWatch per host: connects, tries again, and hands what the host says to the servers that live there."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace

from tui.fleet.api import HostState
from tui.fleet.supervisor import Supervisor
from tui.host.api import (
    Hello,
    HostError,
    HostErrorKind,
    Link,
    LinkEvent,
    LinkLost,
    LinkUp,
    LogBytes,
    RunEnded,
    RunWatch,
)
from tui.host.wording import FINAL
from tui.sglang.events import HostBack, HostLost

_RESCAN_SECONDS = 10.0  # how soon a run that somebody else launched is noticed
_FIRST_RETRY_SECONDS = 2.0
_LAST_RETRY_SECONDS = 60.0


class HostWatch:
    """One host of the fleet. All methods belong to the fleet's event loop."""

    def __init__(
        self, link: Link, profile: str, address: str, *, clock: Callable[[], float], changed: Callable[[], None]
    ) -> None:
        self.link = link
        self.state = HostState(link.name, address)
        self.hello: Hello | None = None
        self.error: HostError | None = None
        self.supervisors: list[Supervisor] = []
        self.settled = asyncio.Event()  # the first attempt is over, and its servers are adopted
        self._profile = profile
        self._clock = clock
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._scan_lock = asyncio.Lock()
        self._wake = asyncio.Event()
        link.subscribe(self._on_event)

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._live())

    async def close(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for supervisor in self.supervisors:
            supervisor.close()
        await self.link.close()

    def reconnect(self) -> None:
        """Try again now, whatever the last error was."""
        self._wake.set()

    @property
    def gone(self) -> bool:
        """Whether only the user can bring this host back (a refused login, a changed host key)."""
        return self.error is not None and self.error.kind in FINAL

    async def require(self) -> Hello:
        """The connected host's hello; raises the ``HostError`` that stands in the way."""
        await self.settled.wait()
        if self.hello is None or self.error:
            raise self.error or HostError(HostErrorKind.UNREACHABLE, f"{self.link.name} is not connected.")
        return self.hello

    async def _live(self) -> None:
        delay = _FIRST_RETRY_SECONDS
        while True:
            self._wake.clear()
            if self.hello is None or self.error:
                try:
                    self._show("connecting")
                    self._connected(await self.link.open())
                    delay = _FIRST_RETRY_SECONDS
                except HostError as error:
                    self._lost(error, None if error.kind in FINAL else delay)
            if not self.error:
                await self._scan()
            self.settled.set()
            await self._pause(delay)
            if self.error:
                delay = min(delay * 2, _LAST_RETRY_SECONDS)

    async def _pause(self, delay: float) -> None:
        """Until the next attempt or look; for ever after a refusal that only the user can mend."""
        if self.error is None:
            wait: float | None = _RESCAN_SECONDS
        elif self.error.kind in FINAL:
            wait = None
        else:
            wait = delay * random.uniform(0.8, 1.2)
        try:
            await asyncio.wait_for(self._wake.wait(), wait)
        except TimeoutError:
            pass

    async def _scan(self) -> None:
        """Adopt the newest run of each server of this host."""
        async with self._scan_lock:
            try:
                records = await self.link.runs(self._profile)
            except HostError:
                return  # a lost link says so itself
            newest = {record.server: record for record in sorted(records, key=lambda r: (r.alive, r.started))}
            for supervisor in self.supervisors:
                record = newest.get(supervisor.server.name)
                if record and self.hello and not supervisor.busy:
                    try:
                        await supervisor.adopt(record, self.hello)
                    except HostError:
                        return

    def _on_event(self, event: LinkEvent) -> None:
        if isinstance(event, LinkUp):
            self._connected(event.hello)
            self._wake.set()
        elif isinstance(event, LinkLost):
            self._lost(event.error, event.retry_in)
        else:
            self._deliver(event)

    def _deliver(self, event: LogBytes | RunWatch | RunEnded) -> None:
        for supervisor in self.supervisors:
            if supervisor.follows(event.run):
                supervisor.on_event(event)
                return
        if isinstance(event, LogBytes):
            event.handled()

    def _connected(self, hello: Hello) -> None:
        back, self.hello, self.error = self.error is not None, hello, None
        self._show("connected")
        if back:
            for supervisor in self.supervisors:
                supervisor.apply(HostBack(self._clock()))

    def _lost(self, error: HostError, retry_in: float | None) -> None:
        self.error = error
        now = self._clock()
        self.state = replace(
            self.state,
            phase="refused" if error.kind in FINAL else "unreachable",
            message=str(error),
            since=self.state.since if self.state.phase in ("refused", "unreachable") else now,
            retry_at=None if retry_in is None else now + retry_in,
        )
        for supervisor in self.supervisors:
            if supervisor.state.unreachable_since is None:
                supervisor.apply(HostLost(now, str(error)))
        self._changed()

    def _show(self, phase: str) -> None:
        if self.error and phase == "connecting":
            return  # the error stands until an attempt succeeds
        total = self.hello and (self.hello.memory_limit or self.hello.memory_total)
        self.state = replace(
            self.state, phase=phase, message="", since=self._clock(), retry_at=None, memory_total=total or None
        )
        self._changed()
