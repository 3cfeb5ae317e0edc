"""The alerts' line as a sheet."""

from __future__ import annotations

from collections.abc import Sequence

from tui.view.alerts import Alert
from tui.view.draw.news import news
from tui.view.draw.row import Row
from tui.view.sheet import Sheet


class News(Sheet):
    """The newest alert; no row at all without one."""

    alerts: Sequence[Alert] = ()
    now = 0.0
    key = "A"

    def rows(self, columns: int, rows: int) -> list[Row]:
        return news(self.alerts, self.now, columns, self.key)

    def show(self, alerts: Sequence[Alert], now: float, key: str) -> None:
        """Stand there, or go."""
        self.alerts, self.now, self.key = alerts, now, key
        self.set_class(bool(self.rows(80, 1)), "some")
        self.redraw()
