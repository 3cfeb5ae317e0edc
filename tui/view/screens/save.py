"""Asking under which name a log is saved."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from rich.markup import escape
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui.report.clean import clean


class SaveAs(ModalScreen[Path | None]):
    """Dismissed with the path of a file that does not exist yet, or with nothing by Esc."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "leave it")]

    def __init__(self, what: str, name: str) -> None:
        super().__init__()
        self._what, self._name = what, name

    def compose(self) -> ComposeResult:
        with Container(classes="dialog question") as dialog:
            dialog.border_title = escape(clean(self._what))
            dialog.border_subtitle = "Enter saves · Esc leaves it"
            yield Static(f"A new file in {Path.cwd()}, readable by you alone:", markup=False, classes="text", id="why")
            yield Input(self._name, id="reply")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not event.value.strip():
            return
        path = Path(event.value.strip()).expanduser()
        wrong = unusable(path)
        if wrong:
            self.query_one("#why", Static).update(clean(f"{path}: {wrong}"))
        else:
            self.dismiss(path)


def unusable(path: Path) -> str:
    """Why no new file can be made there; empty where one can."""
    try:
        if path.is_symlink() or path.exists():
            return "it exists already, and is not overwritten. Another name?"
        return "" if path.parent.is_dir() else f"there is no folder {path.parent}"
    except (OSError, ValueError) as error:
        return str(getattr(error, "strerror", None) or error).lower()
