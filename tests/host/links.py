"""Links to this machine for tests, what they said, and the processes that they started."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from tests.host.sshd import Sshd
from tests.waiting import DEADLINE
from tui.host.api import HostError, LaunchSpec, LinkEvent, LinkLost, LinkUp, LogBytes, RunEnded, RunRecord, RunWatch
from tui.host.channel import PipeChannel
from tui.host.connect import LocalLink, SshLink
from tui.host.link import HostLink

E = TypeVar("E", LogBytes, RunWatch, RunEnded, LinkLost, LinkUp)


@dataclass(frozen=True)
class HostOf:
    """A host of a profile, as far as links care."""

    ssh: str = "local"
    name: str = "box"
    identity: str | None = None
    known_hosts: str | None = None
    jump: str | None = None
    python: str | None = None
    state_dir: str | None = None


class Ear:
    """Hears the events of a link; logs are put together by offset, and a gap or a repetition fails the test."""

    def __init__(self, link: HostLink) -> None:
        self.events: list[LinkEvent] = []
        self.logs: dict[str, bytearray] = {}
        self.flaws: list[str] = []
        self._changed = asyncio.Event()
        link.subscribe(self._on_event)

    def _on_event(self, event: LinkEvent) -> None:
        if isinstance(event, LogBytes):
            log = self.logs.setdefault(event.run, bytearray())
            if event.offset != len(log):
                self.flaws.append(f"{event.run}: offset {event.offset}, had {len(log)} bytes")
            log[event.offset : event.offset + len(event.data)] = event.data
            event.handled()
        else:
            self.events.append(event)
        self._changed.set()

    async def until(self, condition: Callable[[], bool], patience: float = DEADLINE) -> None:
        """Wait for the events that make ``condition`` true."""
        async with asyncio.timeout(patience):
            while not condition():
                self._changed.clear()
                await self._changed.wait()
        assert not self.flaws, self.flaws

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    async def ended(self, run: str, patience: float = DEADLINE) -> RunEnded:
        await self.until(lambda: any(event.run == run for event in self.of(RunEnded)), patience)
        return next(event for event in self.of(RunEnded) if event.run == run)

    async def log_until(self, run: str, text: bytes) -> bytes:
        await self.until(lambda: text in self.logs.get(run, b""))
        return bytes(self.logs[run])

    async def log_of_size(self, run: str, size: int) -> bytes:
        await self.until(lambda: len(self.logs.get(run, b"")) >= size)
        return bytes(self.logs[run])


def python(code: str, *arguments: str, server: str = "s", **more: Any) -> LaunchSpec:
    """A server that is a few lines of Python."""
    spec = LaunchSpec("p", server, (sys.executable, "-c", code, *arguments), who="alice@desk")
    return replace(spec, **more)


async def follow(link: HostLink, spec: LaunchSpec) -> RunRecord:
    """Launch, follow and watch."""
    record = await link.launch(spec)
    await link.follow(record.run)
    await link.watch(record.run)
    return record


async def refusal(link: HostLink, spec: LaunchSpec) -> HostError:
    """The error that a launch must end in."""
    try:
        record = await link.launch(spec)
    except HostError as error:
        return error
    raise AssertionError(f"was launched: {record}")


def ssh_host(server: Sshd, state: Path, **more: Any) -> HostOf:
    host = HostOf(server.address, identity=server.identity, known_hosts=server.known_hosts, state_dir=str(state))
    return replace(host, **more)


@asynccontextmanager
async def opened(host: HostOf, **config: object) -> AsyncIterator[HostLink]:
    """An open link; whatever it launched is gone afterwards."""
    link: HostLink = LocalLink(host, **config) if host.ssh == "local" else SshLink(host, **config)
    await link.open()
    try:
        yield link
    finally:
        await end_all(link)
        await link.close()


async def end_all(link: HostLink) -> None:
    try:
        await link.open()
        for record in await link.runs():
            if record.alive or (record.exit and record.exit.left):
                await link.kill(record.run, 0)
    except HostError:
        pass


def agent_pid(link: HostLink) -> int:
    """The agent of a local link."""
    session = link._session
    assert session is not None and isinstance(session._channel, PipeChannel)
    return session._channel.pid
