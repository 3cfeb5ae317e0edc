"""Lines of a log as rows: cut or wrapped, with the time quiet and what was searched for marked."""

from __future__ import annotations

import re

from rich.cells import cell_len, set_cell_size

from tui.view.draw.row import Row, Span, width

_TIME = re.compile(r"(?:\[\d{4}-\d\d-\d\d |\d\d-\d\d )?\d\d:\d\d:\d\d(?:\.\d+)?(?: [A-Z_]+\d+)*\]? ")


def marked(row: Row, found: re.Pattern[str] | None, *, current: bool) -> Row:
    """A row with what was searched for marked; reversed where the search stands."""
    mark = "found bold reverse" if current else "found bold"
    return [piece for span in row for piece in _hits(span, found, mark)] if found else row


def timed(text: str, ink: str) -> Row:
    """A line with the time at its beginning in a quiet ink."""
    head = _TIME.match(text)
    return [Span(head[0], "muted"), Span(text[head.end() :], ink)] if head else [Span(text, ink)]


def picked(row: Row, columns: int) -> Row:
    """Over all columns, with what was found still marked."""
    full = [*row, Span(" " * (columns - width(row)), "text")]
    return [Span(s.text, s.ink if "reverse" in s.ink else f"{s.ink} reverse") for s in full if s.text]


def _hits(span: Span, found: re.Pattern[str], mark: str) -> Row:
    out: Row = []
    at = 0
    for hit in found.finditer(span.text):
        if hit.end() > hit.start():
            out += [Span(span.text[at : hit.start()], span.ink), Span(hit[0], f"{span.ink} {mark}")]
            at = hit.end()
    return [*out, Span(span.text[at:], span.ink)] if out else [span]


def cut(text: str, x: int, columns: int) -> str:
    """Columns ``x`` to ``x + columns`` of ``text``, with ``›`` and ``‹`` where it goes on."""
    if not text.isascii():
        text = set_cell_size(text, min(cell_len(text), x + columns + 1))
    if len(text) <= columns and not x:
        return text
    piece = text[x : x + columns]
    if len(text) > x + columns:
        piece = piece[:-1] + "›"
    return "‹" + piece[1:] if x and piece else "‹" if x and text else piece


def wrapped(text: str, columns: int) -> list[str]:
    """``text`` in pieces of ``columns``, all characters kept."""
    if columns <= 0 or not text:
        return [text]
    if text.isascii():
        return [text[n : n + columns] for n in range(0, len(text), columns)]
    pieces: list[str] = []
    piece, size = "", 0
    for char in text:
        wide = cell_len(char)
        if size + wide > columns:
            pieces.append(piece)
            piece, size = "", 0
        piece += char
        size += wide
    return [*pieces, piece]
