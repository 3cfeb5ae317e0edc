"""The board: one row per server."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from tui.report.restarts import upcoming
from tui.sglang import verdict
from tui.sglang.model import Phase, Sample, Stage
from tui.view.draw import meter, units
from tui.view.draw.row import Row, Span, cell, clip, fit, join, spread, width
from tui.view.glance import GLYPHS, STAGE_NAMES, Glance, pinning, stage_age

INKS: dict[Phase, str] = {
    Phase.ABSENT: "muted",
    Phase.STARTING: "start",
    Phase.READY: "ok",
    Phase.STOPPING: "warn",
    Phase.STOPPED: "muted",
    Phase.FAILED: "bad",
    Phase.LOST: "warn",
}
_WORD = 11  # columns of the state's word, as wide as "Mamba cache"
_SPARK_MIN, _SPARK_MAX = 8, 40
_WHY_MIN = 5  # columns of a failure's reason that are worth showing before its remedy


def board(glances: Sequence[Glance], columns: int, selected: str | None = None) -> list[Row]:
    """Rows of at most ``columns``, one per server in the given order; the ``selected`` one is marked."""
    names = min(max((len(g.name) for g in glances), default=4), max(6, columns // 5))
    room = columns - (2 + 2 + names + 2 + _WORD + 1)
    shown = _chosen(glances, room)
    return [_row(g, columns, names, shown, g.name == selected) for g in glances]


def _row(glance: Glance, columns: int, names: int, shown: Sequence[_Column], selected: bool) -> Row:
    ink = INKS[glance.phase]
    head: Row = [
        Span("▌ " if selected else "  ", "accent"),
        Span(f"{GLYPHS[glance.phase]} ", f"{ink} bold"),
        cell(glance.name, names, "text bold" if selected else "text"),
        Span("  "),
        cell(word(glance), _WORD, ink),
        Span(" "),
    ]
    room = columns - width(head)
    row = [*head, *_body(glance, room, shown)]
    mark = " choice" if selected else ""
    row = spread(fit(row, columns), [], columns) if selected else fit(row, columns)
    return [Span(s.text, s.ink + mark, f"select:{glance.name}") for s in row]


def word(glance: Glance) -> str:
    """The state in one word: the stage of a start-up, else the phase."""
    if glance.phase is Phase.STARTING and glance.stage not in (None, Stage.READY):
        return STAGE_NAMES[glance.stage]
    return str(glance.phase.value)


def _body(glance: Glance, room: int, shown: Sequence[_Column]) -> Row:
    """What a server has to say beside its name and state: marks first, then what its phase calls for."""
    marks = _marks(glance)
    match glance.phase:
        case Phase.READY:
            figures = join([[cell("", c.width)] if (part := c.draw(glance, c.width)) is None else part for c in shown])
            return _with_marks(marks, figures, room)
        case Phase.STARTING:
            return join([marks, starting(glance, room - width(marks))])
        case Phase.FAILED:
            return join([marks, _reason(glance, room - width(marks) - (2 if marks else 0))])
        case _:
            return join([marks, [Span(_quiet(glance), "muted")]])


def _reason(glance: Glance, room: int) -> Row:
    """Why it failed; where that is too long its middle is cut, and what to do about it stays as long as it fits."""
    what, arrow, remedy = (glance.reason or "no reason found in its log").rpartition(" → ")
    what = what or remedy
    if not arrow:
        return [Span(clip(what, room))]
    tail = f" → {remedy}"
    left = room - cell_len(tail)
    if left >= _WHY_MIN:
        return [Span(clip(what, left)), Span(tail, "accent")]
    return [Span(clip(tail.strip(), room), "accent")]


def _with_marks(marks: Row, figures: Row, room: int) -> Row:
    """Marks stand before the figures and push the last ones out, cut at a column's edge by ``fit``."""
    return fit(join([marks, figures]), room) if marks else figures


def _marks(glance: Glance) -> Row:
    out: list[Row] = []
    state = glance.state
    if next_one := upcoming(state, glance.now):
        out.append([Span(f"↻ {next_one}", "start")])
    elif state.restarts.why and not state.restarts.pending:
        out.append([Span("↻ " + re.split("[,:]", state.restarts.why)[0], "warn")])  # the reason stands beside the log
    if glance.unreachable:
        age = units.span(glance.now - state.unreachable_since) if state.unreachable_since else ""
        why = f": {state.unreachable_why}" if state.unreachable_why else ""
        out.append([Span(f"⚠ unreachable {age}{why}".replace(" :", ":"), "warn")])
    if glance.stalled:
        out.append([Span(f"⚠ stalled: {glance.stall_reason}" if glance.stall_reason else "⚠ stalled", "warn")])
    return join(out)


