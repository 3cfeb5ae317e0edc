"""The sheets of the main view: each is a pure drawing with the present glances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from rich.cells import cell_len
from rich.markup import escape
from textual import events
from textual.app import ComposeResult
from textual.containers import Container
from textual.geometry import Region
from textual.widget import Widget

from tui.fleet.api import HostState, Source
from tui.view.draw import board, caches, head, hostmemory, timeline
from tui.view.draw.order import Order
from tui.view.draw.row import Row, Span, clip_middle
from tui.view.glance import Glance
from tui.view.sheet import Sheet

_TITLE_EDGE = 6  # columns of an edge that its title leaves: a corner, a dash and a space at each end
_NAME_MIN = 10  # columns of a name that tell servers apart


class Header(Sheet):
    """Title, counts, totals, clock."""

    title = ""
    read_only = False
    now = 0.0
    glances: Sequence[Glance] = ()

    def tell(self, source: Source, glances: Sequence[Glance]) -> None:
        """Draw what is known of ``source`` now."""
        self.title, self.read_only = source.title, source.read_only
        self.glances, self.now = glances, source.now()
        self.redraw()

    def rows(self, columns: int, rows: int) -> list[Row]:
        return [head.header(self.title, self.glances, self.now, columns, read_only=self.read_only)]


class Troubles(Sheet):
    """What is wrong with hosts, or with the dashboard itself; nothing otherwise."""

    hosts: Sequence[HostState] = ()
    error = ""
    now = 0.0

    def rows(self, columns: int, rows: int) -> list[Row]:
        return head.troubles(self.hosts, self.error, self.now, columns, rows)


class Footer(Sheet):
    """Keys."""

    keys: Sequence[head.Key] = ()

    def rows(self, columns: int, rows: int) -> list[Row]:
        return [head.footer(self.keys, columns)]


class Choosing(Sheet):
    """A sheet of servers: the wheel selects another one."""

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.post_message(self.Clicked("up"))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.post_message(self.Clicked("down"))


class Board(Choosing, can_focus=True):
    """The listed servers, scrolled so that the selected one is seen."""

    glances: Sequence[Glance] = ()
    order = Order()
    selected: str | None = None
    first = 0
    reading = ""  # what is still to be read before there are servers

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._known: board.Known = {}

    def rows(self, columns: int, rows: int) -> list[Row]:
        entries = board.entries(self.glances, by_host=self.order.by_host)
        if not entries:
            only, none = self.order.only, f"reading {self.reading} …" if self.reading else "no servers yet"
            return [[Span(f"  no server matches “{only}”; Esc lists all" if only else f"  {none}", "muted")]]
        at = next((n for n, e in enumerate(entries) if not isinstance(e, str) and e.name == self.selected), 0)
        above = at - 1 if at and isinstance(entries[at - 1], str) and rows > 1 else at  # with its host
        self.first = max(0, min(max(self.first, at - rows + 1), above, len(entries) - rows))
        window = slice(self.first, self.first + rows)
        by_host = self.order.by_host
        return board.board(self.glances, columns, self.selected, by_host=by_host, window=window, known=self._known)

    def hidden(self) -> tuple[int, int]:
        """Rows above and below the screen."""
        entries = board.entries(self.glances, by_host=self.order.by_host)
        return self.first, max(0, len(entries) - self.first - max(1, self.size.height))


class Timeline(Sheet, can_focus=True):
    """The selected server's start-up."""

    glance: Glance | None = None
    host: HostState | None = None
    alone = False  # whether no other panel tells of its host's memory

    def rows(self, columns: int, rows: int) -> list[Row]:
        if self.glance is None:
            return []
        memory = hostmemory.line(self.glance, self.host, columns) if self.alone else None
        return timeline.timeline(self.glance, columns, rows, memory)


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
        self._title, self._subtitle = title, ""
        self._edge: Region | None = None
        self.border_title = title

    def compose(self) -> ComposeResult:
        yield self.sheet
        yield from self._more

    def named(self, name: str, what: str) -> str:
        """A title: whose it is and what; a name too long for the edge is cut in its middle. Markup."""
        room = self.outer_size.width - _TITLE_EDGE - cell_len(f" · {what}")
        return escape(f"{clip_middle(name, max(_NAME_MIN, room)) if self.outer_size.width else name} · {what}")

    def tell(self, title: str, subtitle: str = "") -> None:
        """Title and subtitle, as markup. Only the edge that is different is drawn again."""
        if title != self._title:
            self._title, self._edge = title, Region(-1, -1, self.outer_size.width, 1)
            self.border_title = title
        if subtitle != self._subtitle:
            self._subtitle, self._edge = subtitle, Region(-1, self.size.height, self.outer_size.width, 1)
            self.border_subtitle = subtitle
        self._edge = None

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Textual draws all of a widget again for a title: here its edge is enough."""
        edge = self._edge
        if edge is not None and edge.width and not layout and not recompose:
            regions = regions or (edge,)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
