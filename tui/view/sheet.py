"""``Sheet``: a widget that shows what a pure drawing returns. All widgets of the dashboard but dialogs are sheets."""

from __future__ import annotations

import os
from collections.abc import Iterable

from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.sglang.safe import safe
from tui.view.draw.row import Row, Span
from tui.view.theme import Inks


class Sheet(Widget, can_focus=False):
    """Draws ``rows(columns, rows)`` of a subclass; strips are made once per change and size."""

    class Clicked(Message):
        """A span with an ``action`` was clicked."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._drawn: list[Row] = []
        self._strips: list[Strip] = []
        self._drawn_for: tuple[int, int] | None = None
        self._inks: Inks | None = None

    def rows(self, columns: int, rows: int) -> list[Row]:
        """The rows to show in ``columns`` × ``rows``."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw again on the next frame, if the rows are different."""
        size = self.size
        if not size or not self.is_attached or not self.visible_in_layout:
            self._drawn_for = None
            return
        drawn = self.rows(size.width, size.height)
        if self._drawn_for == (size.width, size.height) and drawn == self._drawn:
            return
        self._take(drawn, size.width, size.height)
        self.refresh()

    @property
    def visible_in_layout(self) -> bool:
        return bool(self.display and self.size.width and self.size.height)

    @property
    def inks(self) -> Inks:
        """The styles of the app's present theme."""
        if self._inks is None:
            self._inks = Inks(self.app.current_theme, grey=bool(os.environ.get("NO_COLOR")))
        return self._inks

    def notify_style_update(self) -> None:
        self._inks = None
        self._drawn_for = None
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        columns, rows = self.size
        if self._drawn_for != (columns, rows):
            self._take(self.rows(columns, rows), columns, rows)
        return [strip.crop(crop.x, crop.right) for strip in self._strips[crop.y : crop.bottom]]

    def _take(self, drawn: list[Row], columns: int, rows: int) -> None:
        self._drawn, self._drawn_for = drawn, (columns, rows)
        ground = self.inks.ground
        blank = Strip.blank(columns, ground)
        self._strips = [strip(row, columns, self.inks) for row in drawn[:rows]]
        self._strips += [blank] * (rows - len(self._strips))

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None or offset.y >= len(self._drawn):
            return
        action = _span_at(self._drawn[offset.y], offset.x)
        if action:
            event.stop()
            self.post_message(self.Clicked(action))


def strip(row: Iterable[Span], columns: int, inks: Inks) -> Strip:
    """A row as a strip of exactly ``columns``."""
    segments = [Segment(safe(span.text), inks[span.ink]) for span in row if span.text]
    return Strip(segments).adjust_cell_length(columns, inks.ground)


def _span_at(row: Iterable[Span], x: int) -> str:
    from rich.cells import cell_len

    for span in row:
        x -= cell_len(span.text)
        if x < 0:
            return span.action
    return ""
