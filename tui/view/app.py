"""``HcsApp``: the dashboard over a ``Source``. It draws states and sends actions; everything else happens elsewhere."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from textual import events
from textual.actions import ActionParseResult
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.command import Provider
from textual.containers import Container
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter

from tui.fleet.api import Source
from tui.sglang import verdict
from tui.sglang.model import Phase
from tui.view import actions, keys, layout, paint
from tui.view.alerts import Alerts
from tui.view.ascii import AsciiFilter
from tui.view.doing.alerts import AlertActions
from tui.view.doing.forms import FormActions
from tui.view.doing.views import ViewActions
from tui.view.draw.order import Listing
from tui.view.glance import Glance
from tui.view.glances import Glances
from tui.view.log.earlier import EarlierLog
from tui.view.log.line import LogLine
from tui.view.log.merged import MergedLog
from tui.view.log.pane import LogPane
from tui.view.log.wall import Wall
from tui.view.news import News
from tui.view.only import Only
from tui.view.pace import FAST, SLOW, STATES, Pace
from tui.view.panels import Board, Caches, Footer, Header, Panel, Timeline, Troubles
from tui.view.pending import Pending
from tui.view.settings import Settings
from tui.view.sheet import Sheet
from tui.view.terminal import Endings, TerminalDriver, Watchdog, has_shell
from tui.view.theme import THEMES, theme_name, theme_variables
from tui.view.turns import Turns


def _commands() -> type[Provider]:
    """The palette's commands, loaded when it is opened."""
    from tui.view.screens.palette import Commands

    return Commands