def _quiet(glance: Glance) -> str:
    """A server that does not run, in a few words."""
    state = glance.state
    if taken := verdict.port_taken(state):
        return f"not launched: {taken}"
    if state.notes:
        return state.notes[-1]
    match glance.phase:
        case Phase.ABSENT:
            return "not launched"
        case Phase.STOPPING:
            return f"ending for {units.span(glance.now - state.stop_asked)}" if state.stop_asked else "ending"
        case Phase.STOPPED:
            how = "" if not state.exit else state.exit.signal or f"status {state.exit.status}"
            when = f"{units.span(glance.now - state.exit.at)} ago" if state.exit and state.exit.at else ""
            return "  ".join(part for part in (when, how) if part)
        case _:
            return "its process is gone and nobody saw how it ended"


def starting(glance: Glance, room: int) -> Row:
    """A start-up: the stage's progress, how long it lasts, how long it took last time."""
    age = stage_age(glance)
    last = dict(glance.state.previous_stages).get(glance.stage.value) if glance.stage else None
    times: list[Row] = [
        [] if age is None else [Span(units.span(age), "text")],
        [] if last is None else [Span(f"last time {units.span(last)}", "muted")],
    ]
    progress = _progress(glance, room - width(join(times)) - 2)
    if not progress and room > 60 and glance.state.log.last_line:
        line = glance.state.log.last_line
        progress = [Span(line[: room - width(join(times)) - 2], "muted")]
        return join([*times, progress])
    return fit(join([progress, *times]), room)


def _progress(glance: Glance, room: int) -> Row:
    if glance.stage is Stage.HOST_CACHE and glance.host_pools:
        return join([_pinned_done(glance), _pinned_last(glance, room)]) if room >= 44 else _pinned_last(glance, room)
    progress = glance.state.log.progress
    if progress and progress.total:
        done = f"{progress.done} of {progress.total} {progress.what}"
        return [
            *meter.bar(progress.done / progress.total, min(12, max(4, room - len(done) - 1)), "start"),
            Span(f" {done}"),
        ]
    return []


def _pinned_done(glance: Glance) -> Row:
    return join(
        [[Span(f"{p.pool.kind} "), Span("✔", "ok"), Span(f" {units.gigabytes(p.of)}")] for p in pinning(glance)[:-1]]
    )


def _pinned_last(glance: Glance, room: int) -> Row:
    last = pinning(glance)[-1]
    kind = f"{last.pool.kind} "
    if last.gb is None:
        return [Span(f"{kind}{units.gigabytes(last.of)}")]
    size = f" {last.gb:.0f} of {units.gigabytes(last.of)}"
    ink = kind_ink(last.pool.kind)
    return [Span(kind), *meter.bar(last.gb / last.of if last.of else 0, 10 if room > 34 else 5, ink), Span(size)]


def kind_ink(kind: str) -> str:
    """The ink of a kind of cache; KV and Mamba differ also by their label."""
    return "mamba" if kind.lower().startswith("mamba") else "kv"


@dataclass(frozen=True, slots=True)
class _Column:
    """A figure of ready servers. ``keep``: the higher, the longer it stays as the terminal narrows."""

    key: str
    width: int
    keep: int
    draw: Callable[[Glance, int], Row | None]
    has: Callable[[Glance], bool]


def _chosen(glances: Sequence[Glance], room: int) -> list[_Column]:
    """The columns that some ready server can fill and that fit, the least important dropped first."""
    ready = [g for g in glances if g.phase is Phase.READY]
    wanted = [c for c in _COLUMNS if any(c.has(g) for g in ready)]
    while wanted and _total(wanted) > room:
        least = min(wanted, key=lambda c: c.keep)
        wanted.remove(least)
        if least.key in _SMALLER and any(least.has(g) for g in ready):
            wanted.append(_SMALLER[least.key])
            wanted.sort(key=lambda c: _ORDER.index(c.key))
    spare = room - _total(wanted)
    return [
        _Column(c.key, min(_SPARK_MAX, c.width + spare), c.keep, c.draw, c.has) if c.key == "spark" else c
        for c in wanted
    ]


def _total(columns: Sequence[_Column]) -> int:
    return sum(c.width for c in columns) + 2 * max(0, len(columns) - 1)


