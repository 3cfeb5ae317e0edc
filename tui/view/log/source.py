"""One server's log on its way into the merged file."""

from __future__ import annotations

import math
from collections import deque
from pathlib import Path
from typing import NamedTuple

from tui.view.log.file import BLOCK, LogFile
from tui.view.log.merge import Stream, first_time

HOLD = 0.5
"""Seconds that a line waits for earlier ones of other servers."""
REST = 3.0
"""Seconds without a byte after which an unfinished line is shown as it stands."""
_LAST = 16  # blocks of a log that another one follows, read at once


class Followed(NamedTuple):
    """A server whose log is merged. ``east``: seconds that its host's clock is east of UTC."""

    server: str
    path: Path | None
    east: int | None = None

    def same_log(self, other: Followed) -> bool:
        """Whether both are the log of one run, each run having a file of its own: the end of one whose middle is
        missing is in a file that is named after it (``tui.fleet.spool``)."""
        if self.path is None or other.path is None:
            return False
        shorter, longer = sorted((str(self.path), str(other.path)), key=len)
        return longer == shorter or longer.startswith(f"{shorter}.")


class Source:
    """A log, as far as it has been merged: of one that is there already, the last ``share`` bytes."""

    def __init__(self, followed: Followed, head: str, share: int) -> None:
        self._head, self._share = head.encode(), share
        self.settled = False  # it brings nothing old any more
        self._begin(followed)
        self.stream.due = self.file.size  # of what is there, nothing has to wait

    def _begin(self, followed: Followed, file: LogFile | None = None) -> None:
        self.followed = followed
        self.file = file or LogFile(followed.path)
        self.file.look()
        self._generation = self.file.generation
        start = max(0, self.file.size - self._share)
        east = float(followed.east or 0)
        self.stream = Stream(self._head, east, start, inside=start > 0)
        self.first = first_time(self.file.read(start, min(self.file.size, start + BLOCK)), east)
        if self.first is not None:
            self.stream.begin_at(self.first)
        self.cut = start > 0  # not all of it is merged
        self._sizes: deque[tuple[float, int]] = deque()  # when the file was seen to be so large
        self._size, self._grew = -1, -math.inf

    def go_on(self, followed: Followed, now: float) -> None:
        """With another file: the server's first log, or that of its next run."""
        self.file.look()
        for _ in range(_LAST):
            if self.file.generation != self._generation or not self.fill(now):
                break
        self.file.close()
        self._again(followed, None, "… a new run" if self.followed.path else "")
        self.settled = False

    def _again(self, followed: Followed, file: LogFile | None, said: str) -> None:
        """What was read before still comes out."""
        self.stream.tell_unfinished()
        if said:
            self.stream.say(said, 0)
        queued = [piece._replace(end=0) for piece in self.stream.queue]
        self._begin(followed, file)
        self.stream.queue.extend(queued)

    def look(self, tick: float, now: float) -> bool:
        """See how far the file has grown, and what of it may wait no longer; whether some of it is passed over."""
        size = self.file.look()
        if self.file.generation != self._generation:
            known = self._generation > 0
            self._again(self.followed, self.file, "… its log begins anew" if known else "")
        if size != self._size:
            self._size, self._grew = size, tick
            self._sizes.append((tick, size))
        while self._sizes and self._sizes[0][0] <= tick - HOLD:
            self.stream.due = self._sizes.popleft()[1]
        if tick - self._grew >= REST:
            self.stream.tell_unfinished(now)
        if size - self.stream.offset <= 2 * self._share:
            return False
        self.stream.leap(size - self._share)
        return True

    def fill(self, now: float) -> bool:
        """Read the next block, if there is one. ``now``: the time of lines in logs without time stamps; minus infinity
        at first, when nobody knows that."""
        offset = self.stream.offset
        data = self.file.read(offset, min(self.file.size, offset + BLOCK))
        if data:
            self.stream.feed(data, now)
        elif now == -math.inf:
            self.stream.tell_unfinished()  # of a saved log, nothing else would show it
        return bool(data)
