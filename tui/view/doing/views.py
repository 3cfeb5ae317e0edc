"""Actions that choose what is seen."""

from __future__ import annotations

from textual.widgets import Input

from tui.view import layout
from tui.view.doing.board import BoardActions
from tui.view.doing.log import LogActions
from tui.view.doing.merged import MergedActions
from tui.view.log.line import LogLine
from tui.view.log.pane import LogPane
from tui.view.log.wall import Wall
from tui.view.panels import Board


class ViewActions(LogActions, MergedActions, BoardActions):
    """Selecting servers, views, leaving."""

    def action_up(self) -> None:
        self._move(-1)

    def action_down(self) -> None:
        self._move(1)

    def _move(self, step: int) -> None:
        names = [g.name for g in self.listed]
        if names:
            at = names.index(self.selected) if self.selected in names else 0
            self.select(names[max(0, min(len(names) - 1, at + step))])

    def action_jump(self, place: int) -> None:
        if place <= len(listed := self.listed):
            self.select(listed[place - 1].name)

    def action_zoom(self) -> None:
        layout.toggle_zoom(self.screen)
        self.arrange()
        self.call_after_refresh(self.draw)

    def action_wall(self) -> None:
        self.screen.toggle_class("wall")
        self.query_one(Wall if self.screen.has_class("wall") else Board).focus()
        self.call_after_refresh(self.draw)

    def action_charts(self) -> None:
        from tui.view.screens.charts import Charts

        self.push_screen(Charts())

    def action_hosts(self) -> None:
        from tui.view.screens.hosts import Hosts

        self.push_screen(Hosts())

    def action_help(self) -> None:
        from tui.view.screens.help import Help

        self.push_screen(Help())

    async def action_back(self) -> None:
        if self.query_one(LogLine).has_class("open"):
            self.clear_line()
            return
        if self.query_one(LogPane).unpick():
            return
        if self.merged is not None:
            self.close_merged()
            return
        if self.order.only or self.query_one("#only", Input).has_class("open"):
            self.list_all()
            return
        if self.selected in self.earlier:
            del self.earlier[self.selected]
            self.draw()
            return
        self.screen.remove_class("wall")
        layout.leave_zoom(self.screen)
        self.arrange()
        self.query_one(Board).focus()
        self.call_after_refresh(self.draw)

    def action_help_quit(self) -> None:
        """Ctrl+C, which Textual gives to copying."""
        self.notify("q quits; servers run on" if self.lasting and not self.source.read_only else "q quits")

    async def action_quit(self) -> None:
        running = [g.name for g in self.glances if g.runs]
        if running and self.lasting and not self.source.read_only:
            self.exit(message=f"{', '.join(running)}: running on. hcs-tui down ends them.")
        else:
            self.exit()
