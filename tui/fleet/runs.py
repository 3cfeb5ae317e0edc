"""The runs of a profile's servers as their hosts keep them, each read as far as its log tells what became of it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tui.fleet.translate import lost_words, run_exit
from tui.host.answers import open_asking
from tui.host.api import Hello, HostError, Link, PrunedRun, RunRecord
from tui.host.connect import open_link
from tui.profile.model import Host, Server
from tui.sglang.events import Event, Exited, Launched, LogRead, Noted, StopAsked, Vanished, Watched
from tui.sglang.facts import read
from tui.sglang.model import RunInfo, ServerInfo
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

_STEP = 1 << 20  # bytes of a log that are asked for at once
GLANCE = 128 << 10  # bytes of a log's head, and of its tail, that a list of runs looks at
WHOLE = 16 << 20  # the same for a comparison: a log of less than twice that is read whole


@dataclass(frozen=True, slots=True)
class PastRun:
    """One run, living or ended: what its host recorded, and what follows from that and, once it was ``read``, from its
    log."""

    host: str
    record: RunRecord
    state: ServerState
    read: bool = True


class RunsOfHost:
    """The runs on one host. Methods raise ``HostError``."""

    def __init__(self, host: Host, link: Link, hello: Hello) -> None:
        self.host, self._link, self._hello = host, link, hello

    async def records(self, profile: str, server: str | None = None) -> list[RunRecord]:
        """Newest first."""
        return await self._link.runs(profile, server)

    def unread(self, record: RunRecord) -> PastRun:
        """A run as its record alone tells."""
        state = past_state(record, self.host.name, self._hello.utc_offset)
        for event in _ending(record):
            state = reduce(state, event)
        return PastRun(self.host.name, record, state, read=False)

    async def look(self, record: RunRecord, reach: int = GLANCE) -> PastRun:
        """Read a run's log, ``reach`` bytes from its start and from its end."""
        state = past_state(record, self.host.name, self._hello.utc_offset)
        parts = [part async for part in self._log(record, reach)]
        state = reduce(state, LogRead(time.time(), read(parts)))
        for event in _ending(record):
            state = reduce(state, event)
        return PastRun(self.host.name, record, state)

    async def _log(self, record: RunRecord, reach: int) -> AsyncIterator[bytes]:
        size = record.log_size or 0
        stretches = [(0, size)] if size <= 2 * reach else [(0, reach), (size - reach, size)]
        for start, end in stretches:
            if start:
                yield b"\n"  # what stands between is left out
            while start < end:
                data = await self._link.read(record.run, start, min(_STEP, end - start))
                if not data:
                    return
                yield data
                start += len(data)

    async def prune(self, profile: str, server: str, keep: int, keep_bytes: float, dry: bool) -> list[PrunedRun]:
        return await self._link.prune(profile, server, keep=keep, keep_bytes=keep_bytes, dry=dry)


@asynccontextmanager
async def runs_of(host: Host, ask: Callable[[HostError], Awaitable[bool]] | None = None) -> AsyncIterator[RunsOfHost]:
    """Connect to ``host`` for the length of the block; ``ask`` as in ``open_asking``. Raises ``HostError``."""
    link = open_link(host)
    try:
        yield RunsOfHost(host, link, await open_asking(link, ask))
    finally:
        await link.close()


def past_state(record: RunRecord, host: str, utc_offset: int) -> ServerState:
    """The state of a run of which nothing but its record is known."""
    state = ServerState(ServerInfo(record.server, host=host, log=record.log))
    run = RunInfo(
        record.run, record.pid, record.started, record.argv, record.log,
        boot_id=record.boot_id, utc_offset=utc_offset, adopted=True,
    )  # fmt: skip
    return reduce(state, Launched(record.started, run))


def _ending(record: RunRecord) -> Iterable[Event]:
    now = time.time()
    if record.trouble:
        yield Noted(now, record.trouble)
    if record.stop_asked:
        yield StopAsked(record.stop_asked)
    if record.alive:
        yield Watched(now, alive=True)
    elif record.exit is not None:
        yield Exited(record.exit.at, run_exit(record.exit))
    else:
        yield Vanished(now)
        yield Noted(now, lost_words(record.fate))


def hosts_of(servers: Iterable[Server]) -> list[Host]:
    """The hosts of ``servers``, each once."""
    return list({server.host.name: server.host for server in servers}.values())
