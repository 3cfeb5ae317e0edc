"""``Sheet``: a widget that shows what a pure drawing returns. All widgets of the dashboard but dialogs are sheets."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import TYPE_CHECKING, cast

from rich.segment import Segment
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.sglang.safe import safe
from tui.view.ascii import ascii_text, wide_arrows
from tui.view.draw.row import Row, Span
from tui.view.theme import Inks

if TYPE_CHECKING:
    from tui.view.app import HcsApp


class Sheet(Widget, can_focus=False):
    """Draws ``rows(columns, rows)`` of a subclass. A strip is made once per row and width, and only rows that are
    different are sent to the terminal."""

    class Clicked(Message):
        """A span with an ``action`` was clicked."""

        def __init__(self, action: str, again: bool = False) -> None:
            super().__init__()
            self.action = action
            self.again = again  # the second click of a double one, or a later one

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._drawn: list[Row] = []
        self._strips: list[Strip] = []
        self._kept: dict[tuple[Span, ...], Strip] = {}  # what stands there, by its rows
        self._drawn_for: Size | None = None
        self._inks: Inks | None = None

    def rows(self, columns: int, rows: int) -> list[Row]:
        """The rows to show in ``columns`` × ``rows``."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw again on the next frame those rows that are different."""
        size = self.size
        if not size or not self.is_attached or not self.visible_in_layout:
            self._drawn_for = None
            return
        drawn = self.rows(size.width, size.height)
        if self._drawn_for != size:
            self._take(drawn, size)
            self.refresh()
        elif changed := _changed(self._drawn, drawn, size.height):
            self._take(drawn, size)
            self.refresh(*(Region(0, first, size.width, last - first) for first, last in changed))

    @property
    def visible_in_layout(self) -> bool:
        return bool(self.display and self.size.width and self.size.height)

    @property
    def inks(self) -> Inks:
        """The styles of the app's present theme."""
        if self._inks is None:
            self._inks = inks_of(cast("HcsApp", self.app))
        return self._inks

    def notify_style_update(self) -> None:
        self._inks = None
        self._drawn_for = None
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        size = self.size
        if self._drawn_for != size:
            self._take(self.rows(size.width, size.height), size)
        return [strip.crop(crop.x, crop.right) for strip in self._strips[crop.y : crop.bottom]]

    def _take(self, drawn: list[Row], size: Size) -> None:
        """Make the strips; those of rows that stood there before, wherever that was, are kept."""
        columns, rows = size
        known = dict(self._kept) if self._drawn_for is not None and self._drawn_for.width == columns else {}
        self._drawn, self._drawn_for = drawn[:rows], size
        keys = [tuple(row) for row in self._drawn]
        self._kept = {key: known.get(key) or strip(key, columns, self.inks) for key in keys}
        self._strips = [self._kept[key] for key in keys]
        self._strips += [Strip.blank(columns, self.inks.ground)] * (rows - len(keys))

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None or offset.y >= len(self._drawn):
            return
        action = _span_at(self._drawn[offset.y], offset.x)
        if action:
            event.stop()
            self.post_message(self.Clicked(action, event.chain > 1))


def inks_of(app: HcsApp) -> Inks:
    """The styles of the app's present theme, as greys where ``NO_COLOR`` asks for them."""
    return Inks(app.current_theme, grey=app.no_color, ascii=app.settings.ascii)


def _changed(before: list[Row], after: list[Row], rows: int) -> list[tuple[int, int]]:
    """The stretches of rows, first and behind the last, that are different."""
    stretches: list[tuple[int, int]] = []
    for y, (old, new) in enumerate(zip_longest(before[:rows], after[:rows])):
        if old is not new and old != new:
            if stretches and stretches[-1][1] == y:
                stretches[-1] = (stretches[-1][0], y + 1)
            else:
                stretches.append((y, y + 1))
    return stretches


def strip(row: Iterable[Span], columns: int, inks: Inks) -> Strip:
    """A row as a strip of exactly ``columns``."""
    spans = [span for span in row if span.text]
    texts = [safe(span.text) for span in spans]
    if inks.ascii:
        texts = [ascii_text(text) for text in wide_arrows(texts, columns)]
    segments = [Segment(text, inks[span.ink]) for text, span in zip(texts, spans, strict=True)]
    return Strip(segments).adjust_cell_length(columns, inks.ground)


def _span_at(row: Iterable[Span], x: int) -> str:
    from rich.cells import cell_len

    for span in row:
        x -= cell_len(span.text)
        if x < 0:
            return span.action
    return ""
