"""Meters in block characters: bars and sparklines."""

from __future__ import annotations

from collections.abc import Sequence

from tui.view.draw.row import Row, Span

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"


def bar(ratio: float, columns: int, ink: str = "accent", rest: str = "faint") -> Row:
    """A bar of ``columns``, ``ratio`` (0 to 1) of it full, in steps of an eighth of a column."""
    eighths = round(min(1.0, max(0.0, ratio)) * columns * 8)
    if ratio > 0:
        eighths = max(1, eighths)
    if ratio < 1:
        eighths = min(eighths, columns * 8 - 1)
    full, part = divmod(eighths, 8)
    head = "█" * full + (_EIGHTHS[part] if part else "")
    return [Span(head, f"{ink} trough"), Span(" " * (columns - len(head)), f"{rest} trough")]


def level(ratio: float) -> str:
    """One character whose height is ``ratio``."""
    return _LEVELS[min(7, max(0, int(ratio * 8)))]


def spark(values: Sequence[float | None], columns: int, ink: str = "accent", top: float | None = None) -> Row:
    """The newest ``columns`` values, one column each, from zero to the largest (or ``top``). ``None`` is a gap."""
    if columns <= 0:
        return []
    values = values[-columns:]
    known = [v for v in values if v is not None]
    high = top if top else max(known, default=0.0)
    drawn = "".join(" " if v is None else "▁" if high <= 0 else level(v / high * 0.999) for v in values)
    return [Span(drawn.rjust(columns), ink)]
