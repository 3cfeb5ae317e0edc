"""The start-up timeline: a bar per stage with its seconds, beside the last run's."""

from __future__ import annotations

import time

from tui.report.restarts import restart_remarks
from tui.sglang import verdict
from tui.sglang.model import Exit, Phase, Stage, StageSpan
from tui.view.draw import units
from tui.view.draw.row import Row, Span, cell, clip_words, fit, flow, width, wrap
from tui.view.glance import STAGE_NAMES, Glance, log_age, stage_age

_NAME = 11
_TIME = 6
_FEW = 4  # rows, of which one can be spared


def timeline(glance: Glance, columns: int, rows: int, memory: Row | None = None) -> list[Row]:
    """At most ``rows`` rows: what is wrong first, then the stages in the order they came, as far as there is room.

    A failure and its advice may take all rows but that of ``memory``, what is to be said of its host's; other troubles
    leave three for the stages.
    """
    told = [memory] if memory and rows >= _FEW else []
    left = rows - len(told)
    troubles = [*_troubles(glance, columns, left if glance.failure else max(2, left - 3)), *told]
    spans = [s for s in glance.stages if s.stage is not Stage.READY]
    if not spans:
        return troubles or [[Span(clip_words(_nothing(glance), columns), "muted")]]
    room = max(0, rows - len(troubles) - 1)
    bars = _bars(glance, columns)
    first = max(0, min(len(spans) - 1, len(bars) - room)) if len(spans) >= room else 0
    return [*troubles, *bars[first:][:room], _total(glance, columns)][:rows]


def _nothing(glance: Glance) -> str:
    if glance.phase is Phase.ABSENT:
        return verdict.port_taken(glance.state) or "not launched"
    return "no output yet" if glance.state.run else "nothing known of its start"


def _bars(glance: Glance, columns: int) -> list[Row]:
    """A row per stage; of a start-up also those that the last one had beyond the present."""
    last = dict(glance.state.previous_stages)
    took = _took(glance)
    longest = max([*(seconds for _, seconds in took if seconds), *last.values(), 0.1])
    with_last = bool(last) and columns >= 40
    room = columns - _NAME - 2 - _TIME - 3 - (_TIME + 7 if with_last else 0)
    out: list[Row] = []
    for span, seconds in took:
        going = span.seconds is None and span is took[-1][0] and glance.phase is Phase.STARTING
        stuck = going and glance.stalled
        ink = "warn" if stuck else "start" if going else "done"
        before = last.get(span.stage.value)
        row: Row = [cell(STAGE_NAMES[span.stage], _NAME, f"{ink} bold" if going else "text"), Span("  ")]
        row += _stretch(seconds or 0.0, before, longest, room, ink)
        text = "?" if seconds is None else units.span(seconds)
        row += [Span(" "), cell(text, _TIME, right=True), Span(" ⚠" if stuck else " ◐" if going else "  ", ink)]
        out.append(fit([*row, *_before(before, with_last)], columns))
    for stage, before in _to_come(glance):
        row = [cell(STAGE_NAMES[stage], _NAME, "muted"), Span("  "), *_stretch(0.0, before, longest, room, "done")]
        out.append(fit([*row, cell("", _TIME + 3), *_before(before, with_last)], columns))
    return out


def _before(seconds: float | None, wanted: bool) -> Row:
    """What the stage took the last time."""
    return (
        [cell("" if seconds is None else f"last {units.span(seconds)}", _TIME + 6, "muted", right=True)]
        if wanted
        else []
    )


def _to_come(glance: Glance) -> list[tuple[Stage, float]]:
    """The stages of the last start that this one has not reached, with their seconds then."""
    if glance.phase is not Phase.STARTING or not glance.stages:
        return []
    had = {span.stage.value for span in glance.stages}
    names = [name for name, _ in glance.state.previous_stages]
    here = max((n for n, name in enumerate(names) if name in had), default=-1)
    rest = glance.state.previous_stages[here + 1 :]
    return [(Stage(name), seconds) for name, seconds in rest if name in set(Stage) and name != Stage.READY]


def _left(glance: Glance) -> float | None:
    """Seconds until ready, if the rest takes as long as the last time; ``None`` where that is not known, as in a stage
    that lasts longer than it did then."""
    last = dict(glance.state.previous_stages)
    if glance.phase is not Phase.STARTING or glance.stalled or glance.stage is None or glance.stage.value not in last:
        return None
    here = last[glance.stage.value] - (stage_age(glance) or 0.0)
    return None if here < 0 else here + sum(seconds for _, seconds in _to_come(glance))


