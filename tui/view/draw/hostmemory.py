"""A server's host memory: what its flags ask for, what its processes hold, and what its host has left."""

from __future__ import annotations

from dataclasses import dataclass

from tui.fleet.api import HostState
from tui.sglang import verdict
from tui.sglang.memory import RESERVE_GB
from tui.sglang.model import FailureKind, Phase, Stage
from tui.view.draw.row import Row, Span, cell, fit, flow, join, width
from tui.view.glance import BYTES_PER_GB, Glance

_NAME = 10
_NUMBER = 9
_BAR, _MOST = 10, 40  # columns of a bar that is worth drawing, and of the longest
_FOR_MEMORY = (FailureKind.OOM_HOST_HICACHE, FailureKind.OS_OOM_KILLED)
_VERDICT = 24  # columns beside the bars for what follows from them


@dataclass(frozen=True, slots=True)
class HostMemory:
    """What a host's memory has to bear, in decimal GB. ``planned``: what the flags ask for; ``asked``: what the pools
    of the log ask for; ``held``: what its processes hold now; ``available`` and ``total`` are the host's."""

    planned: float | None
    asked: float
    held: float | None
    available: float | None
    total: float | None


def host_memory(glance: Glance, host: HostState | None) -> HostMemory:
    """From the flags, the log, the processes and the host of a server."""
    memory = glance.state.memory
    total = host.memory_total if host and host.memory_total else memory.total if memory else None
    free = host.memory_available if host and host.memory_available is not None else memory.available if memory else None
    return HostMemory(
        planned=verdict.planned_host_gb(glance.state),
        asked=glance.host_gb,
        held=memory.pinned / BYTES_PER_GB if memory and _lives(glance) else None,
        available=None if free is None else free / BYTES_PER_GB,
        total=None if total is None else total / BYTES_PER_GB,
    )


def _lives(glance: Glance) -> bool:
    """Whether there may be processes that hold what was last read."""
    return glance.state.alive is not False and glance.phase not in (Phase.LOST, Phase.STOPPED)


def verdict_of(glance: Glance, memory: HostMemory) -> Row:
    """Whether what is still to be taken fits into what is free; nothing once it is taken, or where that is unknown."""
    wanted = memory.planned or memory.asked
    if glance.phase in (Phase.READY, Phase.STOPPING) or not wanted or memory.available is None:
        return []
    more = wanted - (memory.held or 0.0)
    if more <= 0:
        return []
    if more > memory.available:
        return [Span(f"✖ {more - memory.available:.1f} GB too little", "bad bold")]
    if more > memory.available - RESERVE_GB:
        return [Span(f"✖ less than the {RESERVE_GB:.1f} GB that stay free", "bad")]
    return [Span("✔ fits", "ok")]


def line(glance: Glance, host: HostState | None, columns: int) -> Row:
    """Planned against free memory in one row, as long as that matters: nothing once the server is ready, or where it
    failed for another reason, or where one of the two is unknown."""
    memory = host_memory(glance, host)
    if glance.failure and glance.failure.kind not in _FOR_MEMORY:
        return []
    if glance.phase in (Phase.READY, Phase.STOPPING) or not memory.planned or memory.available is None:
        return []
    of = f" of {memory.total:.0f}" if memory.total else ""
    said: Row = [
        Span("planned ", "muted"),
        Span(_size(memory.planned), "text bold"),
        Span(f", {memory.held:.1f} allocated, " if memory.held else ", ", "muted"),
        Span(f"{memory.available:.1f}{of} GB free", "text"),
    ]
    verdict = verdict_of(glance, memory)
    mark = [span._replace(text=span.text[:1]) for span in verdict]
    for row in (
        join([[Span("host memory ", "muted"), *said], verdict]),
        join([said, verdict]),
        join([said, mark], " "),
    ):
        if width(row) <= columns:
            return row
    return []


def bars(glance: Glance, host: HostState | None, columns: int) -> list[Row]:
    """A bar for each, on the scale of the host's memory; text alone where that is unknown or too narrow."""
    memory = host_memory(glance, host)
    length = min(_MOST, columns - _NAME - _NUMBER - 1 - _VERDICT)
    if not memory.total or length < _BAR:
        return words(glance, host, columns)
    drawn = [
        ("planned", memory.planned, "╍", "start", _other(glance, memory)),
        ("allocated", memory.held, "━", "kv", []),
        ("free", memory.available, "━", "ok", verdict_of(glance, memory)),
    ]
    out: list[Row] = []
    for name, gb, mark, ink, more in drawn:
        if gb is None or (not gb and name != "free"):
            continue
        blocks = min(length, max(1 if gb >= 0.05 else 0, round(gb / memory.total * length)))
        bar = [Span(mark * blocks, ink), Span("·" * (length - blocks), "line")]
        row: Row = [cell(name, _NAME, "muted"), *bar, cell(_size(gb), _NUMBER + 1, "text bold", right=True)]
        fits = width(row) + 2 + width(more) <= columns
        out.append([*row, Span("  "), *more] if more and fits else row)
        if more and not fits:
            out.append([cell("", _NAME), *more])
    return [_title(glance, host, memory, columns), *out] if out else []


def _size(gb: float) -> str:
    return f"{gb:.1f} GB" if gb < 9_999.95 else f"{gb / 1e3:.1f} TB"


def _other(glance: Glance, memory: HostMemory) -> Row:
    """What the log asks for, once it has told all, where that is not what was planned."""
    told = glance.phase is Phase.READY or glance.stage in (Stage.WARMUP, Stage.READY)
    if not told and memory.asked <= (memory.planned or 0.0):
        return []
    if not memory.asked or memory.planned is None or abs(memory.asked - memory.planned) < 0.01 * memory.planned:
        return []
    return [Span(f"its log: {_size(memory.asked)}", "warn")]


def _title(glance: Glance, host: HostState | None, memory: HostMemory, columns: int) -> Row:
    name = (host.name if host else glance.state.info.host) or "host"
    return fit([Span(f"memory of {name}, {memory.total or 0:.0f} GB in all", "muted")], columns)


def words(glance: Glance, host: HostState | None, columns: int) -> list[Row]:
    """The same in as few rows as it takes."""
    memory = host_memory(glance, host)
    told = (("planned", memory.planned), ("allocated", memory.held), ("free", memory.available))
    parts: list[Row] = [
        [Span(f"{name} ", "muted"), Span(f"{gb:.1f}", "text bold")]
        for name, gb in told
        if gb or (gb is not None and name == "free")
    ]
    if not parts:
        return []
    if memory.total and memory.available is not None:
        parts[-1] = [*parts[-1], Span(f" of {memory.total:.0f}", "muted")]
    parts[0] = [Span("host GB ", "muted"), *parts[0]]
    return flow([*parts, _other(glance, memory), verdict_of(glance, memory)], columns, indent=len("host GB "))
