"""Meters in block characters: bars and sparklines."""

from __future__ import annotations

from collections.abc import Sequence

from tui.view.draw.row import Row, Span

_LEVELS = "▁▂▃▄▅▆▇"
_HEADROOM = 1.17  # the largest value is not drawn to the brim, so that rows stay apart


def bar(ratio: float, columns: int, ink: str = "accent") -> Row:
    """A line of ``columns``, ``ratio`` (0 to 1) of it heavy, in steps of half a column. Only nothing is empty, and only
    all is full."""
    halves = round(min(1.0, max(0.0, ratio)) * columns * 2)
    if ratio > 0:
        halves = max(1, halves)
    if ratio < 1:
        halves = min(halves, columns * 2 - 1)
    full, half = divmod(halves, 2)
    head = "━" * full + ("╸" if half else "")
    return [Span(head, ink), Span("─" * (columns - len(head)), "line")]


def level(ratio: float) -> str:
    """One character whose height is ``ratio``."""
    return _LEVELS[min(len(_LEVELS) - 1, max(0, int(ratio * len(_LEVELS))))]


def spark(values: Sequence[float | None], columns: int, ink: str = "accent", top: float | None = None) -> Row:
    """The newest ``columns`` values, one column each, from zero to the largest (or ``top``). ``None`` is a gap."""
    if columns <= 0:
        return []
    values = values[-columns:]
    known = [v for v in values if v is not None]
    high = top if top else max(known, default=0.0) * _HEADROOM
    drawn = "".join(" " if v is None else "▁" if high <= 0 else level(v / high) for v in values)
    return [Span(drawn.rjust(columns), ink)]
