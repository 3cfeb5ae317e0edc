"""The log pane: a ``LogReader`` as a widget, with keys, mouse wheel and search."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from rich.markup import escape
from textual import events
from textual.binding import Binding, BindingType

from tui.view.draw import units
from tui.view.draw.row import Row, Span
from tui.view.log.filters import FILTERS, Choice
from tui.view.log.jumps import problems
from tui.view.log.places import after, like, visible
from tui.view.log.query import Query
from tui.view.log.reader import NO_HEADS, TIMES, LogReader
from tui.view.log.search import Hits, find
from tui.view.panels import Panel
from tui.view.sheet import Sheet

MERGED = "\0merged"
"""Stands for all servers where one is named."""
_NOT_FOUND = "not found"
_READ = (_NOT_FOUND, "no ", "filter put aside")  # messages that the next key takes away


class LogPane(Sheet, can_focus=True):
    """One server's log, or that of all. ``show`` chooses whose; places, filter and wrap are remembered per server."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll(-1)", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("shift+up", "pick_next(-1, True)", show=False),
        Binding("shift+down", "pick_next(1, True)", show=False),
        Binding("left", "shift(-8)", show=False),
        Binding("right", "shift(8)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown,space", "page(1)", show=False),
        Binding("home,g", "home", show=False),
        Binding("end,G", "end", show=False),
        Binding("n", "next", show=False),
        Binding("N", "previous", show=False),
        Binding("W", "wrap", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.server: str | None = None
        self.without = ""  # why there is no log to show
        self.which = "log"
        self.lines: int | None = 0  # of the whole log, as far as it is known
        self.message = ""
        self.wrapped, self.times = False, TIMES[0]  # of all logs
        self._picking = ""  # "pick": ↑ and ↓ move the picked line; "extend": they pick more
        self._readers: dict[str, LogReader] = {}
        self._query = Query()
        self._hit: int | None = None
        self._hits: Hits | None = None

    @property
    def merged(self) -> bool:
        """Whether it shows the logs of all servers in one."""
        return self.server == MERGED

    @property
    def reader(self) -> LogReader | None:
        return self._readers.get(self.server) if self.server else None

    def show(
        self, server: str | None, path: Path | None, heads: Mapping[str, str] = NO_HEADS, *, days: bool = False
    ) -> None:
        """Show the log of ``server``; another ``path`` (a new run) begins at its end. ``heads`` stand before the lines
        of a merged log, of which another ``path`` holds the same and more; ``days``: they are of several days."""
        if server is not None:
            reader = self._readers.get(server)
            if reader is None or reader.file.path != path:
                reader = self._readers[server] = like(reader, path, heads)
                reader.wrapped, reader.times = self.wrapped, self.times
                if server == self.server:
                    self._stand_on(None)
            reader.days = days
        if server != self.server:
            self.server, self.message, self._picking = server, "", ""
            self._stand_on(None)
            self._mark()
        self.redraw()

    def tick(self) -> bool:
        """Take in and draw what was written since the last tick; whether there was any."""
        reader = self.reader
        if not (reader and self.visible_in_layout and reader.look()):
            return False
        self.redraw()
        return True

    def rows(self, columns: int, rows: int) -> list[Row]:
        reader = self.reader
        if reader is None:
            return [[Span("no server", "muted")]]
        if reader.file.path is None:
            return [[Span(self.without or "no log yet", "muted")]]
        drawn = reader.draw(columns, rows)
        if drawn and any(span.text.strip() for row in drawn for span in row):
            return drawn
        return [
            [
                Span(
                    "no output yet" if not reader.file.size else f"no line for: {reader.choice}",
                    "muted",
                )
            ]
        ]

    def redraw(self) -> None:
        """What the border tells changes together with the rows."""
        super().redraw()
        if isinstance(self.parent, Panel):
            named = self.server and not self.merged
            title = self.parent.named(self.server, self.which) if named and self.server else escape(self.which)
            lines = "" if self.lines is None or self.server is None else f"{units.count(self.lines)} lines"
            self.parent.tell(title, escape(" · ".join(filter(None, (self.status(), lines)))))

    def status(self) -> str:
        """Whether it follows, what it shows, for the pane's border."""
        reader = self.reader
        if reader is None:
            return ""
        place = "following ▼" if reader.following else f"at {reader.progress:.0%} ▲ End follows"
        told = [place]
        if chosen := str(reader.choice):
            told.append(chosen)
        if reader.choice.probes:
            told.append("with probes")
        if reader.wrapped:
            told.append("wrapped")
        if self._query:
            told.append(str(self._query))
        if reader.times != TIMES[0]:
            told.append(f"times {reader.times}")
        if self._picking:
            told.append("↑↓ pick a line, v more" if self._picking == "pick" else "↑↓ pick more, Y copies")
        if self.message:
            told.append(self.message)
        return " · ".join(told)

    def action_scroll(self, rows: int) -> None:
        if self._picking and abs(rows) == 1:
            self.action_pick_next(rows, self._picking == "extend")
        elif self.reader:
            self.reader.scroll(rows)
            self.redraw()

    def action_page(self, pages: int) -> None:
        self.action_scroll(pages * max(1, self.size.height - 1))

    def action_shift(self, columns: int) -> None:
        if self.reader and not self.reader.wrapped:
            self.reader.shift(columns)
            self.redraw()

    def action_home(self) -> None:
        if self.reader:
            self.reader.home()
            self.redraw()

    def action_end(self) -> None:
        if self.reader:
            self.reader.follow()
            self.redraw()

    def action_wrap(self) -> None:
        self._show_as(not self.wrapped, self.times)

    def action_times(self) -> None:
        """The next way of showing time stamps."""
        self._show_as(self.wrapped, TIMES[(TIMES.index(self.times) + 1) % len(TIMES)])

    def _show_as(self, wrapped: bool, times: str) -> None:
        self.wrapped, self.times = wrapped, times
        for reader in self._readers.values():
            reader.wrapped, reader.times = wrapped, times
            reader.x = reader.sub = 0
        self.redraw()

    def action_pick_next(self, step: int, extend: bool) -> None:
        if self.reader:
            self.reader.pick_next(step, extend=extend)
            self.redraw()

    def action_pick(self) -> None:
        """Begin to pick a line with ↑ and ↓, then to pick more, then stop."""
        if self._picking == "extend":
            self.unpick()
            return
        self._picking = "extend" if self._picking else "pick"
        if self.reader and self.reader.picked is None:
            self.action_pick_next(1, False)
        self.redraw()

    def next_filter(self) -> str:
        """Go to the next preset; its name."""
        reader = self.reader
        if reader is None:
            return ""
        preset = FILTERS[(FILTERS.index(reader.choice.preset) + 1) % len(FILTERS)]
        self._choose(reader, replace(reader.choice, preset=preset))
        return preset.name

    def toggle_probes(self) -> bool:
        """Show or hide the lines of health probes; whether they are shown now."""
        reader = self.reader
        if reader is None:
            return False
        self._choose(reader, replace(reader.choice, probes=not reader.choice.probes))
        return reader.choice.probes

    def query_of(self, purpose: str) -> Query:
        """What is searched for, or what the lines that are shown have or have not (``include``, ``exclude``)."""
        if purpose == "search":
            return self._query
        choice = self.reader.choice if self.reader else Choice()
        return choice.include if purpose == "include" else choice.exclude

    def only(self, purpose: str, query: Query) -> None:
        """Show the lines that ``query`` finds (``include``), or those that it does not (``exclude``)."""
        reader = self.reader
        if reader is None or self.query_of(purpose) == query:
            return
        choice = reader.choice
        self._choose(reader, replace(choice, include=query) if purpose == "include" else replace(choice, exclude=query))

    def _choose(self, reader: LogReader, choice: Choice) -> None:
        reader.choose(choice)
        self._recount()
        self.redraw()

    def search(self, query: Query) -> None:
        """Mark what ``query`` finds and go to it: upwards from the end while following, else downwards."""
        self._query, self.message = query, ""
        self._stand_on(None)
        self._mark()
        self.redraw()
        if query and self.reader:
            self._hunt(back=self.reader.following)

    def action_next(self) -> None:
        self._hunt(back=False)

    def action_previous(self) -> None:
        self._hunt(back=True)

    def on_key(self, event: events.Key) -> None:
        """What was found or not has been read about by the next key."""
        if self.message.startswith(_READ):
            self.message = ""

    def _stand_on(self, hit: int | None) -> None:
        """The current hit; without one, nothing is counted either."""
        self._hit = hit
        if hit is None:
            self._hits = None
        for server, reader in self._readers.items():
            reader.hit = hit if server == self.server else None

    def _recount(self) -> None:
        """Other lines are shown: what was counted is not true any more."""
        self._hits, self.message = None, ""

    def _mark(self) -> None:
        for reader in self._readers.values():
            reader.found = self._query.pattern if self._query else None

    def _hunt(self, back: bool) -> None:
        if self._query and self.reader:
            self.message = "searching…"
            self.run_worker(self._find(self.reader, back), group="search", exclusive=True, exit_on_error=False)

    async def _find(self, reader: LogReader, back: bool) -> None:
        """Go to the next line with the term that the filter lets through; at the file's edge, on from the other one."""
        file, hit = reader.file, self._hit
        if back:
            start = file.size if hit is None else hit
        else:
            start = reader.place() if hit is None else after(reader, hit)
        found = await self._first(reader, start, back)
        self.message = wrapped = ""
        if found is None:
            found = await self._first(reader, file.size if back else 0, back)
            wrapped = "on from the end" if back else "on from the start"
        if found is None:
            self.message = _NOT_FOUND
            return
        self._stand_on(found)
        reader.go_to(found, above=self.size.height // 3)
        self.message = wrapped
        self.redraw()
        await self._count(reader, found, wrapped)

    def to_problem(self, back: bool) -> None:
        """Go to the next warning or error, or to the one before."""
        if reader := self.reader:
            at = reader.picked[1] if reader.picked else reader.file.size if reader.following else reader.place()
            places = problems(reader.file, at, back=back, kind_of=reader.kind_of)
            here = reader.picked and at  # on a problem, that one is not meant
            self.jump((p for p in places if p is None or p != here), f"no problem further {'up' if back else 'down'}")

    def jump(self, places: Iterator[int | None], without: str) -> None:
        """Go to the first of ``places``, which are looked for without holding up the app; ``without``: say there is
        none."""
        if self.reader:
            self.message = "searching…"
            self.run_worker(
                self._jump(self.reader, places, without), group="search", exclusive=True, exit_on_error=False
            )

    def unpick(self) -> bool:
        """Pick no line any more; whether one was."""
        reader = self.reader
        self._picking = ""
        if reader is None or reader.picked is None:
            return False
        reader.picked = None
        self.redraw()
        return True

    async def _jump(self, reader: LogReader, places: Iterator[int | None], without: str) -> None:
        """The line is picked; a filter that hides it is put aside."""
        for offset in places:
            if offset is not None:
                break
            await asyncio.sleep(0)
        else:
            self.message = without
            self.redraw()
            return
        self.message = ""
        if not visible(reader, offset):
            self._choose(reader, Choice(probes=True))
            self.message = "filter put aside"
        reader.picked = (offset, offset)
        reader.go_to(offset, above=self.size.height // 3)
        self.redraw()

    async def _count(self, reader: LogReader, found: int, wrapped: str) -> None:
        """Say which of the hits ``found`` is."""
        if self._hits is None:
            self._hits = Hits(reader.file, self._query, lambda offset: visible(reader, offset))
        hits = self._hits
        await hits.count()
        if hits is self._hits and self._hit == found:
            self.message = " · ".join(part for part in (hits.place(found), wrapped) if part)

    async def _first(self, reader: LogReader, start: int, back: bool) -> int | None:
        """The first hit from ``start`` on that the filter lets through, looked for without holding up the app."""
        for offset in find(reader.file, self._query, start, back=back):
            if offset is None:
                await asyncio.sleep(0)
            elif visible(reader, offset):
                return offset
        return None

    def on_click(self, event: events.Click) -> None:
        """Pick the line, or with Shift all up to it."""
        offset = event.get_content_offset(self)
        line = self.reader.offset_at(offset.y) if self.reader and offset else None
        if self.reader and line is not None:
            event.stop()
            self.reader.pick(line, extend=event.shift)
            self.redraw()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.action_scroll(-3)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.action_scroll(3)
