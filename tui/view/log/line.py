"""The line below the log in which a search, or a filter of one's own, is typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from tui.view.draw.row import clip_words, longest
from tui.view.log.query import NO_REGEX, Query

_PROMPTS = {"search": "/", "include": "only ", "exclude": "without "}
_TERM = 12  # columns that what is typed keeps beside what is wrong with it
_HINTS = {
    "search": "Enter finds, n next, N previous, Esc clears",
    "include": "lines with this · Enter keeps, Esc all",
    "exclude": "no lines with this · Enter keeps, Esc all",
}


class LogLine(Horizontal):
    """Prompt, input, and the two switches. ``purpose``: ``search``, ``include`` or ``exclude``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "regex", show=False),
        Binding("alt+c", "case", show=False),
    ]

    @dataclass
    class Typed(Message):
        """``done``: Enter was pressed. A query that is wrong is told by the line itself, and by nothing else."""

        purpose: str
        query: Query
        done: bool

    def __init__(self) -> None:
        super().__init__(id="search-line", classes="line")
        self.purpose = "search"
        self._regex = False
        self._case: bool | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="search-prompt", markup=False)
        yield Input(id="search", compact=True)
        yield Static(id="search-wrong", markup=False)
        yield Static(id="search-switches")

    @property
    def query_now(self) -> Query:
        return Query(self.query_one(Input).value, self._regex, self._case)

    def open(self, purpose: str, query: Query) -> None:
        """Ask for a query, beginning with ``query``; its switches stay where there is none."""
        self.purpose = purpose
        if query:
            self._regex, self._case = query.regex, query.case
        line = self.query_one(Input)
        line.value = query.term
        line.placeholder = _HINTS[purpose]
        self.query_one("#search-prompt", Static).update(_PROMPTS[purpose])
        self.add_class("open")
        self.screen.set_focus(line)  # at once: the next letters are for it
        self._tell()

    def on_resize(self) -> None:
        self._tell()

    def action_regex(self) -> None:
        self._regex = not self._regex
        self._changed()

    def action_case(self) -> None:
        """The other of what holds now; once more: as the term's capitals say."""
        self._case = self.query_now.fold if self._case is None else None
        self._changed()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._changed()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not self.query_now.wrong:
            self.post_message(self.Typed(self.purpose, self.query_now, True))

    def _changed(self) -> None:
        self._tell()
        if self.has_class("open") and not self.query_now.wrong:
            self.post_message(self.Typed(self.purpose, self.query_now, False))

    def _tell(self) -> None:
        query = self.query_now
        on, off = "bold $hcs-ok", "$hcs-muted"
        parts = [
            Content(" "),
            Content.styled(f"[{'x' if query.regex else ' '}] regex ^r ", on if query.regex else off),
            Content.styled(f"[{' ' if query.fold else 'x'}] case alt+c", off if query.fold else on),
        ]
        switches = Content("").join(parts)
        self.query_one("#search-switches", Static).update(switches)
        room = self.size.width - len(_PROMPTS[self.purpose]) - _TERM - switches.cell_length - 1
        choices = (query.wrong, query.wrong.removeprefix(f"{NO_REGEX}: "))
        wrong = longest(choices, room) or clip_words(choices[-1], room)
        self.query_one("#search-wrong", Static).update(Content.styled(f" {wrong}" if wrong else "", "bold $hcs-bad"))
