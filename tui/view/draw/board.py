"""The board: one row per server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from rich.cells import cell_len

from tui.report.restarts import upcoming
from tui.sglang import verdict
from tui.sglang.model import Phase, Stage
from tui.view.draw import units
from tui.view.draw.columns import Column, chosen, figures, figures_that_fit, total
from tui.view.draw.row import Row, Span, cell, clip, clip_middle, clip_words, fit, join, longest, spread, width
from tui.view.draw.starting import starting
from tui.view.glance import GLYPHS, STAGE_NAMES, Glance

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
_EDGE = 1  # columns that stay empty at the right
_GIVES_WAY = 50  # columns kept no longer than this make room for a warning
_WARNING_MIN = 14  # columns of a warning that say something
_WHY_MIN = 5  # columns of a failure's reason that are worth showing before its remedy
_WORDS_MIN = 16  # columns of its words, behind what it is about, that say something


Known = dict[str, tuple[Glance, tuple[object, ...], Row]]
"""By server: the glance at it, all else that its row depends on, and the row."""

Entry = Glance | str
"""A row of the board: a server, or the host of those below it."""


def entries(glances: Sequence[Glance], *, by_host: bool = False) -> list[Entry]:
    """The board's rows in order."""
    if not by_host:
        return list(glances)
    out: list[Entry] = []
    for host, group in groupby(glances, key=lambda g: g.state.info.host or ""):
        out += [host, *group]
    return out


