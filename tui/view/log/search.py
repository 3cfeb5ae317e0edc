"""Finding a term in a log file in slices, so that a gigabyte never freezes a frame."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tui.view.log.file import LogFile, line_start

SLICE = 2 * 1024 * 1024


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
