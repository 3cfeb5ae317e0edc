"""Choosing a profile: those that are found, also the broken ones, with what is wrong with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tui.report.clean import clean
from tui.view.draw.listing import Column, listing
from tui.view.draw.row import wrap

_COLUMNS = (
    Column("", 9),
    Column("PROFILE", 10),
    Column("FROM", 6),
    Column("SERVERS", 7, right=True),
    Column("HOSTS", 5),
    Column("ABOUT", 4, wide=True),
)
_HOSTS = 24  # columns
_DETAIL = 6  # rows


@dataclass(frozen=True, slots=True)
class Choice:
    """A profile that can be opened, or one with mistakes: ``errors`` are lines. ``place``: where it was found."""

    path: Path
    name: str
    place: str
    description: str = ""
    hosts: tuple[str, ...] = ()
    servers: int = 0
    errors: tuple[str, ...] = ()

    def fits(self, words: str) -> bool:
        """Whether all of ``words`` are found in what is listed of it."""
        text = " ".join((self.name, self.place, self.description, *self.hosts)).lower()
        return all(word in text for word in words.lower().split())


class Picker(Screen[Path | None]):
    """Typing filters, ↑ and ↓ move, Enter opens. Dismissed with a profile's file, or nothing by Esc."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("pageup", "move(-10)", show=False, priority=True),
        Binding("pagedown", "move(10)", show=False, priority=True),
    ]

    def __init__(self, find: Callable[[], Sequence[Choice]]) -> None:
        super().__init__()
        self._find = find
        self._all: Sequence[Choice] | None = None
        self.shown: list[Choice] = []

    def compose(self) -> ComposeResult:
        with Container(classes="panel picker") as panel:
            panel.border_title = "Which profile?"
            panel.border_subtitle = "type to filter · ↑↓ · Enter opens · Esc leaves"
            yield Input(placeholder="filter", id="filter")
            yield Static("looking …", markup=False, id="head")
            options = OptionList(markup=False)
            options.can_focus = False  # keys belong to the line; the mouse works all the same
            yield options
            yield Static("", markup=False, id="detail-line")

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self.run_worker(self._look(), exit_on_error=True)

    async def _look(self) -> None:
        """Reading profiles takes a moment, for what it loads: the screen stands there meanwhile."""
        self._all = await asyncio.to_thread(self._find)
        self._list()

    @property
    def listed(self) -> bool:
        """Whether the profiles have been read."""
        return self._all is not None

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._list()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._list)

    def _list(self) -> None:
        if self._all is None:
            return
        words = self.query_one(Input).value
        self.shown = [choice for choice in self._all if choice.fits(words)]
        options, head = self.query_one(OptionList), self.query_one("#head", Static)
        titles, *lines = listing(_COLUMNS, [_row(choice) for choice in self.shown], max(20, options.size.width - 3))
        options.clear_options()
        options.add_options([Option(clean(line)) for line in lines])
        if self.shown:
            head.update(titles)
            options.highlighted = 0
            self._describe(0)
        else:
            none = "no profile is found: put one into ./profiles, or name a file: hcs-tui FILE"
            head.update(f"no profile matches “{words}”" if self._all else none)
            self.query_one("#detail-line", Static).update("")

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self._describe(event.option_index)

    def _describe(self, at: int) -> None:
        """Say below the list where a profile is, and what is wrong with it."""
        if at < len(self.shown):
            choice = self.shown[at]
            line = self.query_one("#detail-line", Static)
            told = [str(choice.path), *(choice.errors or (choice.description,))]
            lines = [part for text in told for part in wrap(clean(text), max(20, line.size.width))]
            line.update("\n".join(lines[:_DETAIL]))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self._open(event.option_index)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        at = self.query_one(OptionList).highlighted
        if at is not None:
            self._open(at)

    def _open(self, at: int) -> None:
        if at >= len(self.shown):
            return
        choice = self.shown[at]
        if choice.errors:
            self.app.bell()  # what is wrong stands below
        else:
            self.dismiss(choice.path)

    def action_move(self, step: int) -> None:
        options = self.query_one(OptionList)
        if self.shown:
            options.highlighted = max(0, min(len(self.shown) - 1, (options.highlighted or 0) + step))

    def action_leave(self) -> None:
        """Take the filter away; without one, leave."""
        line = self.query_one(Input)
        if line.value:
            line.value = ""
        else:
            self.dismiss(None)


def _row(choice: Choice) -> list[str]:
    broken = bool(choice.errors)
    hosts = ", ".join(choice.hosts)
    return [
        "✖" if broken else " ",
        choice.name,
        choice.place,
        "" if broken else str(choice.servers),
        hosts if len(hosts) <= _HOSTS else f"{len(choice.hosts)} hosts",
        f"{len(choice.errors)} mistake{'s' if len(choice.errors) != 1 else ''}" if broken else choice.description,
    ]
