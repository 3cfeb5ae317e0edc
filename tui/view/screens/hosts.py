"""Memory, GPUs and disks of all hosts. Drawn again once a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tui.view.draw import hosts
from tui.view.draw.row import Row
from tui.view.panels import Footer, Header, Panel
from tui.view.sheet import Sheet

if TYPE_CHECKING:
    from tui.view.app import HcsApp


class HostSheet(Sheet, can_focus=True):
    """All hosts, scrolled by ``first`` rows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll(-1)", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown,space", "page(1)", show=False),
        Binding("home,g", "scroll(-100000)", show=False),
        Binding("end,G", "scroll(100000)", show=False),
    ]
    app: HcsApp
    first = 0
    more = 0

    def rows(self, columns: int, rows: int) -> list[Row]:
        source = self.app.source
        drawn = hosts.hosts(source.hosts(), self.app.glances, source.now(), columns)
        self.first = max(0, min(self.first, len(drawn) - rows))
        self.more = max(0, len(drawn) - rows - self.first)
        return drawn[self.first : self.first + rows]

    def action_scroll(self, rows: int) -> None:
        self.first += rows
        self.redraw()
        self.tell()

    def action_page(self, pages: int) -> None:
        self.action_scroll(pages * max(1, self.size.height - 1))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.action_scroll(-2)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.action_scroll(2)

    def tell(self) -> None:
        """Rows above and below the screen."""
        parts = [f"{arrow} {count}" for arrow, count in (("▲", self.first), ("▼", self.more)) if count]
        if isinstance(self.parent, Panel):
            self.parent.border_subtitle = " ".join(parts)


class Hosts(Screen[None]):
    """The hosts, with the board's header."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("h,escape", "dismiss", "back")]

    app: HcsApp

    def compose(self) -> ComposeResult:
        header = Header(id="header")
        header.tell(self.app.source, self.app.glances)
        yield header
        yield Panel(HostSheet(id="hosts"), title="HOSTS", id="hosts-panel")
        yield Footer(id="footer")

    def on_mount(self) -> None:
        acts = {act.id: act for act in self.app.acts}
        self.query_one(Footer).keys = [acts[id] for id in ("back", "up", "down")]
        self.query_one(HostSheet).focus()
        self.call_after_refresh(self.redraw)
        if not self.app.frozen:
            self.set_interval(1, self.redraw)

    def on_resize(self) -> None:
        self.call_after_refresh(self.redraw)

    def redraw(self) -> None:
        """Draw what is known now."""
        self.query_one(Header).tell(self.app.source, self.app.glances)
        sheet = self.query_one(HostSheet)
        sheet.redraw()
        sheet.tell()

    def on_sheet_clicked(self, message: Sheet.Clicked) -> None:
        """A server leads to the board, where its details are; the footer's keys do what they say."""
        message.stop()
        kind, _, name = message.action.partition(":")
        if kind == "select":
            self.app.select(name)
        if kind in ("up", "down"):
            self.query_one(HostSheet).action_scroll(1 if kind == "down" else -1)
        else:
            self.dismiss()
