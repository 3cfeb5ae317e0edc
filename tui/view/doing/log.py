"""Actions on the log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tui.view import layout
from tui.view.doing.dashboard import Dashboard
from tui.view.doing.saying import Saying
from tui.view.log.jumps import at_time, numbered
from tui.view.log.line import LogLine
from tui.view.log.pane import LogPane
from tui.view.log.query import Query
from tui.view.log.save import copied, save, texts

_OWN = "that is a place in one server's own log: m goes back to it"


class LogActions(Saying, Dashboard):
    """Searching, filtering and moving in the selected server's log."""

    def action_search(self) -> None:
        self._type("search", Query())

    def action_include(self) -> None:
        self._type("include", self.query_one(LogPane).query_of("include"))

    def action_exclude(self) -> None:
        self._type("exclude", self.query_one(LogPane).query_of("exclude"))

    def _type(self, purpose: str, query: Query) -> None:
        self._see_log()
        self.query_one(LogLine).open(purpose, query)

    def _see_log(self) -> LogPane:
        """The log's pane, seen."""
        pane = self.query_one(LogPane)
        layout.reveal(pane)
        self.arrange()
        return pane

    def on_log_line_typed(self, typed: LogLine.Typed) -> None:
        """Filters hold while they are typed; a search begins with Enter."""
        if typed.purpose != "search" and self.query_one(LogLine).has_class("open"):
            self.query_one(LogPane).only(typed.purpose, typed.query)
        if typed.done:
            self.close_line()
            if typed.purpose == "search":
                self.query_one(LogPane).search(typed.query)
        self.draw()

    def close_line(self) -> None:
        self.query_one(LogLine).remove_class("open")
        self.query_one(LogPane).focus()

    def clear_line(self) -> None:
        """Leave the line, and what it was for."""
        line, pane = self.query_one(LogLine), self.query_one(LogPane)
        self.close_line()
        if line.purpose == "search":
            pane.search(Query())
        else:
            pane.only(line.purpose, Query())

    def action_filter(self) -> None:
        self.query_one(LogPane).next_filter()
        self.draw()

    def action_next_problem(self) -> None:
        self._see_log().to_problem(back=False)

    def action_last_problem(self) -> None:
        self._see_log().to_problem(back=True)

    def action_cause(self) -> None:
        """The line that explains best why the selected server failed."""
        pane, failure = self.query_one(LogPane), self.chosen.failure if self.chosen else None
        if pane.merged:
            self.notify(_OWN)
        elif failure is None or not failure.line_number or self.selected in self.earlier:
            self.notify("it has not failed" if failure is None else "no line of this log says why it failed")
        elif pane.reader:
            self._see_log().focus()
            pane.jump(numbered(pane.reader.file, failure.line_number), "no such line in this log any more")

    def action_stages(self) -> None:
        """The stages of the selected server's start, to choose one whose lines are shown."""
        from tui.view.screens.stages import Stages

        known = [s for s in self.chosen.stages if s.start_local is not None] if self.chosen else []
        if self.query_one(LogPane).merged:
            self.notify(_OWN)
            return
        if not known or self.selected in self.earlier:
            self.notify("no stage is known of this log")
            return

        def chosen(place: int | None) -> None:
            pane = self.query_one(LogPane)
            start = known[place].start_local if place is not None else None
            if pane.reader and start is not None:
                self._see_log().focus()
                pane.jump(at_time(pane.reader.file, start), "no line of this stage")

        self.push_screen(Stages(known), chosen)

    def action_probes(self) -> None:
        self.query_one(LogPane).toggle_probes()
        self.draw()

    def action_wrap(self) -> None:
        self.query_one(LogPane).action_wrap()
        self.draw()

    def action_times(self) -> None:
        self.query_one(LogPane).action_times()

    def action_pick(self) -> None:
        pane = self._see_log()
        pane.focus()
        pane.action_pick()

    def action_copy_lines(self) -> None:
        reader = self.query_one(LogPane).reader
        if reader is None or reader.picked is None:
            self.notify("v or a click picks lines first")
            return
        try:
            text = copied(reader, reader.picked)
        except ValueError as error:
            self.notify(str(error), severity="warning")
            return
        self.copy_to_clipboard(text)
        lines = text.count("\n") + 1
        self.notify(f"copied, if the terminal allows it: {lines} line{'s' if lines != 1 else ''}")

    def action_save_log(self) -> None:
        """Save the picked lines, or the log, under a name that is asked for."""
        from tui.view.screens.save import SaveAs

        pane, server = self.query_one(LogPane), self.selected
        reader = pane.reader
        if reader is None or server is None or not reader.file.size:
            self.notify("there is no log to save yet")
            return
        picked, chosen = reader.picked, str(reader.choice)
        what = "the picked lines" if picked else f"the log ({chosen})" if chosen else "the log"
        whose = "all listed servers" if pane.merged else server

        def named(path: Path | None) -> None:
            if path is not None:
                self.run_worker(self._save(texts(reader, picked), path), exit_on_error=False)

        name = "".join(char if char.isalnum() or char in "-_." else "-" for char in server)
        self.push_screen(SaveAs(f"Save {what} of {whose}", f"{'merged' if pane.merged else name}.log"), named)

    async def _save(self, lines: Iterator[str | None], path: Path) -> None:
        try:
            count = await save(lines, path)
        except OSError as error:
            self.notify(f"{path}: not saved: {(error.strerror or str(error)).lower()}", severity="error")
        else:
            self.notify(f"{count} line{'s' if count != 1 else ''} saved to {path}")

    def action_log_page_up(self) -> None:
        self.query_one(LogPane).action_page(-1)

    def action_log_page_down(self) -> None:
        self.query_one(LogPane).action_page(1)

    def action_log_home(self) -> None:
        self.query_one(LogPane).action_home()

    def action_log_end(self) -> None:
        self.query_one(LogPane).action_end()
