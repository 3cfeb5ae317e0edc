"""Actions that ask or show more than a line: other flags, all servers at once, earlier runs, a smoke test's answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from textual.notifications import SeverityLevel
from textual.widgets import Input

from tui.fleet.api import Action, Describe, FetchLog, Kill, Launch, Outcome, Relaunch, SmokeTest
from tui.sglang import verdict
from tui.sglang.model import Phase
from tui.view.doing.servers import ServerActions
from tui.view.draw.row import clip
from tui.view.glance import not_to_be_ended
from tui.view.log.earlier import EarlierLog
from tui.view.pending import Then

_SHOWN = 100  # columns of a command line that was copied


class FormActions(ServerActions):
    """What opens a dialog, or asks before it does."""

    def ask(self, action: Action, then: Then) -> None:
        """Send an action; ``then`` takes its outcome."""
        self.pending.add(self.source.act(action), then)

    def tell(self, outcome: Outcome) -> None:
        """Say what became of an action."""
        severity: SeverityLevel = "information" if outcome.ok else "error"
        self.notify(outcome.message, severity=severity, markup=False, timeout=8)

    def action_smoke_test(self) -> None:
        chosen = self.chosen
        if chosen is None or (verdict.saved(chosen.state) and self.refused()):
            return
        if chosen.phase is Phase.READY:
            self.notify(f"testing {chosen.name}", markup=False, timeout=3)
        self.ask(SmokeTest(chosen.name), lambda outcome: self._tell_test(chosen.name, outcome))

    def _tell_test(self, name: str, outcome: Outcome) -> None:
        """A dialog, unless another one is open or something is typed."""
        busy = len(self.screen_stack) > 1 or isinstance(self.focused, Input)
        if not outcome.ok or "text" not in outcome.details or busy:
            self.tell(outcome)
            return
        from tui.view.screens.told import Told, smoke

        self.push_screen(Told(f"{name} answers", smoke(outcome)))

    def action_edit(self) -> None:
        chosen = self.chosen
        if chosen is None or self.refused():
            return
        if why := not_to_be_ended(chosen, "Relaunch"):
            self.notify(why, markup=False, timeout=8)
            return
        opened = self.turns.hold()  # what is typed now is for the form

        def open_form(outcome: Outcome) -> None:
            self._edit(chosen.name, outcome)
            opened()

        self.ask(Describe(chosen.name), open_form)

    def _edit(self, name: str, described: Outcome) -> None:
        flags = described.details.get("flags")
        if not described.ok or not isinstance(flags, Mapping):
            self.tell(described)
            return
        from tui.view.screens.edit import EditFlags

        def answered(overrides: Mapping[str, object] | None) -> None:
            if overrides is not None:
                self.send(Relaunch(name, overrides), f"relaunch {name}")

        self.push_screen(EditFlags(name, flags), answered)

    def action_copy_command(self) -> None:
        if self.chosen:
            self.ask(Describe(self.chosen.name), self._copy)

    def _copy(self, described: Outcome) -> None:
        command = described.details.get("command")
        if not described.ok or not isinstance(command, str) or not command:
            self.tell(described if not described.ok else Outcome(False, "its command is not known"))
            return
        self.copy_to_clipboard(command)
        self.notify(f"copied, if the terminal allows it: {clip(command, _SHOWN)}", markup=False, timeout=6)

    def action_history(self) -> None:
        if self.chosen and not (verdict.saved(self.chosen.state) and self.refused()):
            from tui.view.screens.history import History

            self.push_screen(History(self.chosen.name))

    def show_run(self, server: str, run: str, fetch: FetchLog) -> None:
        """Show the log of one of a server's runs in the log pane, once it is on this side."""
        current = next((g.state.run for g in self.glances if g.name == server), None)
        if current is not None and current.run == run:
            self.close_merged()
            self.earlier.pop(server, None)
            self.select(server)
            return

        def fetched(outcome: Outcome) -> None:
            self.close_merged()
            path = outcome.details.get("path")
            if not isinstance(path, Path):
                self.tell(outcome)
                return
            self.earlier[server] = EarlierLog(run, path)
            self.select(server)

        self.notify(f"fetching the log of {run}", markup=False, timeout=3)
        self.ask(fetch, fetched)

    def action_bulk(self) -> None:
        if self.refused() or not self.listed:
            return
        from tui.view.screens.bulk import Bulk

        listed = self.listed
        self.push_screen(Bulk(listed, len(self.glances)), self._bulk_chosen)

    def _bulk_chosen(self, verb: str | None) -> None:
        if not verb:
            return
        from tui.view.screens.bulk import ending_words, targets
        from tui.view.screens.confirm import TypeName

        listed = self.listed
        names = targets(verb, listed)

        def answered(yes: bool | None) -> None:
            if yes:
                self._all(verb, names)

        ends = [g for g in listed if g.name in names and g.runs]
        if verb == "launch" or not ends:
            answered(True)
            return
        count = str(len(ends))
        whom = names if verb == "relaunch" else ends
        title = f"{verb.capitalize()} {len(whom)} server{'s' if len(whom) != 1 else ''}?"
        self.push_screen(TypeName(title, ending_words(verb, names, listed), count), answered)

    def _all(self, verb: str, names: list[str]) -> None:
        """Send an action to each; what became of all of them is told in one line."""
        self.notify(f"{verb} {len(names)} server{'s' if len(names) != 1 else ''}", markup=False, timeout=3)
        outcomes: list[Outcome] = []

        def one(outcome: Outcome) -> None:
            outcomes.append(outcome)
            if len(outcomes) == len(names):
                self.tell(_together(verb, outcomes))

        for name in names:
            action = {"launch": Launch, "relaunch": Relaunch, "kill": Kill}[verb](name)
            self.ask(action, one)


def _together(verb: str, outcomes: list[Outcome]) -> Outcome:
    """Many outcomes as one: how many went well, and what those say that did not."""
    wrong = [outcome.message for outcome in outcomes if not outcome.ok]
    done = f"{verb}: {len(outcomes) - len(wrong)} of {len(outcomes)} done"
    return Outcome(not wrong, "\n".join([done, *wrong[:5], *(["…"] if len(wrong) > 5 else [])]))
