"""A start-up in one row: the stage's progress and its times."""

from __future__ import annotations

from tui.sglang.model import Stage
from tui.view.draw import meter, units
from tui.view.draw.row import Row, Span, clip, fit, join, width
from tui.view.glance import Glance, log_age, pinning, stage_age

_SILENT = 5.0  # seconds without a line that are worth a word


def starting(glance: Glance, room: int) -> Row:
    """A start-up: the stage's progress, how long it lasts, how long it took last time, and for how long its log has
    been silent."""
    age = stage_age(glance)
    last = dict(glance.state.previous_stages).get(glance.stage.value) if glance.stage else None
    silent = log_age(glance)
    times: list[Row] = [
        [] if age is None else [Span(units.span(age), "text")],
        [] if last is None else [Span(f"last time {units.span(last)}", "muted")],
    ]
    progress = _progress(glance, room - width(join(times)) - 2)
    row = join([progress, *times])
    quiet: Row = [] if silent is None or silent < _SILENT else [Span(f"log silent for {units.span(silent)}", "muted")]
    if width(row) + width(quiet) + 2 <= room:
        row = join([row, quiet])
    left = room - width(row) - 2
    if not progress and left > 40 and glance.state.log.last_line:
        return join([row, [Span(clip(glance.state.log.last_line, left), "muted")]])
    return fit(row, room)


def _progress(glance: Glance, room: int) -> Row:
    if glance.stage is Stage.HOST_CACHE and glance.host_pools:
        return join([_pinned_done(glance), _pinned_last(glance, room)]) if room >= 44 else _pinned_last(glance, room)
    progress = glance.state.log.progress
    if progress and progress.total:
        ratio = progress.done / progress.total
        done = f" {units.percent(ratio)}"
        things = f"  {progress.done} of {progress.total} {progress.what}"
        blocks = min(12, max(4, room - len(done) - len(things)))
        bar = [*meter.bar(ratio, blocks, "start"), Span(done)]
        return [*bar, Span(things)] if width(bar) + len(things) <= room else bar
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
