"""Asking before something is ended. Enter alone never says yes."""

from __future__ import annotations

import math
import time
from typing import ClassVar, TypeVar

from rich.markup import escape
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from tui.report.clean import clean
from tui.view.draw import units
from tui.view.draw.row import clip
from tui.view.glance import Glance

Reply = TypeVar("Reply")


def question(chosen: Glance, becomes: str) -> str:
    """What is about to end: server, host, uptime, and what that costs. Of one that is over: what is left of it."""
    where = f" on {chosen.state.info.host}" if chosen.state.info.host else ""
    if not chosen.runs:
        left = chosen.state.exit.left if chosen.state.exit else ()
        known = f" ({len(left)} process{'es' if len(left) != 1 else ''})" if left else ", if anything,"
        again = " It will not be restarted." if chosen.state.restarts.pending else ""
        return (
            f"{chosen.name}{where} is {chosen.phase.value} already. What is left of it{known} will be {becomes}.{again}"
        )
    up = f" for {units.span(chosen.uptime)}" if chosen.uptime is not None else ""
    running = chosen.sample.running if chosen.sample else None
    lost = f" Its {running} running request{'s are' if running != 1 else ' is'} lost." if running else ""
    what = f"{chosen.name}{where}, {chosen.phase.value}{up}, will be {becomes}.{lost}"
    if chosen.unreachable:
        what = _out_of_reach(chosen, becomes)
    stranger = chosen.state.info.stranger
    if stranger is None:
        return what
    return f"{what}\nIt was not launched from here: {stranger.owner} started it.\n{clip(stranger.command, 180)}"


def _out_of_reach(chosen: Glance, becomes: str) -> str:
    """Nobody sees what it does now: what was seen last, and what can be done from here."""
    since = chosen.state.unreachable_since or chosen.now
    silent = max(0.0, chosen.now - since)
    up = "" if chosen.uptime is None else f" for {units.span(max(0.0, chosen.uptime - silent))}"
    running = chosen.sample.running if chosen.sample else None
    busy = f", with {running} running request{'s' if running != 1 else ''}" if running else ""
    at = time.strftime("%H:%M:%S", time.localtime(since))
    return (
        f"{chosen.state.info.host or chosen.name} is out of reach since {at} ({units.span(silent)}). When it was last "
        f"seen, {chosen.name} was {chosen.phase.value}{up}{busy}.\n"
        f"As long as its host does not answer it stays as it is; if it answers by now, it will be {becomes}."
    )


class Asking(ModalScreen[Reply]):
    """A question whose answers are keys: what was typed before it stood there is no answer, only a no."""

    NOES: ClassVar[frozenset[str]] = frozenset({"escape", "n"})
    _painted = math.inf

    def on_mount(self) -> None:
        self.call_after_refresh(self._stands)

    def _stands(self) -> None:
        self._painted = time.monotonic()

    def on_key(self, event: events.Key) -> None:
        if event.time < self._painted and event.key not in self.NOES:
            event.stop()


class Confirm(Asking[bool]):
    """``y`` or the button says yes; Enter stands on no; Esc and ``n`` say no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape", "answer(False)", "no"),
        Binding("left,right", "app.focus_next", show=False),
    ]

    def __init__(self, title: str, text: str, yes: str, no: str) -> None:
        super().__init__()
        self._title, self._text, self._yes, self._no = title, text, yes, no

    def compose(self) -> ComposeResult:
        with Container(classes="dialog question") as dialog:
            dialog.border_title = escape(clean(self._title))
            yield Static(clean(self._text), markup=False, classes="text")
            with Container(classes="buttons"):
                yield Button(self._no, id="no")
                yield Button(f"{self._yes} (y)", id="yes")

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)


class TypeName(ModalScreen[bool]):
    """Says yes only when ``name``, or a number of servers, was typed and entered: for what somebody may need."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(False)", "no")]

    def __init__(self, title: str, text: str, name: str) -> None:
        super().__init__()
        self._title, self._text, self._wanted = title, text, name
        self._it = "them" if name.isdigit() else "it"

    def compose(self) -> ComposeResult:
        with Container(classes="dialog question") as dialog:
            dialog.border_title = escape(clean(self._title))
            yield Static(clean(self._text), markup=False, classes="text")
            yield Static(
                f"Type {self._wanted} and Enter to end {self._it}; Esc leaves {self._it}.", markup=False, classes="text"
            )
            yield Input(id="name")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip() == self._wanted:
            self.dismiss(True)
        else:
            event.input.value = ""
            event.input.placeholder = "that is not what stands above"
