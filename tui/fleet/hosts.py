"""One HostWatch per host: connects, tries again, and hands what the host says to the servers that live there."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import replace

from tui.fleet.api import ForwardState, HostState
from tui.fleet.modelpaths import model_paths
from tui.fleet.supervisor import Supervisor
from tui.host.api import (
    Forwarded,
    Hello,
    HostError,
    HostErrorKind,
    Link,
    LinkEvent,
    LinkLost,
    LinkUp,
    LogBytes,
    RunEnded,
    RunRecord,
    RunWatch,
)
from tui.host.wording import FINAL, login_hint
from tui.sglang import verdict
from tui.sglang.events import HostBack, HostLost, Watched
from tui.sglang.model import Phase

_RESCAN_SECONDS = 10.0  # how soon a run that somebody else launched is noticed
_LAUNCH_SECONDS = 20.0  # that a launch may have no process yet
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
        self._looking: asyncio.Task[None] | None = None
        self._scan_lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._asked = False  # the user wants it tried at once
        self._retried = False  # the link was up, and tries again by itself
        link.subscribe(self._on_event)

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._live())

    async def close(self) -> None:
        tasks = [task for task in (self._task, self._looking) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for supervisor in self.supervisors:
            supervisor.close()
        await self.link.close()

    def reconnect(self) -> None:
        """Try again now, whatever the last error was. ``settled`` holds again after that attempt."""
        self._asked = True
        self.settled.clear()
        self._wake.set()

    def give_up(self, seconds: float) -> None:
        """The first attempt took ``seconds``, and is no longer waited for; it goes on."""
        if not self.settled.is_set():
            message = f"{self.link.name} did not answer within {seconds:g} s."
            self._lost(HostError(HostErrorKind.UNREACHABLE, message, login_hint(self.state.address)), None)
            self.settled.set()

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
            if self.hello is None or (self.error and (self._asked or not self._retried)):
                self._asked = False
                delay = await self._open(delay)
            if not self.error:
                await self._scan()
                await self._look_at_ports()
                self._look_around()
            self.settled.set()
            await self._pause(delay)

    async def _open(self, delay: float) -> float:
        """Try once; how long to wait after the next failure."""
        try:
            self._show("connecting")
            self._connected(await self.link.open())
            return _FIRST_RETRY_SECONDS
        except HostError as error:
            if not self._retried or error.kind in FINAL:
                self._lost(error, None if error.kind in FINAL else delay)
            return min(delay * 2, _LAST_RETRY_SECONDS)

    async def _pause(self, delay: float) -> None:
        """Until the next attempt or look; for ever after a refusal that only the user can mend, or
        when the link itself tries again."""
        if self.error is None:
            wait: float | None = _RESCAN_SECONDS
        elif self.error.kind in FINAL or self._retried:
            wait = None
        else:
            wait = delay * random.uniform(0.8, 1.2)
        try:
            async with asyncio.timeout(wait):  # wait_for of Python 3.11 can lose a cancellation here
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _look_at_ports(self) -> None:
        """Who has the ports of servers that do not run: a launch would fail."""
        absent = [s for s in self.supervisors if verdict.phase(s.state) is Phase.ABSENT and s.server.port]
        if not absent:
            return
        with contextlib.suppress(HostError):
            taken = await self.link.listeners([s.server.port for s in absent])
            for supervisor in absent:
                who = taken.get(supervisor.server.port)
                if who != supervisor.state.listener and supervisor.state.run is None:
                    supervisor.apply(Watched(self._clock(), listening="foreign" if who else "none", listener=who))

    def _look_around(self) -> None:
        """Ask for memory, GPUs and disks; a driver that does not answer holds up nothing else."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look_at_machine())

    async def _look_at_machine(self) -> None:
        paths = [("model", path) for path in model_paths(s.server for s in self.supervisors)]
        with contextlib.suppress(HostError):
            machine = await self.link.machine(paths)
            free, total = machine.usable, machine.capacity
            self.state = replace(
                self.state, machine=machine, seen_at=self._clock(), memory_available=free, memory_total=total
            )
            self._changed()

    async def _scan(self) -> None:
        """Adopt the newest run of each server of this host."""
        async with self._scan_lock:
            try:
                records = await self.link.runs(self._profile)
            except HostError:
                return  # a lost link says so itself
            told = [record for record in records if not _begins(record)]
            newest = {record.server: record for record in sorted(told, key=lambda r: (r.alive, r.started))}
            found = [(s, newest.get(s.server.name)) for s in self.supervisors if not s.actions.busy]
            adoptions = [s.adopt(record, self.hello) for s, record in found if record and self.hello]
            for failed in await asyncio.gather(*adoptions, return_exceptions=True):
                if isinstance(failed, BaseException) and not isinstance(failed, HostError):
                    raise failed

    def _on_event(self, event: LinkEvent) -> None:
        if isinstance(event, LinkUp):
            self._retried = False
            self._connected(event.hello)
            self._wake.set()
        elif isinstance(event, LinkLost):
            self._retried = not event.final
            self._lost(event.error, event.retry_in)
        elif isinstance(event, Forwarded):
            self.show_forwards(tuple(
                replace(one, trouble=event.trouble) if one.port == event.port else one for one in self.state.forwards
            ))  # fmt: skip
        else:
            self._deliver(event)

    def show_forwards(self, forwards: tuple[ForwardState, ...]) -> None:
        """These ports of the host are on this machine now."""
        self.state = replace(self.state, forwards=forwards)
        self._changed()

    def _deliver(self, event: LogBytes | RunWatch | RunEnded) -> None:
        if isinstance(event, RunWatch):
            self._remember_memory(event)
        for supervisor in self.supervisors:
            if supervisor.follows(event.run):
                supervisor.on_event(event)
                return
        if isinstance(event, LogBytes):
            event.handled()

    def _remember_memory(self, seen: RunWatch) -> None:
        """A look at a run tells of its host's memory too, and comes more often than one at the host."""
        if seen.available is None or seen.total is None:
            return
        machine = self.state.machine
        if machine is not None and machine.limit is None:
            machine = replace(machine, available=seen.available)
        self.state = replace(self.state, memory_available=seen.available, memory_total=seen.total, machine=machine)

    def _connected(self, hello: Hello) -> None:
        back, self.hello, self.error = self.error is not None, hello, None
        self._show("connected")
        if back:
            for supervisor in self.supervisors:
                supervisor.apply(HostBack(self._clock()))

    def _lost(self, error: HostError, retry_in: float | None) -> None:
        self.error = error
        now = self._clock()
        first = self.state.phase == "connecting" and self.hello is None  # waited for since the attempt began
        waited = first or self.state.phase in ("refused", "unreachable")
        since = now if self.state.since is None or not waited else self.state.since
        self.state = replace(
            self.state,
            phase="refused" if error.kind in FINAL else "unreachable",
            message=str(error),
            since=since,
            retry_at=None if retry_in is None else now + retry_in,
            question=error.question,
        )
        for supervisor in self.supervisors:
            if supervisor.state.unreachable_since is None:
                supervisor.apply(HostLost(since, str(error)))
        self._changed()

    def _show(self, phase: str) -> None:
        if self.error and phase == "connecting":
            return  # the error stands until an attempt succeeds
        total = self.hello and (self.hello.memory_limit or self.hello.memory_total)
        self.state = replace(
            self.state,
            phase=phase,
            message="",
            since=self._clock(),
            retry_at=None,
            memory_total=total or None,
            cpus=self.hello.cpus if self.hello else None,
            question=None,
        )
        self._changed()


def _begins(record: RunRecord) -> bool:
    """Whether somebody launches it in this moment: what becomes of it is seen at the next look."""
    fresh = record.at is not None and record.at - record.started < _LAUNCH_SECONDS
    return record.fate == "unstarted" and fresh
