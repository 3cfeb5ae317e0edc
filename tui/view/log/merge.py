"""Lines of several logs in one order, by their time stamps. Pure: bytes in, stamped pieces out; no clock, no files.

A line without a time stamp, as those of tracebacks and progress bars, has the time of the line before it in its log.
Within a log the order is the log's own, also where its stamps go back. Between logs it is by time, and of the same time
the first log's lines come first. Only stamps with a date count, where ``tui.sglang.lines`` reads a line's time too.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from tui.sglang.lines import local_seconds
from tui.view.log.clean import MAX_BYTES, shown

_TIME = rb"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?"
_STAMP, _BARE = re.compile(rb"\[" + _TIME), re.compile(_TIME)


class Piece(NamedTuple):
    """Whole lines of one log with the same time, ready to be written. ``at``: seconds of UTC, or of the local clock
    where nobody knows what that is; ``end``: the offset behind them in their log."""

    at: float
    end: int
    text: bytes


class Stream:
    """One log, read in order. ``head`` stands before each of its lines that is given out; its clock is ``east``
    seconds east of UTC.

    ``offset`` is the next byte wanted. Where that lies ``inside`` a line, this line is passed over. ``queue`` holds
    what is not given out yet, and ``due`` is how far that may wait no longer, as an offset.
    """

    def __init__(self, head: bytes, east: float = 0.0, offset: int = 0, *, inside: bool = False) -> None:
        self.queue: deque[Piece] = deque()
        self.offset = offset
        self.due = 0
        self.at = -math.inf  # of the newest line
        self._head, self._between, self._east = head, b"\n" + head, east
        self._inside = inside
        self.timed = False  # a stamp was seen
        self._stamp, self._seconds = b"", 0.0  # the newest stamp, and its time
        self._part = self._told = b""  # of the unfinished line: what there is, and what was given out
        self._lines: list[bytes] = []  # of the next piece
        self._end = 0

    def begin_at(self, at: float) -> None:
        """The time of lines before the first stamp."""
        self.at, self.timed = at, True

    def feed(self, data: bytes, now: float = -math.inf) -> None:
        """Take the next bytes. ``now`` is the time of lines in a log that had no time stamp so far."""
        if self._inside:
            end = data.find(b"\n") + 1
            self.offset += end or len(data)
            if not end:
                return
            self._inside, data = False, data[end:]
        *lines, rest = data.split(b"\n")
        for raw in lines:
            self.offset += len(raw) + 1
            if self._part:
                raw, self._part = _kept(self._part + raw), b""
                told, self._told = self._told, b""
                if raw == told:
                    continue
            self._put(raw, self.offset, now)
        self._flush()
        if rest:
            self._part = _kept(self._part + rest)
            self.offset += len(rest)

    def tell_unfinished(self, now: float = -math.inf) -> None:
        """Give out the unfinished line as it stands. Once it goes on it comes again, whole: what hides secrets must
        not see halves of them."""
        if self._part != self._told:
            self._told = self._part
            self._put(self._part, self.offset, now)
            self._flush()

    def leap(self, offset: int) -> None:
        """Pass over what is before ``offset``; a line says so."""
        passed = offset - self.offset
        self._part = self._told = b""
        self._inside, self.offset = True, offset
        self.say(f"… {passed / 1e6:.1f} MB passed over: more than can be merged came at once", offset)

    def say(self, text: str, end: int) -> None:
        """Add a line of our own."""
        self._lines.append(text.encode())
        self._end = end
        self._flush()

    def _put(self, raw: bytes, end: int, now: float) -> None:
        for line in (raw,) if len(raw) <= MAX_BYTES and b"\r" not in raw else _shown(raw):
            at = self.time(line, now)
            if at != self.at:
                self._flush()
                self.at = at
            self._lines.append(line)
        self._end = end

    def _flush(self) -> None:
        if self._lines:
            text = self._head + self._between.join(self._lines) + b"\n"
            self.queue.append(Piece(self.at, self._end, text))
            self._lines = []

    def time(self, line: bytes, now: float = -math.inf) -> float:
        """The time of the next line."""
        found = _STAMP.search(line, 0, 200) or _BARE.search(line, 0, 80)
        if found is None:
            return self.at if self.timed else now
        if found[1] != self._stamp:
            seconds = local_seconds(found[1].decode())
            if seconds is None:
                return self.at if self.timed else now
            self._stamp, self._seconds = found[1], seconds - self._east
        self.timed = True
        return self._seconds + float(b"." + found[2]) if found[2] else self._seconds


def first_time(data: bytes, east: float = 0.0) -> float | None:
    """The first time stamp in a stretch of a log."""
    stream = Stream(b"", east)
    return next((at for raw in data.split(b"\n") if (at := stream.time(raw)) > -math.inf), None)


def released(streams: Sequence[Stream], fill: Callable[[Stream], bool]) -> Iterator[tuple[Stream, Piece] | None]:
    """What is due, and what comes before that in time, in order. ``fill`` feeds a stream what there is next of its log,
    if there is any. ``None`` after each filling, so that others can run."""
    heads: list[tuple[float, int]] = []
    behind = list(range(len(streams)))  # those whose first piece is not among the heads
    while True:
        for place in behind:
            stream = streams[place]
            while not stream.queue and fill(stream):
                yield None
            if stream.queue:
                heappush(heads, (stream.queue[0].at, place))
        if not any(stream.queue and stream.queue[0].end <= stream.due for stream in streams):
            return
        behind = [heappop(heads)[1]]
        yield streams[behind[0]], streams[behind[0]].queue.popleft()


def _kept(raw: bytes) -> bytes:
    """As much of a long line as anybody looks at: its beginning, and its end, which of a progress bar is the newest."""
    return raw if len(raw) <= 3 * MAX_BYTES else raw[: 2 * MAX_BYTES] + raw[-MAX_BYTES:]


def _shown(raw: bytes) -> list[bytes]:
    """A progress bar as its newest state, and a record glued behind it; a long line as far as it is shown."""
    return [text.encode("utf-8", "replace") for text in shown(raw)]
