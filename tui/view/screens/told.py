"""A dialog that says something: the result of a smoke test, a comparison of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import ScrollableContainer
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.fleet.api import Outcome
from tui.report.clean import clean
from tui.view.draw.listing import side_by_side

_EDGES = 6  # columns of a dialog's border, padding and scrollbar


class Told(ModalScreen[None]):
    """Words under a title; any of Esc, Enter and q closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "dismiss", "close")]

    def __init__(self, title: str, text: Content, *, wrap: bool = True) -> None:
        super().__init__()
        self._title, self._text, self._wrap = title, text, wrap

    def compose(self) -> ComposeResult:
        with ScrollableContainer(classes="dialog told" if self._wrap else "dialog told as-is") as dialog:
            dialog.border_title = self._title
            dialog.border_subtitle = "↑↓ scroll · Esc closes"
            yield Static(self._text, markup=False, classes="text" if self._wrap else "")


class Compared(Told):
    """Rows of (what, value of each), all of them side by side at any width."""

    def __init__(self, title: str, rows: Sequence[Sequence[str]]) -> None:
        super().__init__(title, Content(""), wrap=False)
        self._rows = rows

    def on_mount(self) -> None:
        self._draw(self.app.size.width)

    def on_resize(self, event: events.Resize) -> None:
        self._draw(event.size.width)

    def _draw(self, columns: int) -> None:
        lines = side_by_side(self._rows, columns - _EDGES)
        self.query_one(Static).update("\n".join(clean(line) for line in lines))


def smoke(outcome: Outcome) -> Content:
    """What a smoke test found: the figures, then prompt and text."""
    told = outcome.details
    first, rate, seconds = told.get("ttft"), told.get("rate"), told.get("seconds")
    figures = [
        f"{told.get('tokens')} tokens in {seconds:.2f} s" if isinstance(seconds, float) else "",
        f"first token after {first:.2f} s" if isinstance(first, float) else "",
        f"{rate:.1f} tok/s{' after it' if isinstance(first, float) else ''}" if isinstance(rate, float) else "",
    ]
    return Content("").join(
        [
            Content.styled(" · ".join(figure for figure in figures if figure), "bold $hcs-ok"),
            Content.styled("\nby the host's clock, beside what else it serves\n\n", "$hcs-muted"),
            Content.styled(clean(str(told.get("prompt", ""))), "$hcs-muted"),
            Content(clean(str(told.get("text", "")).rstrip())),
        ]
    )
