"""The sheets of the main view: each is a pure drawing with the present glances."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container
from textual.widget import Widget

from tui.fleet.api import HostState
from tui.view.draw import board, caches, head, timeline
from tui.view.draw.row import Row
from tui.view.glance import Glance
from tui.view.sheet import Sheet


class Header(Sheet):
    """Title, counts, totals, clock."""

    title = ""
    read_only = False
    now = 0.0
    glances: Sequence[Glance] = ()

    def rows(self, columns: int, rows: int) -> list[Row]:
        return [head.header(self.title, self.glances, self.now, columns, read_only=self.read_only)]


class Troubles(Sheet):
    """What is wrong with hosts, or with the dashboard itself; nothing otherwise."""

    hosts: Sequence[HostState] = ()
    error = ""
    now = 0.0

    def rows(self, columns: int, rows: int) -> list[Row]:
        return head.troubles(self.hosts, self.error, self.now, columns)


class Footer(Sheet):
    """Keys."""

    keys: Sequence[head.Key] = ()

    def rows(self, columns: int, rows: int) -> list[Row]:
        return [head.footer(self.keys, columns)]


class Board(Sheet, can_focus=True):
    """All servers, scrolled so that the selected one is seen."""

    glances: Sequence[Glance] = ()
    selected: str | None = None
    first = 0

    def rows(self, columns: int, rows: int) -> list[Row]:
        drawn = board.board(self.glances, columns, self.selected)
        at = next((n for n, g in enumerate(self.glances) if g.name == self.selected), 0)
        self.first = max(0, min(max(self.first, at - rows + 1), at, len(drawn) - rows))
        return drawn[self.first : self.first + rows]

    def hidden(self) -> int:
        """Servers above and below the screen."""
        return max(0, len(self.glances) - self.size.height)


class Timeline(Sheet, can_focus=True):
    """The selected server's start-up."""

    glance: Glance | None = None

    def rows(self, columns: int, rows: int) -> list[Row]:
        return timeline.timeline(self.glance, columns, rows) if self.glance else []


class Caches(Sheet, can_focus=True):
    """The selected server's caches and its host's memory."""

    glance: Glance | None = None
    host: HostState | None = None

    def rows(self, columns: int, rows: int) -> list[Row]:
        return caches.caches(self.glance, self.host, columns, rows) if self.glance else []


class Panel(Container):
    """A border with a title around one sheet, and what else belongs to it."""

    def __init__(self, sheet: Sheet, *more: Widget, title: str, id: str) -> None:
        super().__init__(id=id, classes="panel")
        self.sheet = sheet
        self._more = more
        self.border_title = title

    def compose(self) -> ComposeResult:
        yield self.sheet
        yield from self._more
