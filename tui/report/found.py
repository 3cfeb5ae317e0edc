"""Servers that were found on hosts, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterable

from tui.report.json import Report, report
from tui.report.text import WIDTH, remarks, state_word, table, wrapped
from tui.report.units import span
from tui.sglang.state import ServerState


def document(states: Iterable[ServerState], now: float) -> Report:
    """What ``discover --json`` prints: a report per server, and who started it how."""
    return {"servers": [_found(state, now) for state in states]}


def _found(state: ServerState, now: float) -> Report:
    stranger = state.info.stranger
    assert stranger is not None
    return {
        **report(state, now),
        "owner": stranger.owner,
        "command": stranger.command,
        "kind": stranger.kind,
        "container": stranger.container,
        "job": stranger.job,
        "launched_by_hcs_tui": stranger.ours,
    }


def found_table(states: Iterable[ServerState], now: float, width: int = WIDTH) -> str:
    """A line per server, and below the table its log and what else is worth saying."""
    states = list(states)
    rows = [["SERVER", "STATE", "AGE", "OWNER", "GPUS", "MODEL"], *(_row(state, now) for state in states)]
    lines = table(rows, [False, False, True, False, False, False])
    for state in states:
        if state.run is not None and state.run.log:
            lines += wrapped(f"{state.info.name}: log {state.run.log}", width)
        lines += remarks(state, now, width)
    return "\n".join(lines)


def _row(state: ServerState, now: float) -> list[str]:
    info, run = state.info, state.run
    age = span(now - run.started) if run is not None else ""
    model = info.model or state.log.model or ""
    owner = info.stranger.owner if info.stranger else ""
    return [info.name, state_word(state), age, owner, ",".join(map(str, info.gpus)), model]
