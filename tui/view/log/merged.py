"""The logs of several servers as one file, ordered by time, that grows as they do: what the merged view shows.

It begins with the ends of the logs. What comes in afterwards is held back for a moment, so that lines of other servers
that were written before it can still be put before it. A line that is later than that (its host was out of reach, or
its clock is wrong) is shown when it comes; a log that brings old lines only now, as at a re-adoption, has the file made
anew, with all in order, a few times. A log without any time stamps stands first, and what is added to it where it was
seen. Nothing is kept in memory but a block of each log; the file is this user's own, and ends with the view.
"""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tui.view.log.heads import heads, inks
from tui.view.log.merge import released
from tui.view.log.source import Followed, Source

LATE = 5.0
"""Seconds between stamps from which on a line is late."""
GAP = 4.0
"""Seconds at least from one making anew to the next."""
TRIES = 12
"""How often at most old lines are put in order."""
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


class _Made:
    """One merged file, as long as it lasts."""

    def __init__(self, path: Path, wanted: Sequence[Followed], limits: Limits, tick: float) -> None:
        self.path, self.begun = path, tick
        self.heads = heads(one.server for one in wanted)
        share = limits.share(sum(one.path is not None for one in wanted))
        self.sources = {one.server: Source(one, self.heads[one.server], share) for one in wanted}
        self.size = self.lines = 0
        self.late = False  # a log brought old lines
        self._newest = -math.inf
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
        if live and at >= self._newest - LATE:
            source.settled = True
        elif live and not source.settled:
            self.late = True
        self._newest = max(self._newest, at)

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


class MergedLog:
    """The merged file of the servers that ``work`` is given. ``clock`` tells seconds, ``now`` Unix seconds.

    Raises ``OSError`` where there can be no folder for it.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        limits: Limits = USUAL,
    ) -> None:
        self._now, self._clock, self._limits = now, clock, limits
        self._folder = tempfile.TemporaryDirectory(prefix="hcs-tui-merged-")  # its mode is 0700
        self._count = 0
        self._tries = TRIES
        self._made: _Made | None = None

    @property
    def path(self) -> Path | None:
        """The file, ``None`` while it is made first. Another one when it was made anew."""
        return self._made.path if self._made else None

    @property
    def inks(self) -> dict[str, str]:
        """What stands before the lines of each server → its ink."""
        return inks(self._made.heads.values()) if self._made else {}

    @property
    def lines(self) -> int:
        return self._made.lines if self._made else 0

    @property
    def since(self) -> str:
        """From when on all lines of all logs are there, as their stamps tell it; with its day where that is over."""
        return self._made.since if self._made else ""

    @property
    def zones(self) -> bool:
        """Whether the hosts' clocks show different times."""
        return len({s.followed.east for s in self._made.sources.values()} - {None}) > 1 if self._made else False

    def work(self, wanted: Sequence[Followed]) -> Iterator[None]:
        """Take in what came since the last time; ``None`` now and then, so that others can run. Raises ``OSError``."""
        made, tick, now = self._made, self._clock(), self._now()
        if made is None or self._outdated(made, wanted, tick):
            yield from self._make(wanted, tick)
            return
        for one in wanted:
            source = made.sources[one.server]
            if one.path != source.followed.path and not _same_run(source.followed, one):
                source.go_on(one, now)
        yield from made.take_in(tick, now)

    def _outdated(self, made: _Made, wanted: Sequence[Followed], tick: float) -> bool:
        """Whether other servers are wanted; or, not too often, whether a log that was there in parts is there as a
        whole now, old lines came, or the file has become too large."""
        if [one.server for one in wanted] != list(made.sources):
            return True
        if tick - made.begun < GAP:
            return False
        known = [made.sources[one.server].followed for one in wanted]
        whole = any(_same_run(old, new) and old.path != new.path for old, new in zip(known, wanted, strict=True))
        late = made.late and self._tries > 0
        self._tries -= late
        return whole or late or made.size > self._limits.file

    def _make(self, wanted: Sequence[Followed], tick: float) -> Iterator[None]:
        """Merge the ends of all logs into a new file, which then takes the old one's place."""
        self._count += 1
        made = _Made(Path(self._folder.name) / f"{self._count}.log", wanted, self._limits, tick)
        try:
            yield from made.write()
        except BaseException:
            made.close()
            raise
        if self._made:
            self._made.close()
        self._made = made

    def close(self) -> None:
        """Remove it all."""
        if self._made:
            self._made.close()
            self._made = None
        self._folder.cleanup()


def _same_run(old: Followed, new: Followed) -> bool:
    """Whether both are logs of one run."""
    return old.path is not None and new.path is not None and old.run == new.run