def _lasting(glance: Glance, newest: bool) -> float | None:
    """Seconds of a stage that nothing closed: the newest one lasts until now, or lasted until the run's end."""
    if not newest:
        return None
    if glance.phase is Phase.STARTING:
        return stage_age(glance)
    begun, ended = glance.stages[-1].start_local, _ended_local(glance)
    # Lines without a time came after the last one that has one: where that is the stage's first, nothing is known.
    return None if begun is None or ended is None or ended <= begun else ended - begun


def _ended_local(glance: Glance) -> float | None:
    """When a run that is over ended, by its host's clock: as its process did, else as its log did."""
    if glance.phase not in (Phase.FAILED, Phase.STOPPED, Phase.LOST):
        return None
    run, end = glance.state.run, glance.state.exit
    if run and run.utc_offset is not None and end and end.at is not None:
        return end.at + run.utc_offset
    return glance.state.log.last_local


def _took(glance: Glance) -> list[tuple[StageSpan, float | None]]:
    """The stages before ready with their seconds, where these are known."""
    spans = [s for s in glance.stages if s.stage is not Stage.READY]
    return [(s, s.seconds if s.seconds is not None else _lasting(glance, s is spans[-1])) for s in spans]


def _whole(glance: Glance) -> tuple[float | None, bool]:
    """Seconds of the start-up, and whether these are the least: of one that ended before it was ready from the run's
    start to its end. ``None`` where no time tells."""
    state = glance.state
    begun, ended = _began(glance), _ended_local(glance)
    if begun is not None and ended is not None and not state.log.ready and state.ready_at is None:
        return (ended - begun, False) if ended > begun else (None, True)
    took = _took(glance)
    whole = sum(seconds for _, seconds in took if seconds is not None)
    unknown = any(seconds is None for _, seconds in took)
    last = took[-1][0].start_local if took and took[-1][1] is None else None
    if last is not None and state.log.last_local is not None:
        whole += max(0.0, state.log.last_local - last)  # a saved log goes on at least to its last time
    return (whole or None) if unknown else whole, unknown


def _began(glance: Glance) -> float | None:
    """When the first stage that has a time did, by the host's clock."""
    return next((s.start_local for s in glance.stages if s.start_local is not None), None)


def _stretch(seconds: float, before: float | None, longest: float, room: int, ink: str) -> Row:
    """A heavy bar for this run, as long as its share of the longest; a thin one goes on to where the last run's ended,
    or a notch marks it."""
    if room <= 0:
        return []
    length = max(1, round(seconds / longest * room)) if seconds > 0 else 0
    then = max(1, round(before / longest * room)) if before else 0
    if then >= length:
        return [Span("━" * length, ink), cell("─" * (then - length), room - length, "muted")]
    notch = [Span("┿", "text"), Span("━" * (length - then - 1), ink)] if then and length - then > 1 else []
    bar: Row = [Span("━" * then, ink), *notch] if notch else [Span("━" * length, ink)]
    return [*bar, cell("", room - length)]


def _total(glance: Glance, columns: int) -> Row:
    state = glance.state
    whole, more = _whole(glance)
    took = "?" if whole is None else f"at least {units.span(whole)}" if more else units.span(whole)
    parts: list[Row] = [[cell("total", _NAME, "muted"), Span(f"  {took}")]]
    begun = _began(glance)
    if whole is None and state.run is None and begun is not None:
        parts.append([Span(f"began {time.strftime('%H:%M:%S', time.gmtime(begun))}", "muted")])
    left = _left(glance)
    if left is not None:
        parts.append([Span(f"~{units.span(left)} to go", "muted")])
    elif glance.phase is Phase.READY:
        parts += _serving(glance)
    elif state.previous_stages:
        parts.append([Span(f"last run {units.span(_last(glance) or 0.0)}", "muted")])
    if glance.phase is Phase.STARTING and state.run:
        due = state.run.started + state.info.ready_timeout - glance.now
        words = f"deadline in {units.span(due)}" if due > 0 else "deadline passed"
        parts.append([Span(words, "muted" if due > 0 else "warn")])
    return flow(parts, columns, gap="   ")[0]


