"""Rows of a list in columns, for dialogs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from tui.view.draw.row import cell, clip, clip_words, wrap

_GAP = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """``keep``: those with the lowest go first where the room does not do. ``wide``: it gets the room that is left."""

    title: str
    keep: int = 9
    right: bool = False
    wide: bool = False


def listing(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """The titles and the rows, each in at most ``width``."""
    shown = list(range(len(columns)))
    sizes = [max([cell_len(c.title), *(cell_len(row[n]) for row in rows)]) for n, c in enumerate(columns)]

    def taken() -> int:
        return sum(min(sizes[n], 12) if columns[n].wide else sizes[n] for n in shown) + len(_GAP) * (len(shown) - 1)

    while len(shown) > 1 and taken() > width:
        shown.remove(min(shown, key=lambda n: columns[n].keep))
    fixed = sum(sizes[n] for n in shown if not columns[n].wide) + len(_GAP) * (len(shown) - 1)
    for n in shown:
        if columns[n].wide:
            sizes[n] = max(1, min(sizes[n], width - fixed))
    lines = [[c.title for c in columns], *rows]
    return [clip(_GAP.join(_cell(row[n], sizes[n], columns[n]) for n in shown).rstrip(), width) for row in lines]


def side_by_side(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Rows of (what, values) as lines of at most ``width``: each value has the same share, and goes on below where that
    is too small."""
    values = max(1, len(rows[0]) - 1)
    head = min(max(cell_len(row[0]) for row in rows), width // 3)
    room = max(4, (width - head) // values - len(_GAP))
    sizes = [head, *(min(room, max(cell_len(row[n + 1]) for row in rows)) for n in range(values))]
    lines = []
    for row in rows:
        cells = [wrap(text, size) for text, size in zip(row, sizes, strict=True)]
        for n in range(max(1, *(len(part) for part in cells))):
            parts = (cell(part[n] if n < len(part) else "", size).text for part, size in zip(cells, sizes, strict=True))
            lines.append(_GAP.join(parts).rstrip())
    return lines


def _cell(text: str, size: int, column: Column) -> str:
    return cell(clip_words(text, size) if column.wide else text, size, right=column.right).text
