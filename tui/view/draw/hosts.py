"""The hosts: connection, memory, disks, and GPUs with who holds their memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from tui.fleet.api import Disk, Gpu, Holder, HostState, Machine
from tui.view.draw import meter, units
from tui.view.draw.board import INKS
from tui.view.draw.row import Row, Span, cell, clip_middle, clip_path, clip_words, fit, flow, join, width, wrap
from tui.view.glance import GLYPHS, Glance

_NAME = 9  # columns of what a row is about
_BAR, _BAR_MIN = 24, 6
_MORE = 16  # columns of a remark behind the numbers, for which a bar gives way
_USED, _OF, _FREE = 7, 15, 12  # columns of "123.4", of " of 123 GB used", and of "123.4 free ⚠"
_NUMBERS = _USED + _OF + 2 + _FREE
_HOLDER = 40  # columns of a server's name beside a GPU
_LOW = 0.05  # of a disk or memory that is left: then it is warned of
_GB = 1e9
_PHASES = {
    "connected": ("●", "ok"),
    "connecting": ("◐", "start"),
    "unreachable": ("⚠", "warn"),
    "refused": ("✖", "bad"),
    "idle": ("○", "muted"),
}


def hosts(states: Sequence[HostState], glances: Sequence[Glance], now: float, columns: int) -> list[Row]:
    """All rows, a host below the other."""
    if not states:
        return [[Span("no hosts: these are saved logs", "muted")]]
    out: list[Row] = []
    for state in states:
        mine = [g for g in glances if g.state.info.host == state.name]
        out += [*([[]] if out else []), *_host(state, mine, now, columns)]
    return [fit(row, columns) for row in out]


def _host(state: HostState, glances: Sequence[Glance], now: float, columns: int) -> list[Row]:
    glyph, ink = _PHASES.get(state.phase, ("?", "muted"))
    since = f" for {units.span(now - state.since)}" if state.since is not None else ""
    head: Row = [
        Span(f"{glyph} ", f"{ink} bold"),
        Span(clip_middle(state.name, columns - cell_len(f"{state.phase}{since}") - 4), "accent bold"),
        Span(f"  {state.phase}{since}", ink),
    ]
    cpus = f"  {state.cpus} CPUs" if state.cpus else ""
    address = f"  {state.address}" if state.address != state.name else ""
    out = [_ruled(head, f"{address}{cpus}", columns)]
    if state.phase in ("unreachable", "refused") and state.message:
        out += [[Span("  "), Span(line, "warn")] for line in wrap(" ".join(state.message.split()), columns - 2)]
        if state.retry_at and state.retry_at > now:
            out.append([Span(f"  next try in {units.span(state.retry_at - now)}", "muted")])
    if state.machine:
        out += _machine(state.machine, state, glances, now, columns)
    elif state.phase == "connected":
        out.append([Span("  not looked at yet", "muted")])
    return [*out, *_servers(glances, columns)]


def _ruled(head: Row, more: str, columns: int) -> Row:
    row = [*head, Span(clip_words(more, max(0, columns - width(head))), "muted")]
    left = columns - width(row) - 1
    return fit([*row, Span(f" {'─' * left}", "line")] if left > 0 else row, columns)


def _machine(machine: Machine, state: HostState, glances: Sequence[Glance], now: float, columns: int) -> list[Row]:
    """Memory, disks, GPUs. What is not the present is said to be old."""
    out = _memory(machine, columns)
    out += [_disk(disk, columns) for disk in machine.disks]
    runs = {g.state.run.run: g.name for g in glances if g.state.run}
    for gpu in machine.gpus:
        out += _gpu(gpu, runs, glances, columns)
    if machine.trouble:
        out.append(fit([cell("  GPUs", _NAME, "muted"), Span(f"⚠ {machine.trouble}", "warn")], columns))
    elif not machine.gpus:
        out.append([cell("  GPUs", _NAME, "muted"), Span("none that nvidia-smi tells of", "muted")])
    if state.phase != "connected" and state.seen_at is not None:
        out.append([Span(f"  as seen {units.span(now - state.seen_at)} ago", "warn")])
    return out


def _memory(machine: Machine, columns: int) -> list[Row]:
    out = [_filled("memory", machine.available, machine.total, "", columns)]
    if machine.limit is not None and machine.left is not None:
        out.append(_filled("cgroup", machine.left, machine.limit, "the limit of the session's cgroup", columns))
    return out


def _disk(disk: Disk, columns: int) -> Row:
    return _filled(disk.what, disk.free, disk.total, disk.path, columns)


def _blocks(columns: int) -> int:
    """Columns of each bar."""
    room = columns - _NAME - _NUMBERS
    return min(_BAR, room - _MORE if room - _MORE >= 2 * _BAR_MIN else room)


def _filled(what: str, free: float, total: float, more: str, columns: int) -> Row:
    """A bar of what is taken, what is free of what, and a remark as far as there is room."""
    low = total > 0 and free < _LOW * total
    blocks = _blocks(columns)
    taken = 1 - free / total if total else 0.0
    bar = meter.bar(taken, blocks, "warn" if low else "accent") if blocks >= _BAR_MIN else []
    used, of, left = _sizes(free, total)
    numbers: Row = [
        Span(used.rjust(_USED) if bar else used, "text bold"),
        cell(f" of {of} used,", _OF + 2, "muted") if bar else Span(f" of {of} used, ", "muted"),
        cell(f"{left} free{' ⚠' if low else ''}", _FREE, "warn bold" if low else "text"),
    ]
    row = [cell(f"  {what}", _NAME, "muted"), *bar, *numbers]
    room = columns - width(row) - 2
    told = clip_path(more, room) if more.startswith("/") else clip_words(more, room)
    return fit([*row, Span(f"  {told}", "muted")] if more and room >= 8 else row, columns)


def _sizes(free: float, total: float) -> tuple[str, str, str]:
    """What is taken, of what, and what is free; all in the unit of the largest."""
    unit, size = ("TB", 1e12) if total >= 9.995e11 else ("GB", _GB)
    digits = 2 if unit == "TB" else 1
    taken = max(0.0, total - free)
    whole = f"{total / size:.{1 if 9.95e11 <= total < 9.995e13 else 0}f} {unit}"
    return f"{taken / size:.{digits}f}", whole, f"{free / size:.{digits}f}"


def _gpu(gpu: Gpu, runs: Mapping[str, str], glances: Sequence[Glance], columns: int) -> list[Row]:
    """One row of figures; who holds the memory beside it where there is room, else below it."""
    used, total = gpu.used, gpu.total
    blocks = _blocks(columns)
    known = used is not None and total
    bar = meter.bar((used or 0) / (total or 1), blocks, "kv") if known and blocks >= _BAR_MIN else []
    numbers = f"{(used or 0) / _GB:.1f}".rjust(_USED if bar else 0) if known else "memory untold"
    row: Row = [cell(f"  GPU {gpu.index}", _NAME, "muted"), *bar, Span(numbers, "text bold")]
    row.append(cell(f" of {(total or 0) / _GB:.0f} GB used" if known else "", _OF, "muted"))
    figures = join([
        [Span("busy ", "muted"), cell(units.percent(gpu.busy), 4, right=True)] if gpu.busy is not None else [],
        [cell(_power(gpu), 12, right=True)] if gpu.power is not None else [],
        [cell(f"{gpu.celsius:.0f} °C", 6, right=True)] if gpu.celsius is not None else [],
    ])  # fmt: skip
    holders = _holders(gpu.holders, runs, glances, gpu.index)
    name: Row = [Span(gpu.name, "muted")]
    choices: tuple[list[Row], ...] = (
        [join([row, figures, holders, name])],
        [join([row, figures, holders])],
        [join([row, figures]), holders],
        [row, join([figures, holders])],
        [row, figures, holders],
    )
    fits = (c for c in choices if width(c[0]) <= columns and all(width(line) <= columns - _NAME for line in c[1:]))
    first, *more = next(fits, choices[-1])
    return [fit(first, columns), *(fit([cell("", _NAME), *line], columns) for line in more if line)]


def _power(gpu: Gpu) -> str:
    return f"{gpu.power:.0f} W" if gpu.power_limit is None else f"{gpu.power:.0f} of {gpu.power_limit:.0f} W"


def _holders(holders: Sequence[Holder], runs: Mapping[str, str], glances: Sequence[Glance], index: int) -> Row:
    """Our servers by name, foreign processes by owner, name and pid."""
    ours = list(dict.fromkeys(runs.get(h.run, "another profile's run") for h in holders if h.run))
    ours = [clip_middle(name, _HOLDER) for name in ours]
    parts: list[Row] = [[Span(", ".join(ours), "ok")]] if ours else []
    for holder in (h for h in holders if not h.run):
        who = f"{holder.owner or 'unseen'}: {holder.name or 'a process'} (pid {holder.pid})"
        size = f" {holder.used / _GB:.1f} GB" if holder.used else ""
        parts.append([Span(f"⚠ {who}{size}", "warn")])
    if not parts:
        wanted = [g.name for g in glances if index in g.state.info.gpus]
        return [Span(f"free; {', '.join(wanted)} wants it", "muted")] if wanted else [Span("free", "muted")]
    return join(parts)


def _servers(glances: Sequence[Glance], columns: int) -> list[Row]:
    """The servers of a host."""
    room = columns - _NAME - 3
    parts: list[Row] = [
        [Span(f"{GLYPHS[g.phase]} {clip_middle(g.name, room)}", INKS[g.phase], f"select:{g.name}")] for g in glances
    ]
    if not parts:
        return []
    first, *more = flow(parts, columns - _NAME - 1)
    return [[cell("  servers", _NAME + 1, "muted"), *first], *([cell("", _NAME + 1), *row] for row in more)]
