"""What the actions know of the app that they belong to."""

from __future__ import annotations

from textual.app import App

from tui.fleet.api import Source
from tui.view.glance import Glance
from tui.view.pending import Pending


class Dashboard(App[None]):
    """An app that shows ``source``. ``lasting``: whether the servers outlive it. ``frozen``: no timers."""

    source: Source
    glances: tuple[Glance, ...]
    selected: str | None
    lasting: bool
    frozen: bool
    pending: Pending

    @property
    def chosen(self) -> Glance | None:
        """The selected server."""
        return next((g for g in self.glances if g.name == self.selected), None)

    def look(self) -> None:
        """Read the source, and draw what is different."""
        raise NotImplementedError

    def draw(self) -> None:
        """Draw what is different."""
        raise NotImplementedError

    def arrange(self) -> None:
        """Give the panels their heights."""
        raise NotImplementedError

    def select(self, name: str) -> None:
        """Show the server called ``name`` in the detail panels."""
        raise NotImplementedError
