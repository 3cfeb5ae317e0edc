"""Places in a log file that are found by what its lines mean: problems, stages, a numbered line. Read in slices, with
``None`` between them so that the caller can let others run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tui.sglang.kinds import kind_of
from tui.sglang.lines import local_seconds
from tui.view.log.clean import shown
from tui.view.log.file import LogFile
from tui.view.log.filters import FILTERS, Choice, never
from tui.view.log.search import SLICE, each_line

_PROBLEMS = next(preset for preset in FILTERS if preset.name == "problems")
_STAMP = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_STARTING = frozenset({"stage", "cache", "progress", "ready"})


def problems(
    file: LogFile, start: int, *, back: bool = False, kind_of: Callable[[str], str] = kind_of
) -> Iterator[int | None]:
    """Where lines of warnings and errors begin that have none before them: a traceback is one place."""
    kinds, surely_not = _PROBLEMS.kinds or frozenset(), never(Choice(_PROBLEMS))
    inside, first = False, None
    for got in each_line(file, start, back=back):
        if got is None:
            yield None
            continue
        offset, raw = got
        bad = not (surely_not and surely_not(raw)) and any(kind_of(text) in kinds for text in shown(raw))
        if back and first is not None and not bad:
            yield first
        if not back and bad and not inside:
            yield offset
        inside, first = bad, offset if bad else None
    if back and first is not None:
        yield first


def at_time(file: LogFile, seconds: float) -> Iterator[int | None]:
    """The first line of that second of the log's own clock that tells of a start, else the first from then on."""
    found = None
    for got in each_line(file, 0):
        if got is None:
            yield None
            continue
        offset, raw = got
        stamp = _STAMP.search(raw, 0, 200)
        told = local_seconds(stamp[1].decode()) if stamp else None
        if told is None or told < int(seconds):
            continue
        if found is not None and told > int(seconds):
            break
        found = offset if found is None else found
        if any(kind_of(text) in _STARTING for text in shown(raw)):
            found = offset
            break
    if found is not None:
        yield found


def numbered(file: LogFile, number: int) -> Iterator[int | None]:
    """The line that is the ``number``-th, counted from 1 by newlines."""
    left, start = number - 1, 0
    while start < file.size:
        data = file.read(start, min(file.size, start + SLICE))
        breaks = data.count(b"\n")
        if left > breaks or not data:
            left -= breaks
            start += len(data)
            if not data:
                return
            yield None
            continue
        at = 0
        for _ in range(left):
            at = data.index(b"\n", at) + 1
        if start + at < file.size:
            yield start + at
        return
