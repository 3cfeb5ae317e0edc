"""Finding a term in a log file in slices, so that a gigabyte never freezes a frame."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator

from tui.view.log.file import LogFile, line_start

SLICE = 2 * 1024 * 1024
_PAUSE = 20  # hits between two pauses of a count


def pattern(term: str) -> re.Pattern[str]:
    """For marking a term in shown text: case is ignored unless the term has capitals."""
    return re.compile(re.escape(term), 0 if term != term.lower() else re.IGNORECASE)


def find(file: LogFile, term: str, start: int, *, back: bool = False) -> Iterator[int | None]:
    """Offsets of lines that hold ``term``, from ``start`` on to the end (or back to the beginning).

    Yields ``None`` after each slice that was read, so that the caller can let others run.
    """
    needle = term.encode()
    fold = term == term.lower()
    if not needle:
        return
    if back:
        yield from _back(file, needle, fold, start)
    else:
        yield from _on(file, needle, fold, start)


class Hits:
    """The lines that hold a term, from the file's start on, counted as far as ``most``.

    Counting goes on where it stopped as the file grows. ``shows`` says whether the line at an offset is shown.
    """

    def __init__(self, file: LogFile, term: str, shows: Callable[[int], bool], most: int = 999) -> None:
        self._file, self._term, self._shows, self._most = file, term, shows, most
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
        for number, offset in enumerate(find(self._file, self._term, start)):
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
