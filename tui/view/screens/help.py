"""The help screen: the table of actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.sglang import verdict
from tui.sglang.model import Phase
from tui.view.actions import ACTS, Act
from tui.view.draw.row import Span, flow, plain, wrap
from tui.view.glance import GLYPHS, Glance

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
            app = cast("HcsApp", self.app)
            yield _Keys(app.acts, app.chosen, read_only=app.source.read_only)


class _Keys(Static):
    """The table, wrapped to its own width."""

    def __init__(self, acts: Sequence[Act], chosen: Glance | None, *, read_only: bool) -> None:
        super().__init__(classes="text")
        self._acts, self._chosen = acts, chosen
        self._read_only = read_only

    def on_resize(self, event: events.Resize) -> None:
        self.update(help_text(event.size.width, self._acts, self._chosen, read_only=self._read_only))


def help_text(
    columns: int, acts: Sequence[Act] = ACTS, chosen: Glance | None = None, *, read_only: bool = False
) -> Content:
    """The table of actions as text of at most ``columns``, first what makes sense for the ``chosen`` server; what
    ``read_only`` forbids is muted, and says so."""
    parts: list[Content] = []
    if chosen is not None and (now := sensible(acts, chosen, read_only=read_only)):
        parts.append(Content.styled(f"{chosen.name} is {chosen.phase.value}\n", "bold $accent"))
        words = [[Span(f"{act.key} {act.name}")] for act in now]
        parts += [Content(f"  {plain([row])}\n") for row in flow(words, max(8, columns - 2), gap="   ")]
        parts.append(Content("\n"))
    for group, grouped in groupby(acts, key=lambda act: act.group):
        parts.append(Content.styled(f"{group}\n", "bold $accent"))
        for act in grouped:
            parts += _entry(act, columns, off=read_only and act.changes)
        parts.append(Content("\n"))
    return Content("").join([*parts, Content("\n".join(plain([row]) for row in flow(_MARKS, max(8, columns))))])


def _entry(act: Act, columns: int, *, off: bool) -> list[Content]:
    """One action: its key, and what it does."""
    key, ink = ("$hcs-muted", "$hcs-muted") if off else ("bold $hcs-key", "")
    first, *more = wrap(f"{act.help} (off: read-only)" if off else act.help, max(8, columns - _INDENT))
    below = [Content.styled(f"{'':{_INDENT}}{line}\n", ink) for line in more]
    return [Content.styled(f"  {act.key:<{_INDENT - 3}}", key), Content.styled(f" {first}\n", ink), *below]


_SENSIBLE: tuple[tuple[str, Callable[[Glance], bool]], ...] = (
    ("launch", lambda g: not g.runs),
    ("edit", lambda g: True),
    ("relaunch", lambda g: True),
    ("kill", lambda g: g.runs),
    ("smoke_test", lambda g: g.phase is Phase.READY),
    ("forward", lambda g: g.phase is Phase.READY),
    ("charts", lambda g: bool(g.state.log.series)),
    ("reconnect", lambda g: g.unreachable),
    ("history", lambda g: True),
    ("copy_command", lambda g: True),
)


def sensible(acts: Sequence[Act], glance: Glance, *, read_only: bool) -> list[Act]:
    """What can be done with a server in its present phase, the likeliest first. Nothing with a saved log but to look
    at it; a server that somebody else started is not launched from here."""
    by_id = {act.id: act for act in acts}
    saved, found = verdict.saved(glance.state), glance.state.info.stranger is not None
    shown = [by_id[id] for id, fits in _SENSIBLE if id in by_id and fits(glance)]
    shown = [act for act in shown if not (read_only and act.changes) and (not saved or act.id == "charts")]
    return [act for act in shown if not (found and act.id in ("launch", "relaunch", "edit", "history"))]
