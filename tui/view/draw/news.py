"""The line of the newest alert. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tui.view.alerts import Alert, Kind, line
from tui.view.draw import units
from tui.view.draw.row import Row, Span, clip_words, spread

GLYPHS = {
    Kind.READY: ("●", "ok"),
    Kind.FAILED: ("✖", "bad"),
    Kind.STALLED: ("⚠", "warn"),
    Kind.UNREACHABLE: ("⚠", "warn"),
    Kind.COLLAPSED: ("▼", "warn"),
}
"""A shape and an ink for each kind, so that none is told by its colour alone."""
LASTS = {kind: 60.0 if kind.good else 600.0 for kind in Kind}  # seconds on the screen


def news(alerts: Sequence[Alert], now: float, columns: int, key: str = "A") -> list[Row]:
    """One row, with its age and how many stand behind it: of what was last told of each server and is not too old, the
    newest that is bad, else the newest."""
    last = {alert.servers: alert for alert in alerts}
    fresh = sorted((a for a in last.values() if now - a.at <= LASTS[a.kind]), key=lambda a: (not a.kind.good, a.at))
    if not fresh:
        return []
    newest = fresh[-1]
    glyph, ink = GLYPHS[newest.kind]
    more = f"{len(fresh) - 1} more ({key})  " if len(fresh) > 1 else ""
    right = [Span(f"{more}{units.span(now - newest.at)} ago ", "muted", "alerts")]
    words = clip_words(f" {glyph} {line(newest)}", columns)
    return [spread([Span(words, f"{ink} bold", "alerts")], right, columns)]
