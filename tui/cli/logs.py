"""``hcs-tui logs``: a run's log, secrets masked, from its host."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import click

from tui.cli.asking import Asker
from tui.cli.exits import Exit
from tui.cli.options import narrate, open_profile, profile_argument
from tui.cli.waiting import AGAIN_SECONDS, heard
from tui.fleet.api import PATIENCE
from tui.host.answers import open_asking
from tui.host.api import HostError, HostErrorKind, Link, LinkEvent, LinkLost, LinkUp, LogBytes, RunEnded, RunRecord
from tui.host.connect import open_link
from tui.profile.model import Profile, Server
from tui.sglang.mask import mask
from tui.view.log.clean import shown

ANEW = "its log was cut short, or another file took its place: what follows is read from its beginning"
_BYTES_A_LINE = 1024  # a guess: when fewer lines than wanted come, we begin further back


async def logs(profile: Profile, server: Server, follow: bool, lines: int | None, run: str | None) -> Exit:
    """Print the last ``lines`` of a run (all without), then follow it until it ends or Ctrl-C."""
    ask = Asker()
    stream = LogStream(open_link(server.host, read_only=True), patience=None if follow else PATIENCE)
    try:
        await heard(server.host, open_asking(stream.link, ask), lambda: ask.asking)
        records = await stream.link.runs(profile.name, server.name)
        record = _choose(records, run)
        if record is None:
            ids = ", ".join(r.run for r in records[:5])
            why = f"has no run {run!r}; its runs: {ids}" if records else "never ran on " + server.host.name
            narrate(f"hcs-tui: {server.name} {why}")
            return Exit.USAGE
        await _print(stream, record, lines, follow)
        return Exit.OK if record.log_size is not None or follow else Exit.FAILED
    except HostError as error:
        narrate(f"hcs-tui: {error}")
        return Exit.UNREACHABLE
    finally:
        await stream.link.close()


def _choose(records: list[RunRecord], run: str | None) -> RunRecord | None:
    """The run whose id begins with ``run``, else the newest."""
    if run is None:
        return records[0] if records else None
    return next((r for r in records if r.run == run), None) or next((r for r in records if r.run.startswith(run)), None)


async def _print(stream: LogStream, record: RunRecord, lines: int | None, follow: bool) -> None:
    if record.trouble:
        narrate(f"{record.server}/{record.run}: {record.trouble}")
    size = record.log_size or 0
    reach = size if lines is None else max(lines, 1) * _BYTES_A_LINE
    while True:
        start = max(0, size - reach)
        tail = await _read(stream, record, start, size)
        if start == 0 or tail.count(b"\n") > (lines or 0):
            break
        reach *= 8
    carry = tail.rpartition(b"\n")[2] if follow and record.alive else b""  # no half of a line: it may be of a secret
    _write(_last_lines(tail[: len(tail) - len(carry)], lines, whole=start == 0))
    if follow and record.alive:
        async with aclosing(stream.bytes(record, size)) as chunks:
            async for data in chunks:
                whole, newline, carry = (carry + data).rpartition(b"\n")
                _write(whole + newline)
        _write(carry)


def _last_lines(data: bytes, lines: int | None, *, whole: bool) -> bytes:
    if lines is None:
        return data
    if not whole:
        data = data.partition(b"\n")[2]  # the first line may be cut
    kept = data.splitlines(keepends=True)
    return b"".join(kept[-lines:]) if lines else b""


async def _read(stream: LogStream, record: RunRecord, start: int, end: int) -> bytes:
    data = bytearray()
    if start < end:
        async with aclosing(stream.bytes(record, start)) as chunks:
            async for chunk in chunks:
                data += chunk
                if start + len(data) >= end:
                    break
    return bytes(data[: end - start])


class LogStream:
    """The log of one run at a time, over a link of its own. ``patience``: seconds for a link that is lost to come back;
    ``None``: for ever."""

    def __init__(self, link: Link, patience: float | None) -> None:
        self.link = link
        self._events: asyncio.Queue[LinkEvent] = asyncio.Queue()
        self._patience = patience
        self._lost: float | None = None
        self._said = 0.0
        link.subscribe(self._events.put_nowait)

    async def bytes(self, record: RunRecord, start: int) -> AsyncGenerator[bytes, None]:
        """The log from byte ``start`` on, until the run has ended and all of it came."""
        for asked in (self.link.follow(record.run, start, record.log_inode), self.link.watch(record.run)):
            try:
                await asked
            except HostError as error:
                if error.kind is not HostErrorKind.UNREACHABLE:
                    raise
                # a link that is lost at this moment asks again once it is back, and says so
        at, end = start, None if record.alive else (record.log_size or 0)
        try:
            while end is None or at < end:
                event = await self._events.get()
                if isinstance(event, LogBytes):
                    event.handled()
                    if event.anew:
                        narrate(f"{record.server}/{record.run}: {ANEW}")
                        at = event.offset
                    # what an earlier, broken-off read left in the queue lies elsewhere, or was seen
                    if event.offset <= at < event.offset + len(event.data):
                        yield event.data[at - event.offset :]
                        at = event.offset + len(event.data)
                elif isinstance(event, RunEnded):
                    end = event.log_size or at
                elif isinstance(event, LinkLost):
                    self._on_lost(event)
                elif isinstance(event, LinkUp) and self._lost is not None:
                    self._lost = None
                    narrate(f"{self.link.name}: is back")
        finally:
            with suppress(HostError):
                await self.link.unfollow(record.run)
                await self.link.unwatch(record.run)

    def _on_lost(self, event: LinkLost) -> None:
        """Say that the log waits for its host, and again from time to time. Raises ``HostError`` when that is
        no use."""
        now = asyncio.get_running_loop().time()
        since = now if self._lost is None else self._lost
        if event.final or (self._patience is not None and now > since + self._patience):
            raise event.error
        if self._lost is None or now >= self._said + AGAIN_SECONDS:
            self._said = now
            narrate(f"{event.error} Waiting for it to come back." if self._lost is None else str(event.error))
        self._lost = since


def _write(data: bytes) -> None:
    """To stdout, masked: byte by byte into a file or pipe; into a terminal as safe lines, without escapes."""
    out = sys.stdout.buffer
    for line in data.splitlines(keepends=True):
        if sys.stdout.isatty():
            out.writelines(text.encode("utf-8", "replace") + b"\n" for text in shown(line.rstrip(b"\r\n")))
        else:
            out.write(mask(line))
    out.flush()


@click.command("logs")
@profile_argument
@click.argument("server", metavar="SERVER")
@click.option("-f", "--follow", is_flag=True, help="Go on until the run ends.")
@click.option("-n", "lines", type=click.IntRange(min=0), metavar="LINES", help="Only the last lines.")
@click.option("--run", metavar="ID", help="An earlier run, by the beginning of its id [the newest].")
def command(profile: str, server: str, follow: bool, lines: int | None, run: str | None) -> Exit:
    """Print a run's log, with secrets masked."""
    loaded = open_profile(profile)
    return asyncio.run(logs(loaded, loaded.server(server), follow, lines, run))
