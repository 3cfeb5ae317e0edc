"""A ``Link`` over any channel: one agent at a time, tried again after a loss, logs resumed at the byte."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from tui.host.api import (
    Found,
    Hello,
    HostError,
    HostErrorKind,
    HttpAnswer,
    KillReport,
    LaunchSpec,
    Lease,
    LinkEvent,
    LinkLost,
    LinkUp,
    LogBytes,
    PrunedRun,
    RunEnded,
    RunRecord,
    RunWatch,
)
from tui.host.awake import SleepWatch
from tui.host.channel import Channel
from tui.host.forward import Forwards
from tui.host.machine import Machine, machine_of
from tui.host.records import exit_of, record_of
from tui.host.session import Frame, Session
from tui.host.wording import FINAL

FIRST_RETRY_SECONDS = 0.5
LAST_RETRY_SECONDS = 60.0
LAUNCH_SECONDS = 60.0
PRUNE_SECONDS = 120.0  # large files take their time to go
KILL_SECONDS = 60.0  # for the looks, and for the keeper to leave
CHECK_SECONDS = 45.0
DISCOVER_SECONDS = 30.0
_log = logging.getLogger(__name__)


@dataclass
class _Stream:
    """A log that is wanted, or a stretch of it up to ``end``: where it goes on after a reconnect."""

    run: str
    number: int
    offset: int
    inode: int | None
    end: int | None = None
    middle: bool = False

    def began_anew(self, inode: int, offset: int) -> bool:
        """Whether what comes is not what was to come next."""
        return self.end is None and (offset != self.offset or self.inode not in (None, inode))


class HostLink:
    """One host; implements ``Link``. ``open_channel(mark)`` starts the agent's interpreter and raises ``HostError``."""

    def __init__(
        self, name: str, open_channel: Callable[[str], Awaitable[Channel]], config: Mapping[str, object] | None = None
    ) -> None:
        self.name = name
        self._open_channel = open_channel
        self._config = dict(config or {})
        self._listeners: list[Callable[[LinkEvent], None]] = []
        self._session: Session | None = None
        self._connecting = asyncio.Lock()
        self._retry: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False
        self._was_lost = False
        self._given_up: HostError | None = None  # why it is not tried again by itself
        self._numbers = itertools.count(1)
        self._streams: dict[int, _Stream] = {}
        self._watched: set[str] = set()
        self._forwards = Forwards(self._tell)

    # connection

    async def open(self) -> Hello:
        """Connect, or return at once when connected. A link that is waiting to try again tries now."""
        async with self._connecting:
            if self._session is not None and self._session.hello is not None:
                return self._session.hello
            self._closed = False
            waiting = self._retry
            hello = await self._connect()
        if waiting is not None and waiting is not asyncio.current_task():
            waiting.cancel()
        return hello

    async def _connect(self) -> Hello:
        mark = Session.fresh_mark()
        try:
            channel = await self._open_channel(mark)
        except OSError as error:
            raise HostError(HostErrorKind.UNREACHABLE, f"{self.name}: {error}.") from error
        session = Session(self.name, channel, self._on_frame, lambda error: self._on_lost(session, error))
        try:
            hello = await session.start(mark, self._config)
        except BaseException:
            await session.close()
            raise
        self._session, self._given_up = session, None
        if self._was_lost:
            self._was_lost = False
            self._tell(LinkUp(hello))
        await self._resume(session)
        return hello

    async def _resume(self, session: Session) -> None:
        """Ask again for what was followed and watched; a run that is gone meanwhile is let go."""
        for stream in list(self._streams.values()):
            with contextlib.suppress(HostError):
                await self._ask(session, stream)
        for run in list(self._watched):
            with contextlib.suppress(HostError):
                await session.request("watch", run=run)
        await self._forwards.resume(session)

    def _on_lost(self, session: Session, error: HostError) -> None:
        if session is not self._session or self._closed:
            return
        self._session = None
        self._was_lost = True
        self._close_later(session)
        self._retry = asyncio.create_task(self._try_again(error))

    def _close_later(self, session: Session) -> None:
        task = asyncio.create_task(session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _try_again(self, error: HostError) -> None:
        """Growing, capped, jittered delays; never after a refusal, which could lock the user out."""
        delay = FIRST_RETRY_SECONDS
        while True:
            final = error.kind in FINAL
            wait = delay * random.uniform(0.75, 1.25)
            self._given_up = error if final else None
            self._tell(LinkLost(error, final, None if final else wait))
            if final:
                return
            await _rest(wait)
            try:
                await self.open()
                return
            except HostError as again:
                error = again
            delay = min(delay * 2, LAST_RETRY_SECONDS)

    async def close(self) -> None:
        """Give the connection up. Servers live on."""
        self._closed = True
        if self._retry is not None:
            self._retry.cancel()
            await asyncio.gather(self._retry, return_exceptions=True)
            self._retry = None
        self._forwards.close()
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _live(self) -> Session:
        if self._session is None:
            raise self._given_up or HostError(
                HostErrorKind.UNREACHABLE, f"{self.name} is not connected.", "It is tried again by itself."
            )
        return self._session

    # events

    def subscribe(self, on_event: Callable[[LinkEvent], None]) -> None:
        self._listeners.append(on_event)

    def _tell(self, event: LinkEvent) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                _log.exception("a listener of %s failed on %s", self.name, type(event).__name__)

    def _on_frame(self, frame: Frame) -> None:
        header, body = frame
        kind = header.pop("t", None)
        if kind == "log":
            self._on_log(header, body)
        elif kind == "watch":
            self._tell(RunWatch(**{**header, "pids": tuple(header["pids"]), "warnings": tuple(header["warnings"])}))
        elif kind == "ended":
            self._watched.discard(header["run"])
            self._tell(RunEnded(header["run"], exit_of(header["exit"]), header["log_size"]))

    def _on_log(self, header: dict[str, Any], body: bytes) -> None:
        session = self._session
        inode, offset = header["i"], header["o"]
        stream = self._streams.get(header["s"])
        if stream is None:
            if session is not None:
                session.consumed(len(body))
            return
        anew = stream.began_anew(inode, offset)
        stream.offset, stream.inode = offset + len(body), inode
        if stream.end is not None and stream.offset >= stream.end:
            del self._streams[stream.number]
        waiting = [len(body)]

        def handled() -> None:
            if waiting and session is not None:
                session.consumed(waiting.pop())

        self._tell(LogBytes(stream.run, inode, offset, body, anew, handled))

    # requests

    async def launch(self, spec: LaunchSpec) -> RunRecord:
        _, body = await self._live().request("launch", _spec(spec), within=LAUNCH_SECONDS)
        return record_of(json.loads(body))

    async def runs(self, profile: str | None = None, server: str | None = None) -> list[RunRecord]:
        _, body = await self._live().request("runs", profile=profile, server=server)
        return [record_of(record) for record in json.loads(body)]

    async def prune(
        self, profile: str, server: str, *, keep: int | None = None, keep_bytes: float | None = None, dry: bool = False
    ) -> list[PrunedRun]:
        """Delete a server's old runs on the host: all but the newest ``keep`` and what is within ``keep_bytes``."""
        _, body = await self._live().request(
            "prune", profile=profile, server=server, keep=keep, keep_bytes=keep_bytes, dry=dry, within=PRUNE_SECONDS
        )
        return [PrunedRun(**told) for told in json.loads(body)]

    async def read(self, run: str, offset: int, size: int) -> bytes:
        """A stretch of a run's log, at most 4 MiB; less at the log's end."""
        return (await self._live().request("read", run=run, offset=offset, size=size))[1]

    async def follow(self, run: str, offset: int = 0, inode: int | None = None) -> None:
        await self._begin(_Stream(run, next(self._numbers), offset, inode))

    async def fill(self, run: str, start: int, end: int, inode: int | None = None, *, middle: bool = False) -> None:
        await self._begin(_Stream(run, next(self._numbers), start, inode, end, middle))

    async def _begin(self, stream: _Stream) -> None:
        """Ask for a stream in place of the one of its kind; without a connection it is asked for after the next one."""
        for former in self._of(stream.run):
            if (former.end is None) == (stream.end is None):
                del self._streams[former.number]
                self._forget(former)
        self._streams[stream.number] = stream
        try:
            await self._ask(self._live(), stream)
        except HostError as error:
            if error.kind is HostErrorKind.REFUSED:
                self._streams.pop(stream.number, None)
            raise

    def _of(self, run: str) -> list[_Stream]:
        return [stream for stream in self._streams.values() if stream.run == run]

    async def _ask(self, session: Session, stream: _Stream) -> None:
        asked: dict[str, Any] = {"run": stream.run, "s": stream.number, "offset": stream.offset, "inode": stream.inode}
        if stream.end is None:
            await session.request("follow", **asked)
        else:
            await session.request("fill", **asked, end=stream.end, urgency=2 if stream.middle else 1)

    def _forget(self, stream: _Stream) -> None:
        if self._session is not None:
            self._session.tell("unfollow", s=stream.number)

    async def unfollow(self, run: str) -> None:
        for stream in self._of(run):
            del self._streams[stream.number]
            self._forget(stream)

    async def watch(self, run: str) -> None:
        self._watched.add(run)
        try:
            await self._live().request("watch", run=run)
        except HostError as error:
            if error.kind is HostErrorKind.REFUSED:
                self._watched.discard(run)
            raise

    async def unwatch(self, run: str) -> None:
        if run in self._watched:
            self._watched.discard(run)
            await self._live().request("unwatch", run=run)

    async def kill(
        self, run: str, grace: float, *, who: str = "", sweep: bool = False, again: bool = False, settle: float = 60.0
    ) -> KillReport:
        _, body = await self._live().request(
            "kill", run=run, grace=grace, who=who, sweep=sweep, again=again, settle=settle,
            within=grace + settle + KILL_SECONDS,
        )  # fmt: skip
        told = json.loads(body)
        return KillReport(
            run, tuple(told["found"]), tuple(told["signals"]), tuple(told["left"]), told["seconds"], told["port_free"],
            told["gpu"],
        )  # fmt: skip

    async def leases(
        self, profile: str, servers: Sequence[str], *, take: bool = False, who: str = "", told: object = None
    ) -> Mapping[str, Lease]:
        kind = "lease" if take else "leases"
        _, body = await self._live().request(kind, profile=profile, servers=list(servers), who=who, told=told or {})
        return {name: Lease(**told) for name, told in json.loads(body).items()}

    async def get(
        self,
        port: int,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 5.0,  # the agent keeps it
    ) -> HttpAnswer:
        return await self._http("GET", port, path, b"", headers, timeout)

    async def post(
        self,
        port: int,
        path: str,
        body: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,  # the agent keeps it
    ) -> HttpAnswer:
        return await self._http("POST", port, path, body, headers, timeout)

    async def _http(
        self, method: str, port: int, path: str, body: bytes, headers: Mapping[str, str] | None, seconds: float
    ) -> HttpAnswer:
        found, data = await self._live().request(
            "http", body=body, within=seconds + 5.0,
            method=method, port=port, path=path, headers=dict(headers or {}), seconds=seconds,
        )  # fmt: skip
        return HttpAnswer(found["status"], data, found["seconds"], found.get("first"))

    async def check(self, spec: LaunchSpec) -> list[tuple[str, str, str, str]]:
        _, body = await self._live().request("check", _spec(spec), within=CHECK_SECONDS)
        return [(row[0], row[1], row[2], row[3]) for row in json.loads(body)]

    async def discover(self) -> list[Found]:
        _, body = await self._live().request("discover", within=DISCOVER_SECONDS)
        return [Found(**{**told, "record": record_of(told["record"])}) for told in json.loads(body)]

    async def listeners(self, ports: Sequence[int]) -> Mapping[int, str]:
        _, body = await self._live().request("listeners", ports=list(ports))
        return {int(port): who for port, who in json.loads(body).items() if who}

    async def machine(self, paths: Sequence[tuple[str, str]] = ()) -> Machine:
        _, body = await self._live().request("machine", paths=[list(one) for one in paths])
        return machine_of(json.loads(body))

    async def forward(self, port: int, *, address: str = "127.0.0.1", local: int = 0) -> int:
        return await self._forwards.open(self._live(), port, address, local)

    def unforward(self, port: int) -> None:
        self._forwards.close(port)


async def _rest(seconds: float) -> None:
    """Sleep; when this machine slept meanwhile, that is enough."""
    sleep = SleepWatch()
    while seconds > 0 and not sleep.slept():
        await asyncio.sleep(min(seconds, 1.0))
        seconds -= 1.0


def _spec(spec: LaunchSpec) -> dict[str, Any]:
    asked = {field.name: getattr(spec, field.name) for field in fields(spec)}
    return {**asked, "env": dict(spec.env)}
