"""The line below the board in which is typed what the servers that are listed have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.binding import Binding, BindingType
from textual.widgets import Input

if TYPE_CHECKING:
    from typing import ClassVar

    from tui.view.app import HcsApp


class Only(Input):
    """Lists while it is typed in; Enter keeps what was typed, and Esc lists all again. ↑ and ↓ select meanwhile."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "app.up", show=False),
        Binding("down", "app.down", show=False),
    ]

    def __init__(self, *, id: str) -> None:
        super().__init__(placeholder="only: name, host, state, model · Enter keeps, Esc all", id=id, classes="line")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.has_class("open"):
            cast("HcsApp", self.app).list_only(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        cast("HcsApp", self.app).close_only()