class HcsApp(FormActions, AlertActions, ViewActions):
    """``on_ready`` is called once after the first paint: what is heavy starts there.

    ``frozen`` draws once and starts no timers, for snapshots.
    """

    CSS_PATH = "app.tcss"
    TITLE = "hcs-tui"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_commands}
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings()]

    def __init__(
        self,
        source: Source,
        *,
        on_ready: Callable[[], None] | None = None,
        theme: str = "",
        settings: Settings | None = None,
        frozen: bool = False,
        lasting: bool = True,
    ) -> None:
        super().__init__()
        self.lasting = lasting  # whether the servers outlive the dashboard; the demo's do not
        self.source = source
        self.glances: tuple[Glance, ...] = ()
        self.selected: str | None = None
        self._on_ready = on_ready
        self.frozen = frozen
        self._begun = False
        self._pace = Pace()
        self.turns = Turns(self)
        self._glances = Glances()
        self._seen: tuple[int, int] | None = None
        self._shape: tuple[int, Glance | None] = (-1, None)  # what the panels were arranged for
        self._error = ""
        self.pending = Pending()
        self.alerts = Alerts()
        self.earlier: dict[str, EarlierLog] = {}
        self.merged: MergedLog | None = None
        self.listing = Listing()
        self._watchdog = Watchdog()
        self._endings = Endings(self.leave)
        for own in THEMES:
            self.register_theme(own)
        self.settings = settings or Settings()
        self._ascii = AsciiFilter()
        self.ended_by = 0  # 128 + the number of the signal that ended it
        self.theme = theme_name(theme or self.settings.theme)
        self.acts = keys.remapped(self.settings.keys)
        self.set_keymap(dict(self.settings.keys))

    def get_driver_class(self) -> type[Driver]:
        """Our own on a terminal; a browser has another."""
        found = super().get_driver_class()
        return TerminalDriver if found is LinuxDriver else found

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theme_variables(self.current_theme)

    def run(self, *args: Any, **options: Any) -> None:
        """Show it until it is left; signals do what they did before once the terminal is clean."""
        self._endings.watch()
        try:
            super().run(*args, **options)
        finally:
            self._endings.stop()
            self.close_merged()

    def leave(self, code: int) -> None:
        """End for a signal's sake: ``code`` is 128 + its number. What is still being put together is finished first."""
        self.ended_by = self.ended_by or code
        if self._begun:
            self.exit()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What all that is drawn goes through."""
        return [*super().get_line_filters(), *([self._ascii] if self.settings.ascii else [])]

    # composing

    def compose(self) -> ComposeResult:
        yield Header(id="header")
        yield Troubles(id="troubles")
        yield News(id="news")
        with Container(id="main"):
            yield Panel(Board(id="board"), Only(id="only"), title="SERVERS", id="board-panel")
            with Container(id="detail"):
                yield Panel(Timeline(id="timeline"), title="start-up", id="timeline-panel")
                yield Panel(Caches(id="caches"), title="caches", id="caches-panel")
            yield Panel(LogPane(id="log"), LogLine(), title="log", id="log-panel")
        yield Panel(Wall(id="wall"), title="WALL", id="wall-panel")
        yield Footer(id="footer")

    def on_mount(self) -> None:
        self.query_one(Board).focus()
        self.look()
        if not self.frozen:
            self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh(layout=True))  # the screen is empty
            self.set_interval(1 / SLOW, self._tick, name="tick")
            self._fast = self.set_interval(1 / FAST, self._tick, name="fast", pause=True)
        self._begun = True
        if self.ended_by:
            self.exit()
        elif self._on_ready:
            self.call_after_refresh(self._call_ready, self._on_ready, self.turns.hold())

    def _call_ready(self, on_ready: Callable[[], None], opened: Callable[[], None]) -> None:
        """What opens now is what was typed for meanwhile."""
        on_ready()
        opened()

    def open(self, source: Source) -> None:
        """Look at another source from now on, as read-only as the first."""
        self.source = source
        self.alerts = Alerts()  # what it shows first is no news
        self._seen = None
        self.look()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, (events.Key, events.MouseDown, events.MouseScrollDown, events.MouseScrollUp)):
            self._pace.key()
        if event.is_forwarded or not isinstance(event, (events.InputEvent, events.Paste)) or self.turns.takes(event):
            await super().on_event(event)

    def on_resize(self, event: events.Resize) -> None:
        self.arrange()

    # looking at the source

    def _tick(self) -> None:
        """One frame. Whatever goes wrong is shown, and the next frame tries again."""
        try:
            pane = self.query_one(LogPane)
            (self._fast.resume if pane.has_focus else self._fast.pause)()
            fast, slow, states = pane.has_focus and self._pace.due(FAST), self._pace.due(SLOW), self._pace.due(STATES)
            if not (fast or slow or states):
                return
            self._pace.begin()
            drawn, wall = pane.tick(), self.query_one(Wall)
            grown = slow and wall.tick()
            looked = states and self.look()
            if grown and not looked:
                wall.redraw()
            if states:
                self.tell_outcomes()
                self.watch_alerts()
                if self._watchdog.gone():
                    self.leave(128 + signal.SIGHUP)
            if drawn or grown or looked:
                self.call_after_refresh(self._pace.painted)
        except NoMatches:
            return
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.log.error(repr(error))
        cause = f" ({error.__cause__!r})" if error.__cause__ else ""
        self._error = f"{type(error).__name__}: {error}{cause}"
        paint.troubles(self.screen_stack[0], self._scene)

    def look(self) -> bool:
        """Read the source and draw what is different: at every change, and each second for what has an age. Whether
        there was any."""
        now = self.source.now()
        seen = (self.source.version, int(now))
        if seen == self._seen:
            return False
        self.glances = self._glances.look(self.source.states(), now, self.selected)
        self._error = ""
        if self.chosen is None and self.glances:
            self.selected = self.glances[0].name
        shape = (self.board_rows, self.chosen)
        if shape[0] != self._shape[0] or shape[1] is not self._shape[1]:
            self._shape = shape
            self.arrange()
        self._seen = None if self._glances.late else seen
        self.draw()
        return True

    @property
    def chosen(self) -> Glance | None:
        """The selected server."""
        return next((g for g in self.glances if g.name == self.selected), None)

    @property
    def only_saved(self) -> bool:
        """Whether all that is shown are saved logs."""
        return bool(self.glances) and all(verdict.saved(one.state) for one in self.glances)

    def worth_showing(self) -> str | None:
        """The server whose details say most: one that starts, else one that failed, else the first. A saved log's start
        goes on no more: there a failure says more."""
        for phase in (Phase.FAILED, Phase.STARTING) if self.only_saved else (Phase.STARTING, Phase.FAILED):
            for one in self.glances:
                if one.phase is phase:
                    return one.name
        return self.glances[0].name if self.glances else None

    def draw(self) -> None:
        """Hand the glances to the sheets; each draws again only if its rows are different."""
        if self.is_mounted_fully:
            footer = self.screen_stack[0].query_one(Footer)
            footer.keys = actions.footer_keys(self.acts, read_only=self.source.read_only, saved=self.only_saved)
            footer.redraw()
            paint.paint(self.screen_stack[0], self._scene)

    @property
    def _scene(self) -> paint.Scene:
        return paint.Scene(
            self.source, self.glances, self.selected, self._error, self.listed, self.order, self.earlier, self.merged
        )

    @property
    def is_mounted_fully(self) -> bool:
        return self.is_running and bool(self.screen_stack)

    def arrange(self) -> None:
        """Heights and hidden panels for the present size and servers."""
        self._seen = None  # what the new sizes leave room for is drawn with the next look
        if self.is_mounted_fully:
            layout.arrange(self.screen_stack[0], self.size.width, self.size.height, self.board_rows, self.chosen)

    # what the user does

    def on_sheet_clicked(self, message: Sheet.Clicked) -> None:
        kind, _, name = message.action.partition(":")
        if kind == "select":
            self.select(name)
        elif not (message.again and message.action in actions.CHANGES):  # a double click does it once
            self.run_worker(self.run_action(message.action), exit_on_error=False)

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Do what a key or a click asks for. Whatever goes wrong, also in Textual's own widgets, is shown."""
        try:
            return await super().run_action(action, default_namespace, namespaces)
        except Exception as error:
            self._fail(error)
            return True

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What belongs to the board, and what launches or ends something, is done on the board alone."""
        act = actions.BY_ID.get(action)
        return act is None or len(self.screen_stack) < 2 or not actions.of_board(act)

    def action_suspend(self) -> None:
        """Leave the terminal to the shell until ``fg``."""
        if has_shell():
            self.action_suspend_process()
        else:
            self.notify("no shell started this, and nothing could bring it back", severity="warning")

    def select(self, name: str) -> None:
        """Show the server called ``name`` in the detail panels."""
        self.selected = name
        self.arrange()
        self.draw()
