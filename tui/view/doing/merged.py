"""The merged view: the logs of all listed servers in the log's pane, by time."""

from __future__ import annotations

import asyncio

from tui.view import layout
from tui.view.doing.dashboard import Dashboard
from tui.view.doing.saying import Saying
from tui.view.log.merged import MergedLog
from tui.view.log.source import Followed
from tui.view.panels import Board

_EVERY = 0.1  # seconds between two looks at the logs


class MergedActions(Saying, Dashboard):
    """Opens, feeds and closes it. Nothing is read while it is closed."""

    def action_merged(self) -> None:
        if self.merged is not None and not self.screen.has_class("wall"):
            self.close_merged()
            return
        if self.merged is None:
            try:
                self.merged = MergedLog(lambda: self.source.now())
            except OSError as error:
                self._give_up(error)
                return
            self.run_worker(self._merge(self.merged), group="merged", exclusive=True, exit_on_error=False)
        self.screen.remove_class("wall")
        layout.zoom(self.screen, "log-panel")
        self.arrange()
        self.call_after_refresh(self.draw)

    def close_merged(self) -> None:
        """Show the selected server's own log again, among the other panels."""
        if self.merged is None:
            return
        self.merged.close()
        self.merged = None
        if not self.is_running:
            return
        screen = self.screen_stack[0]
        layout.leave_zoom(screen)
        screen.set_focus(screen.query_one(Board))
        self.arrange()
        self.call_after_refresh(self.draw)

    async def _merge(self, merged: MergedLog) -> None:
        """Feed it in slices, so that no key waits, for as long as it is open."""
        try:
            while self.merged is merged:
                path = merged.path
                for _ in merged.work(self._followed()):
                    await asyncio.sleep(0)
                    if self.merged is not merged:
                        return
                if merged.path != path:
                    self.draw()
                if self.frozen:
                    return
                await asyncio.sleep(_EVERY)
        except Exception as error:  # the dashboard goes on without it
            self.close_merged()
            self._give_up(error)
        finally:
            if not self.frozen:
                merged.close()

    def _followed(self) -> list[Followed]:
        """The servers that the board lists, in the profile's order: the board's own changes with what they do."""
        listed, path = {glance.name for glance in self.listed}, self.source.log_path
        return [
            Followed(state.info.name, path(state.info.name), state.run.utc_offset if state.run else None)
            for state in self.source.states()
            if state.info.name in listed
        ]

    def _give_up(self, error: Exception) -> None:
        why = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
        self.notify(f"the logs cannot be merged: {why.lower()}", severity="error")
