"""Finding lines of a log file in slices, so that a gigabyte never freezes a frame."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator

from tui.view.log.clean import MAX_BYTES
from tui.view.log.file import LogFile, line_start
from tui.view.log.query import Query

SLICE = 2 * 1024 * 1024
_LINES = 256 * 1024  # bytes of a slice that is looked at line by line
_PAUSE = 20  # hits between two pauses of a count


def find(file: LogFile, query: Query, start: int, *, back: bool = False) -> Iterator[int | None]:
    """Offsets of lines that ``query`` finds, from ``start`` on to the end (or back to the beginning).

    Yields ``None`` after each slice that was read, so that the caller can let others run.
    """
    needle = query.term.encode()
    if not needle or query.wrong:
        return
    if query.regex:
        yield from _matching(file, query.pattern, start, back)
    elif back:
        yield from _back(file, needle, query.fold, start)
    else:
        yield from _on(file, needle, query.fold, start)


class Hits:
    """The lines that a query finds, from the file's start on, counted as far as ``most``.

    Counting goes on where it stopped as the file grows. ``shows`` says whether the line at an offset is shown.
    """

    def __init__(self, file: LogFile, query: Query, shows: Callable[[int], bool], most: int = 999) -> None:
        self._file, self._query, self._shows, self._most = file, query, shows, most
        self._offsets: list[int] = []
        self._counted = 0
        self._generation = file.generation

    async def count(self) -> None:
        """Count up to the file's present end, letting others run meanwhile."""
        if self._generation != self._file.generation:
            self._offsets, self._counted, self._generation = [], 0, self._file.generation
        start, end = self._counted, line_start(self._file, self._file.size)
        while self._offsets and self._offsets[-1] >= start:
            self._offsets.pop()
        for number, offset in enumerate(find(self._file, self._query, start)):
            if offset is None or number % _PAUSE == 0:
                await asyncio.sleep(0)
            if offset is not None and offset not in self._offsets[-1:] and self._shows(offset):
                self._offsets.append(offset)
            if self._full:
                return
        self._counted = end

    @property
    def _full(self) -> bool:
        return len(self._offsets) > self._most

    def place(self, offset: int) -> str:
        """``3 of 8``; with more hits than are counted, ``3 of 999+``, or only ``999+ hits``."""
        total = f"{self._most}+" if self._full else str(len(self._offsets))
        at = bisect_left(self._offsets, offset)
        known = at < len(self._offsets) and self._offsets[at] == offset
        return f"{at + 1} of {total}" if known else f"{total} hits"


def _matching(file: LogFile, wanted: re.Pattern[str], start: int, back: bool) -> Iterator[int | None]:
    """Line by line: an expression does not reach into the next one. Of a long line, its first ``MAX_BYTES`` count."""
    for got in each_line(file, start, back=back):
        if got is None:
            yield None
        elif wanted.search(got[1][:MAX_BYTES].decode("utf-8", "replace")):
            yield got[0]


def _on(file: LogFile, needle: bytes, fold: bool, start: int) -> Iterator[int | None]:
    while start < file.size:
        data = _slice(file, start, min(file.size, start + SLICE), fold)
        at = data.find(needle)
        while at >= 0:
            yield line_start(file, start + at)
            line_end = data.find(b"\n", at)
            at = data.find(needle, line_end) if line_end >= 0 else -1
        yield None
        if len(data) < SLICE:
            return
        start += len(data) - len(needle) + 1


def _back(file: LogFile, needle: bytes, fold: bool, end: int) -> Iterator[int | None]:
    while end > 0:
        start = max(0, end - SLICE)
        data = _slice(file, start, end, fold)
        at = data.rfind(needle)
        while at >= 0:
            yield line_start(file, start + at)
            break_before = data.rfind(b"\n", 0, at)
            at = data.rfind(needle, 0, break_before) if break_before >= 0 else -1
        yield None
        if start == 0:
            return
        end = start + len(needle) - 1


def _slice(file: LogFile, start: int, end: int, fold: bool) -> bytes:
    data = file.read(start, end)
    return data.lower() if fold else data


def each_line(file: LogFile, start: int, *, back: bool = False) -> Iterator[tuple[int, bytes] | None]:
    """Offsets and bytes of lines from ``start`` on, or of those before it from the last one back, and ``None`` after
    each slice. Of a line longer than a slice only the first bytes."""
    return _lines_back(file, start) if back else _lines_on(file, start)


def _lines_on(file: LogFile, start: int) -> Iterator[tuple[int, bytes] | None]:
    while start < file.size:
        data = file.read(start, min(file.size, start + _LINES))
        if not data:
            return
        cut = data.rfind(b"\n") + 1 or len(data)
        offset = start
        for raw in data[:cut].removesuffix(b"\n").split(b"\n"):
            yield offset, raw
            offset += len(raw) + 1
        yield None
        start += cut
        while cut == len(data) and not data.endswith(b"\n") and start < file.size:  # the rest of a huge line
            data = file.read(start, min(file.size, start + _LINES))
            cut = data.find(b"\n") + 1 or len(data)
            start += cut
            data = data[:cut]
            yield None


def _lines_back(file: LogFile, end: int) -> Iterator[tuple[int, bytes] | None]:
    while end > 0:
        start = max(0, end - _LINES)
        data = file.read(start, end)
        if not data:
            return
        first = data.find(b"\n", 0, len(data) - 1) + 1 if start else 0
        if start and not first:  # a huge line
            start = line_start(file, end - 1)
            data = file.read(start, min(end, start + MAX_BYTES))
        offset = start = start + first
        places = []
        for raw in data[first:].removesuffix(b"\n").split(b"\n"):
            places.append((offset, raw))
            offset += len(raw) + 1
        yield from reversed(places)
        yield None
        end = start
