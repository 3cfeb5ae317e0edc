"""What the actions know of the app that they belong to."""

from __future__ import annotations

from textual.app import App

from tui.fleet.api import Source
from tui.view.actions import Act
from tui.view.draw.board import entries
from tui.view.draw.order import Listing, Order
from tui.view.glance import Glance
from tui.view.log.earlier import EarlierLog
from tui.view.log.merged import MergedLog
from tui.view.pending import Pending
from tui.view.settings import Settings
from tui.view.turns import Turns


class Dashboard(App[None]):
    """An app that shows ``source``. ``lasting``: whether the servers outlive it. ``frozen``: no timers.
    ``acts``: the table of actions with the user's own keys."""

    source: Source
    glances: tuple[Glance, ...]
    selected: str | None
    lasting: bool
    frozen: bool
    pending: Pending
    settings: Settings
    acts: tuple[Act, ...]
    merged: MergedLog | None  # open, of the logs of all listed servers
    earlier: dict[str, EarlierLog]  # servers → the run whose log is shown instead of the current one's
    order: Order = Order()  # of the board
    listing: Listing
    turns: Turns

    @property
    def chosen(self) -> Glance | None:
        """The selected server."""
        return next((g for g in self.glances if g.name == self.selected), None)

    @property
    def listed(self) -> tuple[Glance, ...]:
        """The servers that the board lists, in its order."""
        return self.listing.of(self.glances, self.order)

    @property
    def board_rows(self) -> int:
        """Rows of a board that shows all that it lists, and the line below it where that is open."""
        typing = self.screen_stack[0].query_one("#only").has_class("open")
        return max(1, len(entries(self.listed, by_host=self.order.by_host))) + typing

    def look(self) -> bool:
        """Read the source, and draw what is different; whether anything was."""
        raise NotImplementedError

    def draw(self) -> None:
        """Draw what is different."""
        raise NotImplementedError

    def arrange(self) -> None:
        """Give the panels their heights."""
        raise NotImplementedError

    def close_merged(self) -> None:
        """Show the selected server's own log again."""
        raise NotImplementedError

    def select(self, name: str) -> None:
        """Show the server called ``name`` in the detail panels."""
        raise NotImplementedError
