"""Actions on servers and hosts."""

from __future__ import annotations

from collections.abc import Callable

from textual.notifications import SeverityLevel

from tui.fleet.api import Action, Discover, Forward, Kill, Launch, Reconnect, Relaunch
from tui.report.restarts import upcoming
from tui.sglang import verdict
from tui.view.doing.questions import QuestionActions
from tui.view.glance import not_to_be_ended


class ServerActions(QuestionActions):
    """Launching, ending, testing, finding servers; what became of it."""

    def action_launch(self) -> None:
        if self.chosen and not self.refused():
            self.send(Launch(self.chosen.name), "" if self.chosen.runs else f"launching {self.chosen.name}")

    def action_relaunch(self) -> None:
        self._ask_to_end("Relaunch", "ended and launched again", lambda name: Relaunch(name))

    def action_kill(self) -> None:
        chosen = self.chosen
        if chosen and upcoming(chosen.state, chosen.now):  # there is nothing yet that could be lost
            if not self.refused():
                self.send(Kill(chosen.name), "")
            return
        self._ask_to_end("Kill", "ended", self._kill)

    def _kill(self, name: str) -> Kill:
        """The action that was confirmed: of a found server, by its typed name."""
        found = any(g.name == name and g.state.info.stranger for g in self.glances)
        return Kill(name, typed=name if found else "")

    def _ask_to_end(self, verb: str, becomes: str, make: Callable[[str], Action]) -> None:
        from tui.view.screens.confirm import Confirm, TypeName, question

        chosen = self.chosen
        if chosen is None or self.refused():
            return
        if why := not_to_be_ended(chosen, verb):
            self.notify(why, markup=False, timeout=8)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.send(make(chosen.name), f"{verb.lower()} {chosen.name}")

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

    def action_reconnect(self) -> None:
        name = self.chosen and self.chosen.state.info.host
        if name:
            host = next((h for h in self.source.hosts() if h.name == name), None)
            if host and host.question:
                self.questions.ask_again(host.question)
            else:
                self.send(Reconnect(name), "")

    def action_discover(self) -> None:
        host = self.chosen.state.info.host if self.chosen else next((h.name for h in self.source.hosts()), None)
        if host:
            self.discover(host)

    def discover(self, host: str) -> None:
        """Look for servers that somebody else started on ``host``."""
        self.send(Discover(host), f"looking for servers on {host}")

    def action_forward(self) -> None:
        if self.chosen and not (verdict.saved(self.chosen.state) and self.refused()):
            self.send(Forward(self.chosen.name), "")

    def refused(self) -> bool:
        """Whether nothing may be changed here; then it says so."""
        if self.source.read_only:
            saved = self.chosen is not None and verdict.saved(self.chosen.state)
            self.notify("a saved log: nothing runs behind it" if saved else "read-only: nothing is launched or ended")
        return self.source.read_only

    def send(self, action: Action, saying: str) -> None:
        if saying:
            self.notify(saying, markup=False, timeout=3)
        self.pending.add(self.source.act(action))

    def tell_outcomes(self) -> None:
        """Say what became of actions that are over, and ask what hosts wait for."""
        self.ask_questions()
        for outcome in self.pending.over():
            severity: SeverityLevel = "information" if outcome.ok else "error"
            self.notify(outcome.message, severity=severity, markup=False, timeout=8)
