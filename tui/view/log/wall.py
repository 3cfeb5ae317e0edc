"""The wall as a widget: one reader per server, one drawing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.view.draw import wall
from tui.view.draw.row import Row, Span
from tui.view.glance import Glance
from tui.view.log.reader import LogReader
from tui.view.panels import Choosing


class Wall(Choosing, can_focus=True):
    """The ends of all servers' logs. Readers are made for servers that were seen, and only those are read."""

    glances: Sequence[Glance] = ()
    selected: str | None = None
    path_of: Callable[[str], Path | None]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._readers: dict[str, LogReader] = {}
        self._seen: list[str] = []  # whose logs are on the screen

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown,space", "page(1)", show=False),
    ]

    @property
    def seen(self) -> slice:
        """The places of the servers that are on the screen."""
        names = [g.name for g in self.glances]
        at = names.index(self.selected) if self.selected in names else 0
        return wall.page(len(names), at, self.size.width, self.size.height)

    def action_page(self, pages: int) -> None:
        """Select the first server of the next page, or the one before."""
        seen = self.seen
        to = seen.start if pages < 0 else seen.stop
        to -= (seen.stop - seen.start) if pages < 0 else 0
        if self.glances:
            place = max(0, min(len(self.glances) - 1, to))
            self.post_message(self.Clicked(f"select:{self.glances[place].name}"))

    def tick(self) -> bool:
        """Take in what was written to the logs that are on the screen; whether there was any."""
        return self.visible_in_layout and sum(self._readers[server].look() for server in self._seen) > 0

    def rows(self, columns: int, rows: int) -> list[Row]:
        self._seen.clear()
        if not self.glances:
            return [[Span("no server to show", "muted")]]
        return wall.wall(self.glances, self._lines, columns, rows, self.selected)

    def _lines(self, server: str, columns: int, rows: int) -> list[Row]:
        self._seen.append(server)
        path = self.path_of(server)
        reader = self._readers.get(server)
        if reader is None or reader.file.path != path:
            if reader is not None:
                reader.file.close()
            reader = self._readers[server] = LogReader(path)
        return reader.draw(columns + 1, rows, bar=False)
