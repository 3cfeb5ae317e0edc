"""The logs of several servers as one file, ordered by time, that grows as they do: what the merged view shows.

It begins with the ends of the logs. What comes in afterwards is held back for a moment, so that lines of other servers
that were written before it can still be put before it. A line that is later than that (its host was out of reach, or
its clock is wrong) is shown when it comes; a log that brings old lines only now, as at a re-adoption, has the file made
anew, with all in order, a few times. A log without any time stamps stands first, and what is added to it where it was
seen. Nothing is kept in memory but a block of each log; the file is this user's own, and ends with the view.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tui.view.log.heads import inks
from tui.view.log.made import USUAL, Limits, Made
from tui.view.log.source import Followed

GAP = 4.0
"""Seconds at least from one making anew to the next."""
TRIES = 12
"""How often at most old lines are put in order."""
_FOLDER = "hcs-tui-merged-"


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
        _drop_orphans()
        self._folder = tempfile.TemporaryDirectory(prefix=f"{_FOLDER}{os.getpid()}-")  # its mode is 0700
        self._count = 0
        self._tries = TRIES
        self._made: Made | None = None

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
    def days(self) -> bool:
        """Whether the lines are of several days."""
        return self._made.days if self._made else False

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
            if one.path is not None and not one.same_log(source.followed):
                source.go_on(one, now)
        yield from made.take_in(tick, now)

    def _outdated(self, made: Made, wanted: Sequence[Followed], tick: float) -> bool:
        """Whether other servers are wanted; or, not too often, whether a log that was there in parts is there as a
        whole now, more is known of a host's clock, old lines came, or the file has become too large."""
        if [one.server for one in wanted] != list(made.sources):
            return True
        if tick - made.begun < GAP:
            return False
        known = [made.sources[one.server].followed for one in wanted]
        other = any(old.same_log(new) and old != new for old, new in zip(known, wanted, strict=True))
        late = made.late and self._tries > 0
        self._tries -= late
        return other or late or made.size > self._limits.file

    def _make(self, wanted: Sequence[Followed], tick: float) -> Iterator[None]:
        """Merge the ends of all logs into a new file, which then takes the old one's place."""
        self._count += 1
        made = Made(Path(self._folder.name) / f"{self._count}.log", wanted, self._limits, tick)
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


def _drop_orphans() -> None:
    """Remove what programs left that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        pid = folder.name.removeprefix(_FOLDER).partition("-")[0]
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except (OSError, ValueError, OverflowError):
            continue