def _serving(glance: Glance) -> list[Row]:
    """Since when a server has been ready, and how old the newest line of its log is."""
    told = (("ready for {}", glance.uptime), ("log {} ago", log_age(glance)), ("last run {}", _last(glance)))
    return [[Span(words.format(units.span(age)), "muted")] for words, age in told if age is not None]


def _last(glance: Glance) -> float | None:
    """Seconds that the last start-up took."""
    return sum(s for _, s in glance.state.previous_stages) if glance.state.previous_stages else None


def _troubles(glance: Glance, columns: int, rows: int) -> list[Row]:
    """Failure with what to do, how it ended, stall, ranks that others wait for, notes: wrapped, most telling first.

    Where ``rows`` are too few, the explanation gives way to what to do, in a few words or else as long as it is;
    every cut shows as ``…``. That a failure is not followed by a restart stands before all else.
    """
    left = glance.state.restarts
    first = _cut(_paragraph(left.why, columns, "warn", "↻ "), 2, columns) if left.why and not left.pending else []
    rows -= len(first)
    why, advice = _failure(glance, columns)
    if advice and len(why) + len(advice[0]) > rows:
        remedy = glance.reason.rpartition(" → ")[2] if " → " in glance.reason else ""
        if remedy:
            advice.insert(0, _paragraph(remedy, columns, "accent", "→ "))
        why = _cut(why, max(1, rows - len(advice[0])), columns)
    told = [*why, *(row for part in advice for row in part), *_marks(glance, columns)]
    return [*first, *_cut(told, rows, columns)]


def _failure(glance: Glance, columns: int) -> tuple[list[Row], list[list[Row]]]:
    """The explanation's rows, and those of each advice."""
    if not glance.failure:
        return [], []
    why = _paragraph(glance.failure.explanation, columns, "bad", "✖ ")
    return why, [_paragraph(advice, columns, "text", "→ ") for advice in glance.failure.advice]


def _marks(glance: Glance, columns: int) -> list[Row]:
    """What is to be said beside a failure."""
    state = glance.state
    out: list[Row] = []
    if state.exit:
        out += _paragraph(_ending(state.exit), columns, "muted", "  ")
    elif left := verdict.leftover(state):
        out += _paragraph(left, columns, "warn", "⚠ ")
    if glance.stalled:
        out += _paragraph(
            f"stalled: {glance.stall_reason}" if glance.stall_reason else "stalled", columns, "warn", "⚠ "
        )
    if state.log.missing_ranks and glance.phase is Phase.STARTING:
        out += _paragraph(f"waiting for {', '.join(state.log.missing_ranks)}", columns, "warn", "⧖ ")
    for warning in dict.fromkeys((*glance.warnings, *state.log.warnings)):
        out += _paragraph(warning, columns, "warn", "⚠ ")
    if state.info.stranger and state.run:
        out += _paragraph(f"found running: pid {state.run.pid} of {state.info.stranger.owner}", columns, "muted", "· ")
    for note in state.notes:
        out += _paragraph(note, columns, "muted", "· ")
    for words in restart_remarks(state, glance.now):
        if words != state.restarts.why:  # which stands above all
            out += _paragraph(words, columns, "muted", "↻ ")
    return out


def _cut(drawn: list[Row], rows: int, columns: int) -> list[Row]:
    """The first ``rows`` rows; where some are left out the last one ends in ``…``."""
    if len(drawn) <= rows or rows <= 0:
        return drawn[: max(0, rows)]
    *head, last = drawn[:rows]
    mark, text = last
    return [*head, [mark, text._replace(text=clip_words(f"{text.text} …", columns - width([mark])))]]


def _ending(end: Exit) -> str:
    how = (
        "after SIGTERM, by its own SIGKILL"
        if end.unforced
        else f"by {end.signal}"
        if end.signal
        else "with an unknown status"
        if end.status is None
        else f"with status {end.status}"
    )
    killed = ", killed by the kernel for memory" if end.oom_killed else ""
    left = f", {len(end.left)} processes left over" if end.left else ""
    return f"ended {how}{killed}{left}"


def _paragraph(text: str, columns: int, ink: str, mark: str) -> list[Row]:
    lines = wrap(text, max(8, columns - 2))
    return [[Span(mark if n == 0 else "  ", f"{ink} bold"), Span(line, ink)] for n, line in enumerate(lines)]
