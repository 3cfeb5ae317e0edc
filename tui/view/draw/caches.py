"""The cache table: device and host pools per kind, per rank and in total, and planned against real host memory."""

from __future__ import annotations

from dataclasses import dataclass

from tui.fleet.api import HostState
from tui.sglang.model import Phase, Pool
from tui.view.draw import meter, units
from tui.view.draw.board import kind_ink
from tui.view.draw.row import Row, Span, cell, fit, join, width
from tui.view.glance import BYTES_PER_GB, Glance


@dataclass(frozen=True, slots=True)
class HostMemory:
    """What a host's memory has to bear, in decimal GB; ``planned`` is what the flags of this server ask for."""

    planned: float | None
    allocated: float
    held: float | None
    available: float | None
    total: float | None


def caches(glance: Glance, host: HostState | None, columns: int, rows: int) -> list[Row]:
    """At most ``rows`` rows. Sizes are as SGLang prints them: device GiB, host GB, per rank."""
    kinds = _kinds(glance)
    out: list[Row] = []
    if kinds:
        out.append(_heading(columns))
        out += [_kind_row(glance, kind, columns) for kind in kinds]
    else:
        out.append([Span(_no_pools(glance), "muted")])
    out += _memory(glance, host, columns)
    limits = _limits(glance)
    out += [fit(limits, columns)] if limits else []
    return out[:rows]


def _no_pools(glance: Glance) -> str:
    return "no cache allocated yet" if glance.phase is Phase.STARTING else "its log tells of no cache"


def _kinds(glance: Glance) -> list[str]:
    return list(dict.fromkeys(p.kind for p in glance.state.log.pools))


def _heading(columns: int) -> Row:
    return fit([Span(_line("", "device", "host", "tokens / slots", columns), "muted")], columns)


def _widths(columns: int) -> tuple[int, int, int]:
    """Columns of the device, host and count cells; the count goes first as it gets narrow."""
    device, host = (20, 22) if columns >= 72 else (16, 13) if columns >= 50 else (12, 12)
    return device, host, max(0, columns - 8 - device - host - 2)


def _line(kind: str, device: str, host: str, number: str, columns: int) -> str:
    wide_device, wide_host, rest = _widths(columns)
    return "".join(
        cell(text, size).text for text, size in ((kind, 8), (device, wide_device), (host, wide_host), (number, rest))
    )


def _kind_row(glance: Glance, kind: str, columns: int) -> Row:
    device = [p for p in glance.state.log.pools if p.kind == kind and p.place == "device"]
    host = [p for p in glance.state.log.pools if p.kind == kind and p.place == "host"]
    wide_device, wide_host, rest = _widths(columns)
    row: Row = [
        cell(kind, 8, f"{kind_ink(kind)} bold"),
        cell(" + ".join(_size(p, wide_device > 16) for p in device) or "—", wide_device),
        cell(" + ".join(_size(p, wide_host > 16) for p in host) or "—", wide_host),
        cell(_numbers(device, host), rest),
    ]
    return fit(row, columns)


def _size(pool: Pool, roomy: bool) -> str:
    ranks = f" ×{pool.ranks}" if pool.ranks > 1 else ""
    parts = " + ".join(f"{v:.2f}" for v in pool.parts.values())
    if len(pool.parts) > 1 and (roomy or len(parts) <= 11) and pool.place == "device":
        return f"{parts} {pool.unit}{ranks}"
    return f"{units.gigabytes(pool.gb, pool.unit)}{ranks}"


def _numbers(device: list[Pool], host: list[Pool]) -> str:
    """Tokens or slots on the device, then on the host, and the host pool's layout."""
    told = []
    for pools in (device, host):
        number = next((n for p in pools if (n := p.tokens if p.tokens is not None else p.slots) is not None), None)
        told.append(None if number is None else units.count(number))
    text = " / ".join(t for t in told if t is not None)
    layout = next((p.layout for p in host if p.layout), None)
    return "  ".join(part for part in (text, layout) if part)


def host_memory(glance: Glance, host: HostState | None) -> HostMemory:
    """Planned, allocated, held and free host memory of a server, from its flags, log, processes and host."""
    memory = glance.state.memory
    total = host.memory_total if host and host.memory_total else memory.total if memory else None
    free = host.memory_available if host and host.memory_available is not None else memory.available if memory else None
    return HostMemory(
        planned=glance.state.info.planned_host_gb,
        allocated=glance.host_gb,
        held=memory.pinned / BYTES_PER_GB if memory and glance.state.alive is not False else None,
        available=None if free is None else free / BYTES_PER_GB,
        total=None if total is None else total / BYTES_PER_GB,
    )


def _memory(glance: Glance, host: HostState | None, columns: int) -> list[Row]:
    """Host memory: planned, asked for by the log's pools, held by the processes; and what the host has free."""
    memory = host_memory(glance, host)
    parts: list[Row] = []
    if memory.planned:
        parts.append([Span("planned ", "muted"), Span(f"{memory.planned:.1f}", "text bold")])
    if memory.allocated:
        parts.append([Span("pools ", "muted"), Span(f"{memory.allocated:.1f}", "text bold")])
    if memory.held is not None:
        parts.append([Span("held ", "muted"), Span(f"{memory.held:.1f}", "text bold")])
    out: list[Row] = []
    if parts:
        out.append(fit([Span("host memory  ", "muted"), *join(parts), Span(" GB", "muted")], columns))
    if memory.total and memory.available is not None:
        out.append(_free(memory, columns))
    return out


def _free(memory: HostMemory, columns: int) -> Row:
    """The host: a bar of what is used, and what is free, in warning ink where the plan does not fit any more."""
    assert memory.total and memory.available is not None
    need = (memory.planned or 0.0) - (memory.held or 0.0)
    ink = "bad bold" if need > memory.available else "text bold"
    text: Row = [Span(f"{memory.available:.1f}", ink), Span(f" GB free of {memory.total:.0f}", "muted")]
    label: Row = [Span("host         ", "muted")]
    blocks = min(16, columns - width(label) - width(text) - 1)
    meters = [*meter.bar(1 - memory.available / memory.total, blocks, "accent"), Span(" ")] if blocks >= 4 else []
    return fit([*label, *meters, *text], columns)


def _limits(glance: Glance) -> Row:
    log = glance.state.log
    told = (
        ("max tokens", log.max_total_num_tokens),
        ("max running", log.max_running_requests),
        ("context", log.context_len),
    )
    return join([[Span(f"{name} ", "muted"), Span(units.count(n), "text bold")] for name, n in told if n is not None])
