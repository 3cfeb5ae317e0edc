"""States as plain text that fits 80 columns: no colours, no boxes, nothing that a pipe or a log would spoil."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tui.report.restarts import restart_remarks
from tui.report.units import number, percent, span
from tui.sglang import verdict
from tui.sglang.model import Failure, Phase, Sample
from tui.sglang.reduce import marks
from tui.sglang.state import ServerState

WIDTH = 80


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the status table. Those with the lowest ``keep`` go first where the room does not do."""

    title: str
    text: Callable[[ServerState, float], str]
    keep: int
    right: bool = False
    widest: int = 16


def status_table(states: Iterable[ServerState], now: float, width: int = WIDTH) -> str:
    """A line per server, and below it what needs words: failures with advice, stalls, lost hosts, notes."""
    states = list(states)
    if not states:
        return "no servers"
    columns = _fitting(states, now, width)
    rows = [[column.title for column in columns]]
    rows += [[_cut(column.text(state, now), column.widest) for column in columns] for state in states]
    lines = table(rows, [column.right for column in columns])
    if len(states) > 1:
        lines += wrapped(_sum(states, now), width)
    told: set[tuple[str | None, str | None]] = set()
    for state in states:
        lost = (state.info.host, state.unreachable_why)
        if state.unreachable_since is not None and lost not in told:  # once for all servers of a host
            told.add(lost)
            name = state.info.host if state.info.host and _shared(lost, states) else state.info.name
            lines += wrapped(f"{name}: {_out_of_reach(state, now)}", width)
        lines += remarks(state, now, width, lost=False)
    return "\n".join(lines)


def _shared(lost: tuple[str | None, str | None], states: Iterable[ServerState]) -> bool:
    """Whether several servers are out of reach with the same host, for the same reason."""
    return [(s.info.host, s.unreachable_why) for s in states if s.unreachable_since is not None].count(lost) > 1


def _out_of_reach(state: ServerState, now: float) -> str:
    lost = 0.0 if state.unreachable_since is None else now - state.unreachable_since
    since = f" for {span(lost)}" if lost >= 1.0 else ""
    why = f": {state.unreachable_why}" if state.unreachable_why else ""
    return f"host unreachable{since}{why}"


def _sum(states: Sequence[ServerState], now: float) -> str:
    """The fleet in one line: how many servers are in which phase, and their rates together."""
    phases = [verdict.phase(state) for state in states]
    words = ["unknown" if is_unknown(state) else phase.value for state, phase in zip(states, phases, strict=True)]
    counts = [f"{words.count(word)} {word}" for word in (*Phase, "unknown") if word in words]
    rates = [
        verdict.throughput(state, now).generate or 0.0
        for state, phase in zip(states, phases, strict=True)
        if phase is Phase.READY
    ]
    total = f"; {number(sum(rates))} tok/s" if rates else ""
    return f"{len(states)} servers: {', '.join(counts)}{total}"