def board(
    glances: Sequence[Glance],
    columns: int,
    selected: str | None = None,
    *,
    by_host: bool = False,
    window: slice = slice(None),
    known: Known | None = None,
) -> list[Row]:
    """Rows of at most ``columns``, one per server in the given order; the ``selected`` one is marked. ``window``: only
    these rows, under the same columns. ``known``: rows of earlier drawings, used and added to."""
    names = min(max((cell_len(g.name) for g in glances), default=4), max(6, columns // 5))
    room = columns - (2 + 2 + names + 2 + _WORD + 1) - _EDGE
    shown = chosen(glances, room, by_host)
    return [
        _heading(entry, [g for g in glances if (g.state.info.host or "") == entry], columns)
        if isinstance(entry, str)
        else _kept({} if known is None else known, entry, columns, names, shown, entry.name == selected)
        for entry in entries(glances, by_host=by_host)[window]
    ]


def _kept(known: Known, glance: Glance, columns: int, names: int, shown: Sequence[Column], selected: bool) -> Row:
    """The row of a server; the one of the last drawing where nothing that it depends on is different."""
    like = (columns, names, tuple(shown), selected)
    before = known.get(glance.name)
    if before is None or before[0] is not glance or before[1] != like:
        before = known[glance.name] = (glance, like, _row(glance, columns, names, shown, selected))
    return before[2]


def _heading(host: str, glances: Sequence[Glance], columns: int) -> Row:
    """A host above its servers: how many, and what they generate together."""
    rate = generated(glances)
    told: list[Row] = [
        [Span(f" {host or 'no host'}", "accent bold")],
        [Span(f"{len(glances)} server{'s' if len(glances) != 1 else ''}", "muted")],
        [Span("Σ ", "muted"), Span(f"{units.rate(rate)} tok/s")] if rate is not None else [],
    ]
    row = join(told)
    return fit([*row, Span(" " + "─" * max(0, columns - width(row) - 2), "line")], columns)


def generated(glances: Sequence[Glance]) -> float | None:
    """Tokens per second that the reachable ready servers generate now; ``None`` when none has told any."""
    told = [g for g in glances if g.phase is Phase.READY and not g.unreachable and g.generate is not None]
    return sum(g.generate or 0.0 for g in told if not g.stale) if told else None


def _row(glance: Glance, columns: int, names: int, shown: Sequence[Column], selected: bool) -> Row:
    ink = INKS[glance.phase]
    head: Row = [
        Span("▌ " if selected else "  ", "accent"),
        Span(f"{GLYPHS[glance.phase]} ", f"{ink} bold"),
        cell(clip_middle(glance.name, names), names, "text bold" if selected else "text"),
        Span("  "),
        *_word(glance, ink),
        Span(" "),
    ]
    room = columns - width(head) - _EDGE
    row = [*head, *_body(glance, room, shown)]
    mark = " choice" if selected else ""
    row = fit(row, columns)
    row = spread(row, [], columns) if selected else row
    return [Span(s.text, s.ink + mark, f"select:{glance.name}") for s in row]


def _word(glance: Glance, ink: str) -> Row:
    """The state in one word, with a mark where something is to be warned of."""
    if not glance.warnings or glance.phase not in (Phase.READY, Phase.STARTING, Phase.STOPPING):
        return [cell(word(glance), _WORD, ink)]
    text = clip(word(glance), _WORD - 2)
    return [Span(text, ink), cell(" ⚠", _WORD - cell_len(text), "warn bold")]


def word(glance: Glance) -> str:
    """The state in one word: the stage of a start-up, else the phase."""
    if glance.phase is Phase.STARTING and glance.stage not in (None, Stage.READY):
        return STAGE_NAMES[glance.stage]
    return str(glance.phase.value)


def _body(glance: Glance, room: int, shown: Sequence[Column]) -> Row:
    """What a server has to say beside its name and state: marks first, then what its phase calls for."""
    marks = _marks(glance, room)
    match glance.phase:
        case Phase.READY:
            if marks:
                return join([marks, figures_that_fit(glance, shown, room - width(marks) - 2)])
            return _warned(glance, shown, room)
        case Phase.STARTING:
            return join([marks, starting(glance, room - width(marks) - (2 if marks else 0))])
        case Phase.FAILED:
            return join([marks, _reason(glance, room - width(marks) - (2 if marks else 0))])
        case _:
            left = room - width(marks) - (2 if marks else 0)
            quiet = _quiet_in(_quiet(glance), left)
            return join([marks, [Span(quiet, "muted")] if quiet else []])


def _reason(glance: Glance, room: int) -> Row:
    """Why it failed, and what to do about it, which stays as long as it fits; of the why at least what it is about."""
    what, arrow, remedy = (glance.reason or "no reason found in its log").rpartition(" → ")
    what = what or remedy
    if not arrow:
        return [Span(clip_words(what, room))]
    tail = f" → {remedy}"
    left = room - cell_len(tail)
    why = in_short(what, left)
    if why and left >= _WHY_MIN:
        return [Span(why), Span(tail, "accent")]
    if room < min(_WARNING_MIN, cell_len(tail) - 1):
        return []
    return [Span(clip_words(tail.strip(), room), "accent")]


def in_short(reason: str, room: int) -> str:
    """``about: what`` cut to ``room``, behind a comma if possible; ``about`` alone where hardly a word of ``what``
    would be left."""
    about, _, what = reason.partition(": ")
    clauses = reason.split(", ")
    shorter = (", ".join(clauses[:n]) + "…" for n in range(len(clauses) - 1, 0, -1))
    for cut in (reason, *shorter, clip_words(reason, room)):
        if cell_len(cut) <= room and (not what or cut == reason or cell_len(cut) >= cell_len(about) + _WORDS_MIN):
            return cut
    return about if cell_len(about) <= room else ""


def _warned(glance: Glance, shown: Sequence[Column], room: int) -> Row:
    """The figures; a warning stands in place of the last ones that matter less, where it then has room."""
    if not glance.warnings:
        return figures(glance, shown)
    kept = list(shown)
    while kept and kept[-1].keep <= _GIVES_WAY:
        kept.pop()
    told = [f"⚠ {brief(warning)}" for warning in glance.warnings]
    left = room - total(kept) - 2
    shortest = min(map(cell_len, told))
    others = len(told) - 1
    more = next((m for m in (f" and {others} more", ", …") if shortest + len(m) <= left), "") if others else ""
    left -= len(more)
    words = next((words for words in told if cell_len(words) <= left), told[0])
    if left < min(_WARNING_MIN, cell_len(words)):
        return figures(glance, shown)
    return join([figures(glance, kept), [Span(clip_words(words, left) + more, "warn")]])


def brief(warning: str) -> str:
    """A warning's first words, which say what it is."""
    return re.split(r"[,:;] ", warning, maxsplit=1)[0]


def _marks(glance: Glance, room: int) -> Row:
    """What stands beside the phase; where that is too long its last words are left out."""
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
    row = join(out)
    if not out or width(row) <= room:
        return row
    return [Span(clip_words("  ".join(span.text for part in out for span in part), room), out[0][0].ink)]


def _quiet_in(said: str, room: int) -> str:
    """``said``, or its first part, where that fits; cut only where some words are left."""
    if whole := longest((said, said.partition("  ")[0]), room):
        return whole
    return clip_words(said, room) if room >= _WARNING_MIN else ""


def _quiet(glance: Glance) -> str:
    """A server that does not run, in a few words."""
    state = glance.state
    if taken := verdict.port_taken(state):
        return taken
    if state.notes:
        return state.notes[-1]
    match glance.phase:
        case Phase.ABSENT:
            return "not launched"
        case Phase.STOPPING:
            return f"ending for {units.span(glance.now - state.stop_asked)}" if state.stop_asked else "ending"
        case Phase.STOPPED:
            how = "" if not state.exit else state.exit.by or f"status {state.exit.status}"
            when = f"{units.span(glance.now - state.exit.at)} ago" if state.exit and state.exit.at else ""
            return "  ".join(part for part in (when, how) if part)
        case _:
            return "its process is gone and nobody saw how it ended"
