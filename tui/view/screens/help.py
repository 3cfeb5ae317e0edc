"""The help screen: the table of actions."""

from __future__ import annotations

from itertools import groupby
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.view.actions import ACTS


class Help(ModalScreen[None]):
    """All keys, grouped. Any of Esc, ``?`` and ``q`` closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q", "dismiss", "close")]

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog") as dialog:
            dialog.border_title = "Keys"
            dialog.border_subtitle = "Esc closes"
            yield Static(help_text())


def help_text() -> Content:
    """The table of actions as text."""
    parts: list[Content] = []
    for group, acts in groupby(ACTS, key=lambda act: act.group):
        parts.append(Content.styled(f"{group}\n", "bold $accent"))
        for act in acts:
            parts += [Content.styled(f"  {act.key:<6}", "bold $hcs-key"), Content(f" {act.help}\n")]
        parts.append(Content("\n"))
    parts.append(
        Content("● ready  ◐ starting  ✖ failed  ◑ stopping  ◌ stopped  ○ absent  ? lost  ⚠ stalled or unreachable")
    )
    return Content("").join(parts)
