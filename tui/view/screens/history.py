"""The runs of one server that its host keeps: what became of each, and how they differ."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui.fleet.api import FetchLog, Outcome, PastRuns
from tui.fleet.runs import PastRun
from tui.report.clean import clean
from tui.report.runs import comparison as compared
from tui.sglang import failures, verdict
from tui.sglang.model import Phase, Stage
from tui.view.draw import units
from tui.view.draw.listing import Column, listing
from tui.view.draw.row import wrap
from tui.view.glance import GLYPHS
from tui.view.screens.told import Compared

if TYPE_CHECKING:
    from tui.view.app import HcsApp

_COLUMNS = (
    Column("", 9),
    Column("STARTED", 8),
    Column("RAN", 7, right=True),
    Column("STATE", 9),
    Column("READY IN", 6, right=True),
    Column("LOG", 2, right=True),
    Column("WHO", 1),
    Column("WHY", 5, wide=True),
)
_MOST = 4  # runs side by side
_AT_ONCE = 4  # logs that are asked for together
_UNREAD = "reading …"


class History(ModalScreen[None]):
    """Enter shows a run's log in the log pane; space marks runs, and ``c`` compares those that are marked."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,H", "dismiss", "close"),
        Binding("space", "mark", "mark"),
        Binding("c", "compare", "compare"),
    ]

    def __init__(self, server: str) -> None:
        super().__init__()
        self._server = server
        self._marked: set[str] = set()
        self.runs: Sequence[PastRun] = ()

    def compose(self) -> ComposeResult:
        with Container(classes="dialog list runs") as dialog:
            dialog.border_title = f"Runs of {self._server}"
            dialog.border_subtitle = "Enter log · space marks · c compares · Esc closes"
            yield Static("asking its host …", markup=False, id="head")
            yield OptionList(markup=False)
            yield Static("", markup=False, id="detail-line", classes="text")

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        app = cast("HcsApp", self.app)
        app.ask(PastRuns(self._server), self.fill)

    def _read_on(self) -> None:
        """Ask for what the next logs say, of the runs under the cursor first."""
        at = self.query_one(OptionList).highlighted or 0
        unread = [run.record.run for run in (*self.runs[at:], *self.runs[:at]) if not run.read]
        if unread:
            asked = PastRuns(self._server, tuple(unread[:_AT_ONCE]))
            cast("HcsApp", self.app).ask(asked, self.take)

    def take(self, outcome: Outcome) -> None:
        """Show what some of the logs say; a host that is lost meanwhile leaves the others unread."""
        told = outcome.details.get("runs", ())
        if not self.is_attached or not isinstance(told, tuple):
            return
        if not outcome.ok:
            self.query_one("#detail-line", Static).update(clean(outcome.message))
            return
        read = {run.record.run: run for run in told if run.read}
        self.runs = [read.get(run.record.run, run) for run in self.runs]
        self._redraw()
        if read:
            self._read_on()

    def fill(self, outcome: Outcome) -> None:
        """Show what the host told."""
        if not self.is_attached:
            return
        runs = outcome.details.get("runs", ())
        self.runs = runs if isinstance(runs, tuple) else ()
        if not outcome.ok or not self.runs:
            self.query_one("#head", Static).update(clean(outcome.message) if not outcome.ok else "it has not run yet")
            return
        self._redraw()
        self._read_on()

    def on_resize(self, event: events.Resize) -> None:
        if self.runs:
            self.call_after_refresh(self._redraw)

    def _redraw(self) -> None:
        options = self.query_one(OptionList)
        now = cast("HcsApp", self.app).source.now()
        rows = [run_row(run, now, run.record.run in self._marked) for run in self.runs]
        head, *lines = listing(_COLUMNS, rows, max(20, options.size.width - 3))
        self.query_one("#head", Static).update(head)
        at = options.highlighted or 0
        options.clear_options()
        options.add_options([Option(clean(line)) for line in lines])
        options.highlighted = min(at, len(lines) - 1)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        run = self.runs[event.option_index]
        words = [f"{run.record.run}: {' '.join(_why(run)) or run.record.log}"]
        lines = wrap(clean(" ".join(words)), max(20, self.query_one("#detail-line").size.width))
        self.query_one("#detail-line", Static).update("\n".join(lines[:3]))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        run = self.runs[event.option_index]
        app = cast("HcsApp", self.app)
        self.dismiss()
        app.show_run(self._server, run.record.run, FetchLog(self._server, run.record.run))

    def action_mark(self) -> None:
        """Mark the run, or take its mark away."""
        at = self.query_one(OptionList).highlighted
        if at is None or not self.runs:
            return
        self._marked ^= {self.runs[at].record.run}
        self._redraw()

    def action_compare(self) -> None:
        """Compare the marked runs; of one alone, with the run under the cursor, or the one before it."""
        at = self.query_one(OptionList).highlighted
        if at is None or len(self.runs) < 2:
            self.notify("there are no two runs to compare")
            return
        chosen = [run for run in self.runs if run.record.run in self._marked]
        if len(chosen) < 2:
            chosen = list({run.record.run: run for run in (*chosen, self.runs[at])}.values())
        if len(chosen) < 2:
            chosen = [self.runs[at], self.runs[at + 1 if at + 1 < len(self.runs) else at - 1]]
        if not all(run.read for run in chosen[:_MOST]):
            self.notify("their logs are still to be read")
            return
        self.app.push_screen(Compared(f"Runs of {self._server}", compared(chosen[:_MOST])))


def run_row(run: PastRun, now: float, marked: bool = False) -> list[str]:
    """A run as the cells of its row."""
    record, phase = run.record, verdict.phase(run.state)
    end = record.exit.at if record.exit else now if record.alive else None
    local = record.started + (run.state.run.utc_offset or 0 if run.state.run else 0)
    took = sum(s.seconds or 0.0 for s in verdict.stages(run.state) if s.stage is not Stage.READY)
    ready = run.state.ready_at is not None or run.state.log.ready
    exit = run.state.exit
    how = "" if exit is None else exit.by or ("" if exit.status is None else f"exit {exit.status}")
    told = f"{GLYPHS[phase]} {phase.value} {how if phase is not Phase.READY else ''}"
    if not run.read:  # its log may tell another outcome, or none
        told = f"… {'lives' if record.alive else how or 'ended'}"
    return [
        "✔" if marked else " ",
        time.strftime("%d %b %H:%M", time.gmtime(local)),
        "?" if end is None else units.span(end - record.started),
        told.rstrip(),
        units.span(took) if ready and took else "-" if run.read else "",
        "" if record.log_size is None else f"{units.short(record.log_size)}B",
        record.who.partition(" ")[0],
        " ".join(_why(run)),
    ]


def _why(run: PastRun) -> list[str]:
    """Why it failed, or what was noted of its end; that its log is still to be read."""
    if not run.read:
        return [_UNREAD]
    failure = verdict.failure(run.state)
    words = [failures.short(failure)] if failure else list(run.state.notes)
    return [*words, *run.state.warnings]
