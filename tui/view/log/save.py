"""Lines of a log as text to take away: without borders, escapes and secrets, with their full time stamps."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from tui.view.log.clean import shown
from tui.view.log.reader import LogReader
from tui.view.log.search import each_line

MOST_COPIED = 100_000
"""Bytes of text: what terminals take as a clipboard."""


def texts(reader: LogReader, picked: tuple[int, int] | None) -> Iterator[str | None]:
    """The picked lines, or all, that are shown; of a log without a filter all, health probes too. ``None`` now and
    then, so that others can run."""
    low, high = (min(picked), max(picked)) if picked else (0, reader.file.size)
    whole = picked is None and reader.choice.all
    for got in each_line(reader.file, low):
        if got is None:
            yield None
            continue
        offset, raw = got
        if offset > high or (offset == high and not picked):
            return
        for text in shown(raw):
            if whole or reader.window.shows(text):
                yield text


def copied(reader: LogReader, picked: tuple[int, int]) -> str:
    """The picked lines as one text. Raises ``ValueError`` where they are too many for a clipboard."""
    lines: list[str] = []
    size = 0
    for text in texts(reader, picked):
        if text is not None:
            lines.append(text)
            size += len(text.encode()) + 1
        if size > MOST_COPIED:
            raise ValueError("too much for a terminal's clipboard; Ctrl+S saves it to a file")
    return "\n".join(lines)


async def save(lines: Iterator[str | None], path: Path) -> int:
    """Write lines to a new file that only its owner can read; how many. Raises ``OSError``, also where ``path``
    exists, and leaves no half of a file."""
    count = 0
    with _new_file(path) as file:
        for text in lines:
            if text is None:
                await asyncio.sleep(0)
            else:
                file.write(f"{text}\n")
                count += 1
    return count


@contextmanager
def _new_file(path: Path) -> Iterator[TextIO]:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="utf-8", errors="replace") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise
