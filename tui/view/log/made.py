"""One merged file: made of the ends of several logs, then written on."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tui.view.log.heads import heads
from tui.view.log.merge import released
from tui.view.log.source import Followed, Source

LATE = 5.0
"""Seconds between stamps from which on a line is late."""
_AT_ONCE = 300  # pieces between two pauses
_DAY = 86400


class Limits(NamedTuple):
    """Bytes: of the ends of all logs together, of one log's at least and at most, and of the merged file."""

    ends: int = 32 << 20
    least: int = 256 << 10
    most: int = 4 << 20
    file: int = 128 << 20

    def share(self, logs: int) -> int:
        """Of one of so many logs."""
        return max(self.least, min(self.most, self.ends // max(1, logs)))


USUAL = Limits()


class Made:
    """One merged file, as long as it lasts."""

    def __init__(self, path: Path, wanted: Sequence[Followed], limits: Limits, tick: float) -> None:
        self.path, self.begun = path, tick
        self.heads = heads(one.server for one in wanted)
        share = limits.share(sum(one.path is not None for one in wanted))
        self.sources = {one.server: Source(one, self.heads[one.server], share) for one in wanted}
        self.size = self.lines = 0
        self.late = False  # a log brought old lines
        self._newest = -math.inf
        self._days: set[int] = set()  # at most two: that there are several is all that counts
        cut = [(s.first, s.followed.east or 0) for s in self.sources.values() if s.cut and s.first is not None]
        self._since = max(cut, default=None)  # and how far east the clock is that shows it
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = os.fdopen(os.open(path, flags, 0o600), "wb")

    def take_in(self, tick: float, now: float) -> Iterator[None]:
        """Write what is due. Raises ``OSError``."""
        for source in self.sources.values():
            if source.look(tick, now) and self._newest > -math.inf:
                self._since = self._newest, source.followed.east or 0
        yield from self.write(now)

    def write(self, now: float = -math.inf) -> Iterator[None]:
        """``now``: of lines in logs without time stamps. Raises ``OSError``."""
        sources = {id(source.stream): source for source in self.sources.values()}
        streams = [source.stream for source in self.sources.values()]
        for number, got in enumerate(released(streams, lambda stream: sources[id(stream)].fill(now))):
            if got is None or number % _AT_ONCE == 0:
                yield
            if got is None:
                continue
            stream, piece = got
            self._file.write(piece.text)
            self.size += len(piece.text)
            self.lines += piece.text.count(b"\n")
            if stream.timed and piece.at > -math.inf:
                self._judge(sources[id(stream)], piece.at, live=now > -math.inf)
        self._file.flush()

    def _judge(self, source: Source, at: float, *, live: bool) -> None:
        """Whether a log that was not there at first brings old lines, or has caught up."""
        if self._since is None:
            self._since = at, source.followed.east or 0
        if len(self._days) < 2:
            self._days.add(math.floor(at + (source.followed.east or 0)) // _DAY)
        if live and at >= self._newest - LATE:
            source.settled = True
        elif live and not source.settled:
            self.late = True
        self._newest = max(self._newest, at)

    @property
    def days(self) -> bool:
        """Whether its lines are of several days, by their hosts' clocks."""
        return len(self._days) > 1

    @property
    def since(self) -> str:
        if self._since is None:
            return ""
        at, east = (math.floor(seconds) for seconds in self._since)
        today = at + east >= (max(at, math.floor(self._newest)) + east) // _DAY * _DAY
        return time.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S", time.gmtime(at + east))

    def close(self) -> None:
        """Remove the file."""
        for source in self.sources.values():
            source.file.close()
        with contextlib.suppress(OSError):
            self._file.close()
        self.path.unlink(missing_ok=True)
