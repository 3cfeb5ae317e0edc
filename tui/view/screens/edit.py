"""The flags of a server, to change before it is launched again: what becomes different, and whether it fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static, TextArea

from tui.fleet.edit import Change, Edit, edit, lines_of
from tui.report.clean import clean
from tui.view.draw.plan import plan_words
from tui.view.screens.confirm import question

if TYPE_CHECKING:
    from tui.view.app import HcsApp

Overrides = Mapping[str, object]


class EditFlags(ModalScreen[Overrides | None]):
    """A line per flag, as in a profile. Dismissed with what to change, or nothing: then all is left as it is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "relaunch", "relaunch", priority=True),
        Binding("escape", "dismiss", "leave it", priority=True),
    ]

    def __init__(self, name: str, flags: Mapping[str, str]) -> None:
        super().__init__()
        self._server, self._flags = name, flags
        self.edit = Edit()

    def compose(self) -> ComposeResult:
        with Container(classes="dialog edit") as dialog:
            dialog.border_title = f"Relaunch {self._server} with other flags"
            dialog.border_subtitle = "flag: value · ^s relaunches · Esc leaves it"
            yield TextArea(lines_of(self._flags), id="flags", soft_wrap=False, tab_behavior="focus")
            with VerticalScroll(id="told", can_focus=False):
                yield Static(id="difference", markup=False, classes="text")
            with Container(classes="buttons"):
                yield Button("Leave it", id="no")
                yield Button("Relaunch (^s)", id="yes")

    def on_mount(self) -> None:
        lines = self.query_one(TextArea)
        lines.focus()
        lines.move_cursor(lines.document.end)  # where a flag more is written
        self.tell()
        if not cast("HcsApp", self.app).frozen:
            self.set_interval(1, self.tell)  # what the host has free changes

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self.tell()

    def tell(self) -> None:
        """Work out what the lines change, and say it."""
        app = cast("HcsApp", self.app)
        self.edit = edit(self._flags, self.query_one(TextArea).text)
        glance = next((g for g in app.glances if g.name == self._server), None)
        if glance is None:
            self.dismiss()
            return
        host = next((h for h in app.source.hosts() if h.name == glance.state.info.host), None)
        words, ink = plan_words(self.edit.flags or {}, glance, host)
        ends = question(glance, "ended and launched again") if glance.runs else f"{self._server} will be launched."
        self.query_one("#difference", Static).update(_told(self.edit, words, ink, ends))

    def action_relaunch(self) -> None:
        """Only what can be launched is; what cannot stands below the lines."""
        if self.edit.errors:
            self.notify(self.edit.errors[0], severity="error", markup=False)
        else:
            self.dismiss(self.edit.overrides or {})

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self.action_relaunch()
        else:
            self.dismiss()


def _told(edited: Edit, plan: str, ink: str, ends: str) -> Content:
    """What matters most first: a small terminal shows the beginning."""
    parts = [Content.styled(f"✖ {clean(error)}\n", "$hcs-bad") for error in edited.errors]
    if not edited.errors:  # from what cannot be nothing follows
        parts += [Content.styled(f"{plan}\n", f"$hcs-{ink}"), Content(f"{clean(ends)}\n")]
    parts += [Content.styled(f"⚠ {clean(warning)}\n", "$hcs-warn") for warning in edited.warnings]
    parts += [_change(change) for change in edited.changes]
    if not edited.changes:
        parts.append(Content.styled("nothing is changed\n", "$hcs-muted"))
    return Content("").join(parts)


def _change(change: Change) -> Content:
    """``flag: old → new``; a flag that comes or goes says so."""
    sign = "+" if change.old is None else "-" if change.new is None else "~"
    words = [part for part in (change.old, change.new) if part is not None]
    return Content.styled(f"{sign} {change.flag}: ", "bold").append(Content(clean(" → ".join(words)) + "\n"))
