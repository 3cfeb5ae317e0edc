"""The help screen: the table of actions."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.view.actions import ACTS
from tui.view.draw.row import Span, flow, plain, wrap
from tui.view.glance import GLYPHS

if TYPE_CHECKING:
    from tui.view.app import HcsApp

_INDENT = 9  # columns of a key, and of what stands below it
_MARKS = [
    [Span(mark)] for mark in (*(f"{GLYPHS[phase]} {phase.value}" for phase in GLYPHS), "⚠ stalled or unreachable")
]


class Help(ModalScreen[None]):
    """All keys, grouped. Any of Esc, ``?`` and ``q`` closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q", "dismiss", "close")]

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog keys") as dialog:
            dialog.border_title = "Keys"
            dialog.border_subtitle = "↑↓ scroll · Esc closes"
            yield _Keys(read_only=cast("HcsApp", self.app).source.read_only, classes="text")


class _Keys(Static):
    """The table, wrapped to its own width."""

    def __init__(self, *, read_only: bool, classes: str) -> None:
        super().__init__(classes=classes)
        self._read_only = read_only

    def on_resize(self, event: events.Resize) -> None:
        self.update(help_text(event.size.width, read_only=self._read_only))


def help_text(columns: int, *, read_only: bool = False) -> Content:
    """The table of actions as text of at most ``columns``; what ``read_only`` forbids is muted, and says so."""
    parts: list[Content] = []
    for group, acts in groupby(ACTS, key=lambda act: act.group):
        parts.append(Content.styled(f"{group}\n", "bold $accent"))
        for act in acts:
            off = read_only and act.changes
            key, ink = ("$hcs-muted", "$hcs-muted") if off else ("bold $hcs-key", "")
            first, *more = wrap(f"{act.help} (off: read-only)" if off else act.help, max(8, columns - _INDENT))
            parts += [Content.styled(f"  {act.key:<{_INDENT - 3}}", key), Content.styled(f" {first}\n", ink)]
            parts += [Content.styled(f"{'':{_INDENT}}{line}\n", ink) for line in more]
        parts.append(Content("\n"))
    return Content("").join([*parts, Content("\n".join(plain([row]) for row in flow(_MARKS, max(8, columns))))])
