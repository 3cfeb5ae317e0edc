"""The wall: the logs of all servers at once, in a grid drawn as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tui.sglang.model import Phase
from tui.view.draw import units
from tui.view.draw.board import INKS, in_short, word
from tui.view.draw.row import Row, Span, clip_middle, clip_words, fit, width
from tui.view.glance import GLYPHS, Glance

MIN_COLUMNS, MIN_ROWS = 56, 5

Lines = Callable[[str, int, int], list[Row]]
"""``lines(server, columns, rows)``: the end of a server's log."""


def grid(servers: int, columns: int, rows: int) -> tuple[int, int]:
    """Panes beside and below each other, so that as many as possible are seen, near to square."""
    across = max(
        1, min(columns // MIN_COLUMNS, 1 if servers <= 2 else 2 if servers <= 6 else 3 if servers <= 12 else 4)
    )
    down = max(1, min(-(-servers // across), rows // MIN_ROWS))
    return across, down


def page(servers: int, at: int, columns: int, rows: int) -> slice:
    """The servers that are seen together with the one at the place ``at``."""
    across, down = grid(servers, columns, rows)
    first = at // (across * down) * (across * down)
    return slice(first, min(servers, first + across * down))


def wall(glances: Sequence[Glance], lines: Lines, columns: int, rows: int, selected: str | None) -> list[Row]:
    """``rows`` rows; where not all servers fit, the page with the selected one."""
    if not glances:
        return []
    across, down = grid(len(glances), columns, rows)
    at = next((n for n, g in enumerate(glances) if g.name == selected), 0)
    shown = glances[page(len(glances), at, columns, rows)]
    down = min(down, -(-len(shown) // across))
    size = (columns - (across - 1)) // across
    out: list[Row] = []
    for line in range(down):
        height = rows // down + (1 if line < rows % down else 0)
        panes = [_pane(g, lines, size, height, g.name == selected) for g in shown[line * across : (line + 1) * across]]
        out += [_beside([pane[row] for pane in panes], size) for row in range(height)]
    return out


def _pane(glance: Glance, lines: Lines, columns: int, rows: int, selected: bool) -> list[Row]:
    action = f"select:{glance.name}"
    title = [s._replace(action=action) for s in _title(glance, columns, selected)]
    none = clip_words(glance.state.notes[-1], columns - 1) if glance.no_log else "no output yet"
    body = lines(glance.name, columns - 1, rows - 1) or [[Span(none, "muted")]]
    body += [[] for _ in range(rows - 1 - len(body))]
    return [title, *([Span("▌" if selected else " ", "accent"), *row] for row in body[: rows - 1])]


def _title(glance: Glance, columns: int, selected: bool) -> Row:
    ink, state = INKS[glance.phase], word(glance)
    room = columns - len(state) - 9  # the name gives way to the state
    left: Row = [
        Span("▌" if selected else "━", "accent" if selected else "line"),
        Span(f" {GLYPHS[glance.phase]} ", f"{ink} bold"),
        Span(clip_middle(glance.name, max(room, 8)), "text bold"),
        Span(f"  {state}", ink),
    ]
    room = columns - width(left) - 3
    note = in_short(glance.reason.partition(" → ")[0], room) if glance.phase is Phase.FAILED else ""
    if glance.phase is Phase.READY and glance.generate is not None and not glance.stale:
        note = f"{units.rate(glance.generate)} tok/s"
    if glance.stalled:
        note = "⚠ stalled"
    left = fit([*left, Span(f"  {clip_words(note, room)} " if note and room > 0 else " ", "text")], columns)
    return [*left, Span("━" * max(0, columns - width(left)), "line")]


def _beside(rows: list[Row], size: int) -> Row:
    out: Row = []
    for n, row in enumerate(rows):
        if n:
            out.append(Span("│", "line"))
        space = size - width(row)
        out += row if space >= 0 else fit(row, size)
        if space > 0:
            out.append(Span(" " * space))
    return out
