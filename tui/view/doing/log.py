"""Actions on the log."""

from __future__ import annotations

from textual.widgets import Input

from tui.view.doing.dashboard import Dashboard
from tui.view.log.pane import LogPane


class LogActions(Dashboard):
    """Searching, filtering and moving in the selected server's log."""

    def action_search(self) -> None:
        line = self.query_one("#search", Input)
        line.add_class("open")
        line.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.close_search()
        self.query_one(LogPane).search(event.value)

    def close_search(self) -> None:
        self.query_one("#search", Input).remove_class("open")
        self.query_one(LogPane).focus()

    def action_filter(self) -> None:
        self.query_one(LogPane).next_filter()
        self.draw()

    def action_probes(self) -> None:
        self.query_one(LogPane).toggle_probes()
        self.draw()

    def action_wrap(self) -> None:
        self.query_one(LogPane).action_wrap()
        self.draw()

    def action_log_page_up(self) -> None:
        self.query_one(LogPane).action_page(-1)

    def action_log_page_down(self) -> None:
        self.query_one(LogPane).action_page(1)

    def action_log_home(self) -> None:
        self.query_one(LogPane).action_home()

    def action_log_end(self) -> None:
        self.query_one(LogPane).action_end()
