"""Actions on the board: its order, and which servers it lists."""

from __future__ import annotations

from dataclasses import replace

from textual.widgets import Input

from tui.view import layout
from tui.view.doing.dashboard import Dashboard
from tui.view.draw.order import Order, next_sort
from tui.view.panels import Board


class BoardActions(Dashboard):
    """Sorting, grouping, filtering. The selected server is always one that is listed, if any is."""

    def action_sort(self) -> None:
        self._list(replace(self.order, sort=next_sort(self.order.sort)))

    def action_by_host(self) -> None:
        self._list(replace(self.order, by_host=not self.order.by_host))

    def action_only(self) -> None:
        line = self.query_one("#only", Input)
        line.value = self.order.only
        line.add_class("open")
        layout.reveal(line)
        self.arrange()
        line.focus()

    def list_only(self, words: str) -> None:
        """List the servers that match ``words``, as they are typed."""
        self._list(replace(self.order, only=words))

    def close_only(self) -> None:
        """Leave the line; what was typed stays in force."""
        self.query_one("#only", Input).remove_class("open")
        self.query_one(Board).focus()
        self.arrange()
        self.call_after_refresh(self.draw)

    def list_all(self) -> None:
        """List all servers again."""
        self.query_one("#only", Input).value = ""
        self._list(replace(self.order, only=""))
        self.close_only()

    def _list(self, order: Order) -> None:
        self.order = order
        names = [g.name for g in self.listed]
        if names and self.selected not in names:
            self.selected = names[0]
        self.arrange()
        self.draw()