def _ink(glance: Glance) -> str:
    """Figures that are not the present ones are quiet."""
    return "muted" if glance.stale else "text"


def _rate(glance: Glance, columns: int) -> Row | None:
    if glance.sample is None:
        return [cell("—", columns, "muted", right=True)]
    if glance.generate is None or glance.stale:
        return [cell("idle", columns, "muted", right=True)]
    return [cell(units.rate(glance.generate), columns - 6, "text bold", right=True), Span(" tok/s", "muted")]


def _spark(glance: Glance, columns: int) -> Row | None:
    return meter.spark(rates(glance, columns), columns, "muted" if glance.stale else "ok")


def rates(glance: Glance, seconds: int) -> list[float | None]:
    """Tokens per second over the last ``seconds`` of the server's series, a value per second that has one."""
    series = glance.state.log.series[-seconds:]
    return [sample.generate if sample.generate is not None else 0.0 for sample in series]


def _number(label: str, of: Callable[[Sample], int | None]) -> Callable[[Glance, int], Row | None]:
    def draw(glance: Glance, columns: int) -> Row | None:
        value = of(glance.sample) if glance.sample else None
        if value is None:
            return None
        digits = columns - len(label) - 1
        return [
            Span(f"{label} ", "muted"),
            cell(units.short(value) if value > 9999 else str(value), digits, _ink(glance), right=True),
        ]

    return draw


def _usage(
    label: str, ink: str, of: Callable[[Sample], float | None], blocks: int
) -> Callable[[Glance, int], Row | None]:
    def draw(glance: Glance, columns: int) -> Row | None:
        value = of(glance.sample) if glance.sample else None
        if value is None:
            return None
        meters = [*meter.bar(value, blocks, ink), Span(" ")] if blocks else []
        high = "warn bold" if value >= 0.95 and not glance.stale else _ink(glance)
        return [Span(f"{label} ", "muted"), *meters, cell(units.percent(value), 4, high, right=True)]

    return draw


def _accept(glance: Glance, columns: int) -> Row | None:
    value = glance.sample.accept_len if glance.sample else None
    return None if value is None else [Span("acc ", "muted"), cell(f"{value:.2f}", columns - 4, right=True)]


def _uptime(glance: Glance, columns: int) -> Row | None:
    up = glance.uptime
    return None if up is None else [Span("up ", "muted"), cell(units.span(up), columns - 3)]


def _host(glance: Glance, columns: int) -> Row | None:
    info = glance.state.info
    return [cell(f"{info.host}:{info.port}" if info.port else str(info.host), columns, "muted")] if info.host else None


def _pools(glance: Glance, columns: int) -> Row | None:
    return (
        [Span("pinned ", "muted"), cell(units.gigabytes(glance.host_gb), columns - 7, right=True)]
        if glance.host_gb
        else None
    )


def _of(field: str) -> Callable[[Glance], bool]:
    return lambda glance: glance.sample is not None and getattr(glance.sample, field) is not None


_COLUMNS = (
    _Column("rate", 12, 99, _rate, lambda g: True),
    _Column("spark", _SPARK_MIN, 55, _spark, lambda g: bool(g.state.log.series)),
    _Column("run", 7, 90, _number("run", lambda s: s.running), _of("running")),
    _Column("queue", 9, 85, _number("queue", lambda s: s.queued), _of("queued")),
    _Column("kv", 13, 60, _usage("KV", "kv", lambda s: s.kv, 5), _of("kv")),
    _Column("mamba", 16, 58, _usage("Mamba", "mamba", lambda s: s.mamba, 5), _of("mamba")),
    _Column("accept", 8, 50, _accept, _of("accept_len")),
    _Column("uptime", 9, 45, _uptime, lambda g: g.uptime is not None),
    _Column("pools", 16, 40, _pools, lambda g: g.host_gb > 0),
    _Column("host", 20, 35, _host, lambda g: g.state.info.host is not None),
)
_SMALLER = {
    "kv": _Column("kv-small", 7, 80, _usage("KV", "kv", lambda s: s.kv, 0), _of("kv")),
    "mamba": _Column("mamba-small", 10, 75, _usage("Mamba", "mamba", lambda s: s.mamba, 0), _of("mamba")),
}
_ORDER = (
    "rate",
    "spark",
    "run",
    "queue",
    "kv",
    "kv-small",
    "mamba",
    "mamba-small",
    "accept",
    "uptime",
    "pools",
    "host",
)
