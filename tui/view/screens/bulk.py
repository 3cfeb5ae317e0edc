"""Launching, relaunching or ending all servers that the board lists."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widgets import Button, Static

from tui.report.restarts import upcoming
from tui.view.draw.row import clip
from tui.view.glance import Glance
from tui.view.screens.confirm import Asking

_NAMED = 200  # characters of names
VERBS = {"launch": "l", "relaunch": "R", "kill": "K"}


def targets(verb: str, listed: Sequence[Glance]) -> list[str]:
    """Whom ``verb`` is about: never a server that somebody else started."""
    own = [g for g in listed if g.state.info.stranger is None]
    match verb:
        case "launch":
            return [g.name for g in own if not g.runs]
        case "kill":
            return [g.name for g in own if g.runs or upcoming(g.state, g.now)]
        case _:
            return [g.name for g in own]


class Bulk(Asking[str]):
    """Dismissed with a verb, or with nothing by Esc."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"choose('{verb}')", verb) for verb, key in VERBS.items()),
        Binding("escape", "dismiss('')", "leave them"),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
    ]

    def __init__(self, listed: Sequence[Glance], of: int) -> None:
        super().__init__()
        self._listed, self._of = listed, of
        self._counts = {verb: len(targets(verb, listed)) for verb in VERBS}

    def compose(self) -> ComposeResult:
        with Container(classes="dialog question") as dialog:
            dialog.border_title = "All listed servers"
            yield Static(listed_words(self._listed, self._of), markup=False, classes="text")
            with Container(classes="buttons column"):
                yield Button("Leave them", id="no")
                for verb, count in self._counts.items():
                    if count:
                        yield Button(f"{verb.capitalize()} {count} ({VERBS[verb]})", id=verb)

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss("" if event.button.id == "no" else event.button.id)

    def action_choose(self, verb: str) -> None:
        if self._counts[verb]:
            self.dismiss(verb)


def listed_words(listed: Sequence[Glance], of: int) -> str:
    """How many servers, in which phases, on which hosts."""
    phases = Counter(g.phase.value for g in listed)
    hosts = sorted({g.state.info.host for g in listed if g.state.info.host})
    strangers = sum(g.state.info.stranger is not None for g in listed)
    found = f" {strangers} found running {'is' if strangers == 1 else 'are'} left alone." if strangers else ""
    every = {1: "The one server", 2: "Both servers"}.get(of, f"All {of} servers")
    which = every if len(listed) == of else f"{len(listed)} of {of} servers, as the board lists them"
    told = ", ".join(f"{count} {phase}" for phase, count in phases.items())
    where = f" on {clip(', '.join(hosts), 60)}" if hosts else ""
    return f"{which}{where}: {told}.{found}"


def ending_words(verb: str, names: Sequence[str], glances: Sequence[Glance]) -> str:
    """What it costs to end these."""
    running = sum(g.sample.running or 0 for g in glances if g.name in names and g.sample and g.runs)
    ended = [g.name for g in glances if g.name in names and g.runs]
    becomes = "ended and launched again" if verb == "relaunch" else "ended"
    lost = f" {running} running request{'s are' if running != 1 else ' is'} lost." if running else ""
    others = len(names) - len(ended)
    one = others == 1
    too = f" {others} that do{'es' if one else ''} not run {'is' if one else 'are'} launched."
    if verb == "kill":
        too = f" {others} restart{' that is to come is' if one else 's that are to come are'} given up."
    away = sum(g.unreachable for g in glances if g.name in names)
    far = f" {away} out of reach: as long as no host answers, nothing is done to {'it' if away == 1 else 'them'}."
    return f"{_names(ended)} will be {becomes}.{lost}{too if others else ''}{far if away else ''}"


def _natural(name: str) -> list[tuple[str, int]]:
    """A key that sorts ``demo2`` before ``demo10``."""
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D*)(\d*)", name)]


def _names(names: Sequence[str]) -> str:
    """In their natural order, those that have room whole, and how many more there are."""
    told = sorted(names, key=_natural)
    shown = [name for n, name in enumerate(told) if sum(len(one) + 2 for one in told[: n + 1]) <= _NAMED] or told[:1]
    more = len(told) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
