"""``Window``: the lines around one place of a log file of any size, by byte offsets.

Nothing is kept of what is not near the screen: going up or down reads blocks before or after the window. So the first
screen of a 1 GB log costs one read, and a million lines cost nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tui.view.log.clean import MAX_BYTES, READ_BYTES, newest, shown
from tui.view.log.file import BLOCK, LogFile, line_start

BUDGET = 512 * 1024
"""Bytes that one call reads at most, so that no frame takes long; what is left is read by the next call."""

_USUAL = 384  # bytes that are read for a line at first


@dataclass(frozen=True, slots=True)
class LogLine:
    """One shown line. ``offset`` is where its physical line begins in the file."""

    offset: int
    text: str
    kind: str


class Window:
    """Lines of the bytes ``low`` to ``high`` that ``keep`` lets through, in order.

    ``low`` and ``high`` stand at line starts. ``living`` is the unfinished line at the file's end. ``never`` tells raw
    lines that ``keep`` would not let through, cheaply.
    """

    def __init__(
        self,
        file: LogFile,
        kind_of: Callable[[str], str],
        keep: Callable[[str, str], bool],
        never: Callable[[bytes], bool] | None = None,
    ) -> None:
        self.file = file
        self.lines: deque[LogLine] = deque()
        self.low = self.high = 0
        self.living: tuple[LogLine, ...] = ()
        self._kind_of = kind_of
        self._keep = keep
        self._never = never

    def reset(self, offset: int) -> None:
        """Begin anew, empty, at a line's start."""
        self.lines.clear()
        self.living = ()
        self.low = self.high = offset

    def to_end(self, wanted: int = 0) -> None:
        """Begin anew at the end of the file, with about ``wanted`` lines above it: one read where they are short."""
        size = self.file.size
        start = max(0, size - min(BLOCK, _USUAL * (wanted + 2)))
        data = self.file.read(start, size)
        cut = data.rfind(b"\n") + 1
        if not cut:
            self.reset(line_start(self.file, start))
            self._look_at_living()
            return
        self.reset(start + cut)
        self._live(data[cut:])
        first = data.find(b"\n") + 1 if start else 0
        self._take_above(data[first:cut], start + first, wanted)

    def shows(self, text: str) -> bool:
        """Whether a line is let through."""
        return self._keep(text, self._kind_of(text))

    @property
    def at_start(self) -> bool:
        return self.low == 0

    @property
    def at_end(self) -> bool:
        """Whether all finished lines up to the file's end have been looked at."""
        return _last_break(self.file, self.high) is None

    def more_above(self, wanted: int, budget: int = BUDGET) -> int:
        """Put ``wanted`` or some more lines in front; how many it became. Zero and not ``at_start``: call again."""
        got = 0
        while got < wanted and self.low > 0 and budget > 0:
            start = max(0, self.low - BLOCK)
            data = self.file.read(start, self.low)
            cut = 0 if start == 0 else data.find(b"\n", 0, len(data) - 1) + 1
            if cut == 0 and start > 0:
                start = line_start(self.file, self.low - 1)
                data, cut = _huge(self.file, start, self.low), 0
            budget -= max(len(data), self.low - start)
            got += self._take_above(data[cut:], start + cut, wanted - got)
        return got

    def _take_above(self, data: bytes, offset: int, wanted: int) -> int:
        """Put lines of ``data`` (whole lines from ``offset`` up to ``low``) in front, from its end until enough are."""
        got, end = 0, len(data)
        while end > 0 and got < wanted:
            start = data.rfind(b"\n", 0, end - 1) + 1
            found = self._shown(data[start:end], offset + start)
            self.lines.extendleft(reversed(found))
            got += len(found)
            end = start
        self.low = offset + end
        return got

    def more_below(self, wanted: int, budget: int = BUDGET) -> int:
        """Put up to ``wanted`` or more finished lines behind, and look at the living one; how many it became."""
        got = 0
        while got < wanted and budget > 0:
            data = self.file.read(self.high, min(self.file.size, self.high + BLOCK))
            cut = data.rfind(b"\n") + 1
            end = self.high + cut
            if cut == 0:
                stop = _next_break(self.file, self.high + len(data)) if len(data) == BLOCK else None
                if stop is None:
                    break
                data, end = _huge(self.file, self.high, stop + 1), stop + 1
                cut = len(data)
            budget -= end - self.high
            found = self._shown(data[:cut], self.high)
            self.lines.extend(found)
            got += len(found)
            self.high = end
        self._look_at_living()
        return got

    def trim_above(self, keep: int) -> int:
        """Forget lines in front until ``keep`` are left; how many went."""
        gone = max(0, len(self.lines) - keep)
        for _ in range(gone):
            self.lines.popleft()
        if gone:
            self.low = self.lines[0].offset if self.lines else self.high
        return gone

    def trim_below(self, keep: int) -> None:
        """Forget lines behind until ``keep`` are left."""
        if len(self.lines) > keep:
            while len(self.lines) > keep:
                last = self.lines.pop()
            while self.lines and self.lines[-1].offset == last.offset:
                self.lines.pop()
            self.high = last.offset
            self.living = ()

    def _look_at_living(self) -> None:
        size = self.file.size
        if self.high >= size or not self.at_end:
            self.living = ()
            return
        huge = size - self.high > READ_BYTES
        self._live(_huge(self.file, self.high, size) if huge else self.file.read(self.high, size))

    def _live(self, data: bytes) -> None:
        """Take the unfinished line."""
        self.living = tuple(self._shown(data, self.high)) if data.strip(b"\r") else ()

    def _shown(self, data: bytes, offset: int) -> list[LogLine]:
        """The lines of whole physical lines in ``data``, which begins at ``offset``."""
        out: list[LogLine] = []
        for raw in data.removesuffix(b"\n").split(b"\n") if data else ():
            for text in shown(raw) if self._never is None or not self._never(raw) else ():
                kind = self._kind_of(text)
                if self._keep(text, kind):
                    out.append(LogLine(offset, text, kind))
            offset += len(raw) + 1
        return out


def _next_break(file: LogFile, offset: int) -> int | None:
    """The offset of the first newline from ``offset`` on."""
    while offset < file.size:
        data = file.read(offset, min(file.size, offset + BLOCK))
        found = data.find(b"\n")
        if found >= 0:
            return offset + found
        if not data:
            return None
        offset += len(data)
    return None


def _last_break(file: LogFile, offset: int) -> int | None:
    """The first newline at or behind ``offset``, looked for in at most two blocks (a longer line is unfinished)."""
    data = file.read(offset, min(file.size, offset + 2 * BLOCK))
    found = data.find(b"\n")
    return None if found < 0 else offset + found


def _huge(file: LogFile, start: int, end: int) -> bytes:
    """A line longer than a block: its head, or, where it is an overwritten bar, its tail."""
    tail = newest(file.read(max(start, end - MAX_BYTES), end).removesuffix(b"\n"))
    return (tail or file.read(start, start + READ_BYTES)) + b"\n"