def table(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Rows of cells, aligned, two spaces between columns, nothing behind the last."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return ["  ".join(_aligned(row, widths, right)).rstrip() for row in rows]


def remarks(state: ServerState, now: float, width: int = WIDTH, *, lost: bool = True) -> list[str]:
    """What a table has no room for, wrapped; each remark begins with the server's name. ``lost``: also that its host
    is out of reach."""
    mark = marks(state, now)
    lines: list[str] = []
    if mark.unreachable and lost:
        lines += wrapped(f"{state.info.name}: {_out_of_reach(state, now)}", width)
    if mark.stalled:
        lines += wrapped(f"{state.info.name}: stalled: {mark.stall_reason or 'no sign of life'}", width)
    failure = verdict.failure(state)
    if failure:
        lines += failure_text(state.info.name, failure, width)
    told = (verdict.leftover(state), verdict.port_taken(state), verdict.unread(state))
    for note in (*state.warnings, *state.notes, *filter(None, told)):
        lines += wrapped(f"{state.info.name}: {note}", width)
    for words in restart_remarks(state, now):
        lines += wrapped(f"{state.info.name}: {words}", width)
    return lines


def failure_text(name: str, failure: Failure, width: int = WIDTH) -> list[str]:
    """A failure in words: what it means, the line that says so, what to do."""
    lines = wrapped(f"{name}: {failure.explanation}", width)
    if failure.line.strip():
        where = f"line {failure.line_number}: " if failure.line_number else ""
        lines += wrapped(f"{where}{_cut(failure.line.strip(), 400)}", width, indent="    ")
    for advice in failure.advice:
        lines += wrapped(f"-> {advice}", width, indent="    ")
    return lines


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """``text`` in lines of ``width``, further lines indented by four more; words that are too long stay whole."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def is_unknown(state: ServerState) -> bool:
    """Its host never answered: that nothing is known of a run does not mean that there is none."""
    return verdict.phase(state) is Phase.ABSENT and state.unreachable_since is not None


def state_word(state: ServerState) -> str:
    """The phase, or while it starts the stage; ``unknown`` of a host that never answered."""
    phase = verdict.phase(state)
    if is_unknown(state):
        return "unknown"
    stage = verdict.stage(state)
    return stage.value.replace("_", " ") if phase is Phase.STARTING and stage else phase.value


def _rate(state: ServerState, now: float) -> str:
    return number(verdict.throughput(state, now).generate) if verdict.phase(state) is Phase.READY else ""


def _figure(pick: Callable[[Sample], str]) -> Callable[[ServerState, float], str]:
    def text(state: ServerState, _now: float) -> str:
        sample = verdict.figures(state)
        return pick(sample) if sample and verdict.phase(state) is Phase.READY else ""

    return text


def _count(value: int | None) -> str:
    return "" if value is None else str(value)


def _age(state: ServerState, now: float) -> str:
    phase = verdict.phase(state)
    if phase is Phase.READY and state.ready_at:
        return span(now - state.ready_at)
    if phase in (Phase.STARTING, Phase.READY, Phase.STOPPING) and state.run:
        return span(now - state.run.started)
    return ""


def _marked(state: ServerState, now: float) -> str:
    mark = marks(state, now)
    return state_word(state) + (" !" if mark.stalled or mark.unreachable else "")


COLUMNS = (
    Column("SERVER", lambda state, _now: state.info.name, 9, widest=20),
    Column("HOST", lambda state, _now: state.info.host or "", 4, widest=14),
    Column("STATE", _marked, 9, widest=17),
    Column("FOR", _age, 3, right=True),
    Column("TOK/S", _rate, 8, right=True),
    Column("RUN", _figure(lambda sample: _count(sample.running)), 7, right=True),
    Column("QUEUE", _figure(lambda sample: _count(sample.queued)), 6, right=True),
    Column("KV", _figure(lambda sample: percent(sample.kv)), 5, right=True),
    Column("MAMBA", _figure(lambda sample: percent(sample.mamba)), 2, right=True),
    Column("PORT", lambda state, _now: _count(state.info.port), 1, right=True),
)


def _fitting(states: Sequence[ServerState], now: float, width: int) -> list[Column]:
    """The columns that have something to say and fit into ``width`` together."""
    cells = {column: [_cut(column.text(state, now), column.widest) for state in states] for column in COLUMNS}
    columns = [column for column in COLUMNS if any(cells[column]) or column.keep == 9]
    widths = {column: max(len(column.title), *map(len, cells[column])) for column in columns}
    while len(columns) > 2 and sum(widths[column] for column in columns) + 2 * (len(columns) - 1) > width:
        columns.remove(min(columns, key=lambda column: column.keep))
    return columns


def _aligned(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> Iterable[str]:
    for cell, width, to_right in zip(row, widths, right, strict=True):
        yield cell.rjust(width) if to_right else cell.ljust(width)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
