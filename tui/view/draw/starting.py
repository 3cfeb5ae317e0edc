"""A start-up in one row: the stage's progress and its times."""

from __future__ import annotations

from collections.abc import Iterator

from tui.sglang.model import Stage
from tui.sglang.short import untimed
from tui.view.draw import meter, units
from tui.view.draw.row import Row, Span, clip, join, width
from tui.view.glance import Glance, log_age, pinning, stage_age

_SILENT = 5.0  # seconds without a line that are worth a word
_LINE_MIN = 40  # columns of the newest line that are worth showing


def starting(glance: Glance, room: int) -> Row:
    """A start-up: the stage's progress, how long it lasts, how long it took last time, and for how long its log has
    been silent. What does not fit is left out, in a set order; nothing is cut but the newest line, which stands where
    there is no progress to tell."""
    row = next((row for row in _choices(glance) if width(row) <= room), [])
    left = room - width(row) - 2
    if left > _LINE_MIN and glance.state.log.last_line and not _progress(glance):
        return join([row, [Span(clip(untimed(glance.state.log.last_line), left), "muted")]])
    return row


def _choices(glance: Glance) -> Iterator[Row]:
    """From all that there is to say to the least."""
    age = stage_age(glance)
    last = dict(glance.state.previous_stages).get(glance.stage.value) if glance.stage else None
    silent = log_age(glance)
    now: Row = [] if age is None else [Span(units.span(age), "text")]
    before: Row = [] if last is None else [Span(f"last time {units.span(last)}", "muted")]
    quiet: Row = [] if silent is None or silent < _SILENT else [Span(f"log silent for {units.span(silent)}", "muted")]
    if glance.state.run and not glance.state.log.size:
        quiet = [Span("no output yet", "muted")]
    wide, *narrow = _progress(glance) or [[]]
    yield join([wide, now, before, quiet])
    yield join([wide, now, before])
    for progress in narrow[:2]:
        yield join([progress, now, before])
    for progress in narrow or [wide]:
        yield join([progress, now])
    yield narrow[-1] if narrow else now


def _progress(glance: Glance) -> list[Row]:
    """How far the stage has come, from the widest way of saying it to the narrowest."""
    if glance.stage is Stage.HOST_CACHE and glance.host_pools:
        return _pinned(glance)
    progress = glance.state.log.progress
    if not progress or not progress.total:
        return []
    ratio = progress.done / progress.total
    percent = Span(units.percent(ratio))
    things = Span(f"{progress.done} of {progress.total} {progress.what}")
    bars = [join([meter.bar(ratio, blocks, "start"), [percent]], " ") for blocks in (12, 5)]
    return [join([bars[0], [things]]), *bars, [percent]]


def _pinned(glance: Glance) -> list[Row]:
    """The host pools: those that are done, and how much of the last one is pinned."""
    last = pinning(glance)[-1]
    kind, of = Span(f"{last.pool.kind} "), units.gigabytes(last.of)
    if last.gb is None:
        return [[kind, Span(of)]]
    ratio, ink = last.gb / last.of if last.of else 0.0, kind_ink(last.pool.kind)
    size = Span(f" {last.gb:.0f} of {of}")
    ten, five = ([kind, *meter.bar(ratio, blocks, ink), size] for blocks in (10, 5))
    return [join([_pinned_done(glance), ten]), ten, five, [kind, Span(units.percent(ratio))]]


def _pinned_done(glance: Glance) -> Row:
    return join(
        [[Span(f"{p.pool.kind} "), Span("✔", "ok"), Span(f" {units.gigabytes(p.of)}")] for p in pinning(glance)[:-1]]
    )


def kind_ink(kind: str) -> str:
    """The ink of a kind of cache; KV and Mamba differ also by their label."""
    return "mamba" if kind.lower().startswith("mamba") else "kv"
