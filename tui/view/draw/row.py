"""Rows of inked text: what every drawing returns. An ink is a name of ``theme.INKS``, joined by spaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size


class Span(NamedTuple):
    """A stretch of text in one ink. ``action`` is what a click on it does, ``""`` for nothing."""

    text: str
    ink: str = "text"
    action: str = ""


Row = list[Span]
_ENDS = 8  # columns in which both ends of a name can be seen
_LAST_NUMBER = re.compile(r"\s\(?[\d.]+$")  # whose unit was cut off


def width(row: Iterable[Span]) -> int:
    """Columns that a row takes on the screen."""
    return sum([len(span[0]) if span[0].isascii() else cell_len(span[0]) for span in row])


def clip(text: str, columns: int) -> str:
    """``text`` in at most ``columns``; a cut shows as ``…``."""
    if columns <= 0:
        return ""
    if cell_len(text) <= columns:
        return text
    return set_cell_size(text, columns - 1).rstrip() + "…"


def clip_words(text: str, columns: int) -> str:
    """``text`` in at most ``columns``, cut behind a word where that leaves half of the room: no number or path is shown
    in part."""
    cut = clip(text, columns)
    if cut == text or not cut:
        return cut
    kept = cut[:-1]
    if text[len(kept) : len(kept) + 1].strip():  # in the middle of a word
        head = kept.rpartition(" ")[0].rstrip()
        kept = head if cell_len(head) * 2 >= columns else kept
    return _LAST_NUMBER.sub("", kept).rstrip(" ,;:") + "…"


def clip_middle(text: str, columns: int) -> str:
    """``text`` in at most ``columns``, cut in its middle: names differ at their ends."""
    if cell_len(text) <= columns or columns < _ENDS:
        return clip(text, columns)
    tail = ""
    for char in reversed(text):
        if cell_len(char + tail) > columns // 3:
            break
        tail = char + tail
    return clip(text, columns - cell_len(tail)) + tail


def clip_path(path: str, columns: int) -> str:
    """The end of a path in at most ``columns``, from one of its folders on where that fits."""
    if cell_len(path) <= columns:
        return path
    parts = path.split("/")
    tails = ("…/" + "/".join(parts[n:]) for n in range(1, len(parts)))
    return next((tail for tail in tails if cell_len(tail) <= columns), clip(path, columns))


def longest(texts: Iterable[str], columns: int) -> str:
    """The first of ``texts``, from the longest on, that fits; nothing where none does: no number is cut."""
    return next((text for text in texts if cell_len(text) <= columns), "")


def cell(text: str, columns: int, ink: str = "text", *, right: bool = False) -> Span:
    """``text`` as a cell of exactly ``columns``."""
    text = clip(text, columns)
    space = " " * (columns - cell_len(text))
    return Span(space + text if right else text + space, ink)


def fit(row: Iterable[Span], columns: int) -> Row:
    """A row cut, with ``…``, to at most ``columns``."""
    out: Row = []
    left = columns
    spans = list(row)
    over = width(spans) > columns
    for span in spans:
        size = cell_len(span.text)
        if over and size >= left:
            if left > 0:
                text = set_cell_size(span.text, left - 1) if size > left - 1 else span.text
                out.append(span._replace(text=text + "…"))
            break
        out.append(span)
        left -= size
    return out


def pad(row: Row, columns: int) -> Row:
    """``row`` with spaces up to ``columns``."""
    return [*row, Span(" " * max(0, columns - width(row)))]


def spread(left: Row, right: Row, columns: int) -> Row:
    """``left`` and ``right`` at the two edges; ``right`` is dropped when both do not fit."""
    space = columns - width(left) - width(right)
    if space < 2 and right:
        return fit(left, columns)
    return fit([*left, Span(" " * max(0, space)), *right], columns)


def join(parts: Sequence[Row], gap: str = "  ") -> Row:
    """The non-empty ``parts`` with ``gap`` between them."""
    out: Row = []
    for part in parts:
        if part:
            out += [Span(gap), *part] if out else part
    return out


def flow(parts: Sequence[Row], columns: int, gap: str = "  ", indent: int = 0) -> list[Row]:
    """The non-empty ``parts`` side by side, going on in the next row, indented, where they do not fit."""
    rows: list[Row] = []
    for part in parts:
        if not part:
            continue
        if rows and width(rows[-1]) + len(gap) + width(part) <= columns:
            rows[-1] += [Span(gap), *part]
        else:
            rows.append([Span(" " * (indent if rows else 0)), *part])
    return [fit(row, columns) for row in rows]


def plain(rows: Iterable[Iterable[Span]]) -> str:
    """The text of rows, without inks and trailing spaces."""
    return "\n".join("".join(span.text for span in row).rstrip() for row in rows)


def wrap(text: str, columns: int) -> list[str]:
    """``text`` on lines of at most ``columns``, broken at spaces where there are any."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        while cell_len(word) > columns:
            if line:
                lines.append(line)
                line = ""
            head = set_cell_size(word, columns).rstrip()
            lines.append(head)
            word = word[len(head) :]
        if line and cell_len(line) + 1 + cell_len(word) > columns:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line] if line else lines
