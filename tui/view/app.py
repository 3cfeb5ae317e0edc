"""``HcsApp``: the dashboard over a ``Source``. It draws states and sends actions; everything else happens elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.command import Provider
from textual.containers import Container
from textual.css.query import NoMatches
from textual.notifications import SeverityLevel
from textual.widgets import Input

from tui.fleet.api import Action, Discover, Forward, Kill, Launch, Reconnect, Relaunch, SmokeTest, Source
from tui.report.restarts import upcoming
from tui.sglang import verdict
from tui.sglang.model import Phase
from tui.view import actions, layout, paint
from tui.view.glance import Glance, glance, not_to_be_ended
from tui.view.log.pane import LogPane
from tui.view.log.wall import Wall
from tui.view.panels import Board, Caches, Footer, Header, Panel, Timeline, Troubles
from tui.view.pending import Pending
from tui.view.sheet import Sheet
from tui.view.terminal import Watchdog, on_signals
from tui.view.theme import THEMES, theme_name

_LOG_FPS = 30
_EVERY = 3
"""Every third frame of the focused log, the rest is looked at too: ten times a second."""


def _commands() -> type[Provider]:
    """The palette's commands, loaded when it is opened."""
    from tui.view.screens.palette import Commands

    return Commands


class HcsApp(App[None]):
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
        theme: str = "dark",
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
        self._frame = 0
        self._seen: tuple[int, int] | None = None
        self._error = ""
        self._pending = Pending()
        self._watchdog = Watchdog()
        for own in THEMES:
            self.register_theme(own)
        self.theme = theme_name(theme)

    # composing

    def compose(self) -> ComposeResult:
        yield Header(id="header")
        yield Troubles(id="troubles")
        with Container(id="main"):
            yield Panel(Board(id="board"), title="SERVERS", id="board-panel")
            with Container(id="detail"):
                yield Panel(Timeline(id="timeline"), title="start-up", id="timeline-panel")
                yield Panel(Caches(id="caches"), title="caches", id="caches-panel")
            yield Panel(LogPane(id="log"), _search_line(), title="log", id="log-panel")
        yield Panel(Wall(id="wall"), title="WALL", id="wall-panel")
        yield Footer(id="footer")

    def on_mount(self) -> None:
        self.query_one(Footer).keys = actions.footer_keys(read_only=self.source.read_only)
        self.query_one(Board).focus()
        self.look()
        if not self.frozen:
            on_signals(self.exit)
            self.set_interval(1 / _LOG_FPS, self._tick, name="tick")
        if self._on_ready:
            self.call_after_refresh(self._on_ready)

    def open(self, source: Source) -> None:
        """Look at another source from now on, as read-only as the first."""
        self.source = source
        self._seen = None
        self.look()

    def on_resize(self, event: events.Resize) -> None:
        self._arrange()

    # looking at the source

    def _tick(self) -> None:
        """One frame. Whatever goes wrong is shown, and the next frame tries again."""
        self._frame += 1
        try:
            pane = self.query_one(LogPane)
            if pane.has_focus or self._frame % _EVERY == 0:
                pane.tick()
            if self._frame % _EVERY == 0:
                self.look()
                self._tell_outcomes()
                if self._watchdog.gone():
                    self.exit()
        except NoMatches:
            return
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.log.error(repr(error))
        cause = f" ({error.__cause__!r})" if error.__cause__ else ""
        self._error = f"{type(error).__name__}: {error}{cause}"
        paint.troubles(self.screen_stack[0], self._scene)

    def look(self) -> None:
        """Read the source and draw what is different: at every change, and each second for what has an age."""
        now = self.source.now()
        seen = (self.source.version, int(now))
        if seen != self._seen:
            self._seen = seen
            self.glances = tuple(glance(state, now) for state in self.source.states())
            self._error = ""
            if self.chosen is None and self.glances:
                self.selected = self.glances[0].name
            self._arrange()
        self.draw()

    @property
    def chosen(self) -> Glance | None:
        """The selected server."""
        return self._scene.chosen

    def worth_showing(self) -> str | None:
        """The server whose details say most: one that starts, else one that failed, else the first."""
        for phase in (Phase.STARTING, Phase.FAILED):
            for one in self.glances:
                if one.phase is phase:
                    return one.name
        return self.glances[0].name if self.glances else None

    def draw(self) -> None:
        """Hand the glances to the sheets; each draws again only if its rows are different."""
        if self.is_mounted_fully:
            paint.paint(self.screen_stack[0], self._scene)

    @property
    def _scene(self) -> paint.Scene:
        return paint.Scene(self.source, self.glances, self.selected, self._error)

    @property
    def is_mounted_fully(self) -> bool:
        return self.is_running and bool(self.screen_stack)

    def _arrange(self) -> None:
        """Heights and hidden panels for the present size and servers."""
        if self.is_mounted_fully:
            layout.arrange(self.screen_stack[0], self.size.width, self.size.height, self.glances, self.chosen)

    # what the user does

    def on_sheet_clicked(self, message: Sheet.Clicked) -> None:
        kind, _, name = message.action.partition(":")
        if kind == "select":
            self.select(name)
        else:
            self.run_worker(self.run_action(message.action), exit_on_error=False)

    def select(self, name: str) -> None:
        """Show the server called ``name`` in the detail panels."""
        self.selected = name
        self._arrange()
        self.draw()

    def action_up(self) -> None:
        self._move(-1)

    def action_down(self) -> None:
        self._move(1)

    def _move(self, step: int) -> None:
        names = [g.name for g in self.glances]
        if names:
            at = names.index(self.selected) if self.selected in names else 0
            self.select(names[max(0, min(len(names) - 1, at + step))])

    def action_jump(self, place: int) -> None:
        if place <= len(self.glances):
            self.select(self.glances[place - 1].name)

    def action_launch(self) -> None:
        if self.chosen and not self._refused():
            self._send(Launch(self.chosen.name), "" if self.chosen.runs else f"launching {self.chosen.name}")

    def action_relaunch(self) -> None:
        self._ask_to_end("Relaunch", "ended and launched again", lambda name: Relaunch(name))

    def action_kill(self) -> None:
        chosen = self.chosen
        if chosen and upcoming(chosen.state, chosen.now):  # there is nothing yet that could be lost
            if not self._refused():
                self._send(Kill(chosen.name), "")
            return
        self._ask_to_end("Kill", "ended", self._kill)

    def _kill(self, name: str) -> Kill:
        """The action that was confirmed: of a found server, by its typed name."""
        found = any(g.name == name and g.state.info.stranger for g in self.glances)
        return Kill(name, typed=name if found else "")

    def _ask_to_end(self, verb: str, becomes: str, make: Callable[[str], Action]) -> None:
        from tui.view.screens.confirm import Confirm, TypeName, question

        chosen = self.chosen
        if chosen is None or self._refused():
            return
        if why := not_to_be_ended(chosen, verb):
            self.notify(why, markup=False, timeout=8)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._send(make(chosen.name), f"{verb.lower()} {chosen.name}")

        if not chosen.runs and verb == "Relaunch":
            answered(True)
            return
        if chosen.state.run is None:
            self.notify(f"{chosen.name} does not run", markup=False)
            return
        if chosen.state.info.stranger:
            self.push_screen(TypeName(f"{verb} {chosen.name}?", question(chosen, becomes), chosen.name), answered)
            return
        self.push_screen(Confirm(f"{verb} {chosen.name}?", question(chosen, becomes), verb, "Leave it"), answered)

    def action_smoke_test(self) -> None:
        chosen = self.chosen
        if chosen and not (verdict.saved(chosen.state) and self._refused()):
            self._send(SmokeTest(chosen.name), f"testing {chosen.name}" if chosen.phase is Phase.READY else "")

    def action_reconnect(self) -> None:
        if self.chosen and self.chosen.state.info.host:
            self._send(Reconnect(self.chosen.state.info.host), "")

    def action_discover(self) -> None:
        host = self.chosen.state.info.host if self.chosen else next((h.name for h in self.source.hosts()), None)
        if host:
            self.discover(host)

    def discover(self, host: str) -> None:
        """Look for servers that somebody else started on ``host``."""
        self._send(Discover(host), f"looking for servers on {host}")

    def action_forward(self) -> None:
        if self.chosen and not (verdict.saved(self.chosen.state) and self._refused()):
            self._send(Forward(self.chosen.name), "")

    def _refused(self) -> bool:
        """Whether nothing may be changed here; then it says so."""
        if self.source.read_only:
            saved = self.chosen is not None and verdict.saved(self.chosen.state)
            self.notify("a saved log: nothing runs behind it" if saved else "read-only: nothing is launched or ended")
        return self.source.read_only

    def _send(self, action: Action, saying: str) -> None:
        if saying:
            self.notify(saying, markup=False, timeout=3)
        self._pending.add(self.source.act(action))

    def _tell_outcomes(self) -> None:
        """Say what became of actions that are over."""
        for outcome in self._pending.over():
            severity: SeverityLevel = "information" if outcome.ok else "error"
            self.notify(outcome.message, severity=severity, markup=False, timeout=8)

    def action_search(self) -> None:
        line = self.query_one("#search", Input)
        line.add_class("open")
        line.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._close_search()
        self.query_one(LogPane).search(event.value)

    def _close_search(self) -> None:
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

    def action_zoom(self) -> None:
        layout.toggle_zoom(self.screen)
        self._arrange()
        self.call_after_refresh(self.draw)

    def action_wall(self) -> None:
        self.screen.toggle_class("wall")
        self.query_one(Wall if self.screen.has_class("wall") else Board).focus()
        self.call_after_refresh(self.draw)

    def action_charts(self) -> None:
        from tui.view.screens.charts import Charts

        self.push_screen(Charts())

    def action_help(self) -> None:
        from tui.view.screens.help import Help

        self.push_screen(Help())

    async def action_back(self) -> None:
        if self.query_one("#search", Input).has_class("open"):
            self._close_search()
            self.query_one(LogPane).search("")
            return
        self.screen.remove_class("wall")
        layout.leave_zoom(self.screen)
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


def _search_line() -> Input:
    return Input(placeholder="search: Enter finds, n next, N previous, Esc clears", id="search")
