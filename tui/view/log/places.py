"""Places in a log that somebody reads: kept when its file is another one, found again, passed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tui.view.log.clean import shown
from tui.view.log.query import Query
from tui.view.log.reader import LogReader
from tui.view.log.search import find


def like(old: LogReader | None, path: Path | None, heads: Mapping[str, str]) -> LogReader:
    """A reader of ``path`` that shows things as ``old`` did; of a merged log, whose lines are in the new file too, also
    the same ones."""
    reader = LogReader(path, heads)
    if old is None:
        return reader
    reader.found = old.found
    reader.choose(old.choice)
    if heads and not old.following:
        reader.columns, reader.rows = old.columns, old.rows
        line = Query(_line(old, old.place()).decode("utf-8", "replace"), case=True)
        places = find(reader.file, line, reader.file.size, back=True)
        if (place := next((at for at in places if at is not None), None)) is not None:
            reader.go_to(place)
    old.file.close()
    return reader


def after(reader: LogReader, offset: int) -> int:
    """The start of the line behind the one at ``offset``."""
    return offset + len(_line(reader, offset)) + 1


def visible(reader: LogReader, offset: int) -> bool:
    """Whether the line at ``offset`` is let through by the filter."""
    return any(reader.window.shows(text) for text in shown(_line(reader, offset)))


def _line(reader: LogReader, offset: int) -> bytes:
    return reader.file.read(offset, offset + 64 * 1024).split(b"\n", 1)[0]
