"""The cache table: device and host pools per kind, per rank and in total, and planned against real host memory."""

from __future__ import annotations

from dataclasses import dataclass

from tui.fleet.api import HostState
from tui.sglang import verdict
from tui.sglang.model import Phase, Pool
from tui.view.draw import meter, units
from tui.view.draw.board import kind_ink
from tui.view.draw.row import Row, Span, cell, fit, flow, width
from tui.view.glance import BYTES_PER_GB, Glance

_KIND = 8  # columns of a kind's name
_LABEL = 8


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
    out += flow(_limits(glance), columns)
    return out[:rows]


def _no_pools(glance: Glance) -> str:
    return "no cache allocated yet" if glance.phase is Phase.STARTING else "its log tells of no cache"


def _kinds(glance: Glance) -> list[str]:
    return sorted(dict.fromkeys(p.kind for p in glance.state.log.pools), key=lambda kind: kind != "KV")


def _heading(columns: int) -> Row:
    device, host, rest = _widths(columns)
    cells = (("", _KIND), ("device", device), ("host", host), ("tokens / slots", rest))
    return fit([cell(text, size, "muted") for text, size in cells], columns)


def _widths(columns: int) -> tuple[int, int, int]:
    """Columns of the device, host and count cells; the count goes first as it gets narrow."""
    device, host = (22, 20) if columns >= 76 else (17, 12) if columns >= 46 else (13, 12)
    rest = columns - _KIND - device - host
    return device, host, rest if rest >= 14 else 0


def _kind_row(glance: Glance, kind: str, columns: int) -> Row:
    device = [p for p in glance.state.log.pools if p.kind == kind and p.place == "device"]
    host = [p for p in glance.state.log.pools if p.kind == kind and p.place == "host"]
    wide_device, wide_host, rest = _widths(columns)
    row: Row = [
        cell(kind, _KIND, f"{kind_ink(kind)} bold"),
        cell(" + ".join(_size(p, wide_device - 1) for p in device) or "—", wide_device),
        cell(" + ".join(_size(p, wide_host - 1) for p in host) or "—", wide_host),
        cell(_numbers(device, host, rest), rest),
    ]
    return fit(row, columns)


def _size(pool: Pool, room: int) -> str:
    """A pool's size per rank, by its parts where there is room."""
    ranks = f" ×{pool.ranks}" if pool.ranks > 1 else ""
    parts = " + ".join(f"{v:.2f}" for v in pool.parts.values())
    by_parts = f"{parts} {pool.unit}{ranks}"
    return (
        by_parts if len(pool.parts) > 1 and len(by_parts) <= room else f"{units.gigabytes(pool.gb, pool.unit)}{ranks}"
    )


def _numbers(device: list[Pool], host: list[Pool], room: int) -> str:
    """Tokens or slots on the device, then on the host, and the host pool's layout where there is room."""
    told = []
    for pools in (device, host):
        number = next((n for p in pools if (n := p.tokens if p.tokens is not None else p.slots) is not None), None)
        told.append(None if number is None else units.count(number))
    text = " / ".join(t for t in told if t is not None)
    layout = next((p.layout for p in host if p.layout), "")
    return f"{text}  {layout}".strip() if len(text) + len(layout) + 2 <= room else text


def host_memory(glance: Glance, host: HostState | None) -> HostMemory:
    """Planned, allocated, held and free host memory of a server, from its flags, log, processes and host."""
    memory = glance.state.memory
    total = host.memory_total if host and host.memory_total else memory.total if memory else None
    free = host.memory_available if host and host.memory_available is not None else memory.available if memory else None
    return HostMemory(
        planned=verdict.planned_host_gb(glance.state),
        allocated=glance.host_gb,
        held=memory.pinned / BYTES_PER_GB if memory and glance.state.alive is not False else None,
        available=None if free is None else free / BYTES_PER_GB,
        total=None if total is None else total / BYTES_PER_GB,
    )


def _memory(glance: Glance, host: HostState | None, columns: int) -> list[Row]:
    """Host memory: planned, asked for by the log's pools, held by the processes; and what the host has free."""
    memory = host_memory(glance, host)
    told = (("planned", memory.planned), ("pools", memory.allocated), ("held", memory.held))
    parts = [[Span(f"{name} ", "muted"), Span(f"{gb:.1f}", "text bold")] for name, gb in told if gb]
    if not parts and memory.available is None:
        return []
    if parts:
        parts = [[cell("host GB", _LABEL, "muted"), *parts[0]], *parts[1:]]
    out = flow(parts, columns, indent=_LABEL)
    if memory.total and memory.available is not None:
        out += _free(glance, memory, memory.available, memory.total, columns)
    return out


def _free(glance: Glance, memory: HostMemory, free: float, total: float, columns: int) -> list[Row]:
    """The host: a bar of what is used, what is free, and whether what is still planned fits into that."""
    needs = (memory.planned or 0.0) - (memory.held or 0.0)
    short = glance.phase is not Phase.READY and needs > free
    text: Row = [
        Span(f"{free:.1f}", "bad bold" if short else "text bold"),
        Span(f" of {total:.0f} GB free", "muted"),
    ]
    more: Row = [Span(f"{needs:.1f} more wanted", "bad")] if short else []
    label = cell(glance.state.info.host or "host", _LABEL - 1, "muted")
    blocks = min(12, columns - _LABEL - width(text) - 1 - (width(more) + 2 if more else 0))
    meters = [*meter.bar(1 - free / total, blocks, "accent"), Span(" ")] if blocks >= 4 else []
    return flow([[label, Span(" "), *meters, *text], more], columns, indent=_LABEL)


def _limits(glance: Glance) -> list[Row]:
    facts = verdict.model_facts(glance.state)
    told = (
        ("max tokens", facts.max_total_num_tokens),
        ("max running", facts.max_running_requests),
        ("context", facts.context_len),
    )
    return [[Span(f"{name} ", "muted"), Span(units.count(n), "text bold")] for name, n in told if n is not None]
