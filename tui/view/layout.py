"""Which panels stand on the screen, and how high, for a size and what there is to show."""

from __future__ import annotations

from dataclasses import dataclass

from textual.screen import Screen
from textual.widget import Widget

from tui.sglang.model import Phase
from tui.view.glance import Glance
from tui.view.panels import Board, Panel

_BORDER = 2


@dataclass(frozen=True, slots=True)
class Heights:
    """Rows of the board and the detail panels, borders included; 0 is hidden. ``both``: timeline and caches side
    by side."""

    board: int
    detail: int
    both: bool


def heights(columns: int, rows: int, board_rows: int, detail: int) -> Heights:
    """The log gets what is left, at least six rows; ``board_rows`` and ``detail`` are what the board and the detail
    panels would like inside. A board of more than a screen's half gets half of a high screen."""
    rows -= 2  # header and footer
    board = min(board_rows + _BORDER, max(3, rows // 2 if rows > 40 else rows * 2 // 5))
    room = rows - board - 6
    wanted = min(detail + _BORDER, 16 if rows > 40 else 14 if rows > 30 else 12)
    return Heights(board, min(wanted, room) if room >= 5 else 0, columns >= 80)


def wanted_detail(chosen: Glance | None) -> int:
    """Rows that show the selected server's stages and caches without a cut."""
    if chosen is None:
        return 4
    kinds = len({pool.kind for pool in chosen.state.log.pools})
    troubles = 6 if chosen.failure else 0
    layout = any(pool.layout for pool in chosen.state.log.pools)
    return max(len(chosen.stages) + 1 + troubles, 1 + 2 * kinds + 6 + layout, 5)


def arrange(screen: Screen[object], columns: int, rows: int, board_rows: int, chosen: Glance | None) -> None:
    """Give the panels their heights."""
    told = heights(columns, rows, board_rows, wanted_detail(chosen))
    detail = screen.query_one("#detail")
    detail.set_class(told.detail == 0, "none")
    zoomed = screen.has_class("zoom")
    screen.query_one("#board-panel").styles.height = "1fr" if zoomed else told.board
    detail.styles.height = "1fr" if zoomed else max(1, told.detail)
    ready = chosen is not None and chosen.phase is Phase.READY
    for panel, wanted in (("#timeline-panel", not ready), ("#caches-panel", ready)):
        found = screen.query_one(panel)
        shown = found.has_class("zoomed") if zoomed else told.both or wanted
        found.styles.display = "block" if shown else "none"


def zoom(screen: Screen[object], panel: str) -> None:
    """Show the panel with this id alone, with the focus."""
    leave_zoom(screen)
    screen.set_focus(screen.query_one(f"#{panel}", Panel).sheet)
    toggle_zoom(screen)


def toggle_zoom(screen: Screen[object]) -> None:
    """Show the focused panel alone, or all again. A board that shows all its servers stands for the log."""
    if screen.has_class("zoom"):
        leave_zoom(screen)
        return
    focused = screen.focused
    panel = next((p for p in focused.ancestors if isinstance(p, Panel)), None) if focused else None
    board = screen.query_one(Board)
    if panel is None or (panel.sheet is board and not any(board.hidden())):
        panel = screen.query_one("#log-panel", Panel)
        panel.sheet.focus()
    screen.add_class("zoom")
    panel.add_class("zoomed")
    panel.parent.set_class(panel.parent.id == "detail", "zoomed") if panel.parent else None


def leave_zoom(screen: Screen[object]) -> None:
    screen.remove_class("zoom")
    for widget in screen.query(".zoomed"):
        widget.remove_class("zoomed")


def reveal(widget: Widget) -> None:
    """Where the wall, or another panel's zoom, hides ``widget``, leave that, and focus it: what is typed or looked for
    is seen."""
    screen = widget.screen
    zoomed = any(node.has_class("zoomed") for node in widget.ancestors if isinstance(node, Panel))
    if screen.has_class("wall") or (screen.has_class("zoom") and not zoomed):
        screen.remove_class("wall")
        if not zoomed:
            leave_zoom(screen)
        screen.set_focus(widget)
