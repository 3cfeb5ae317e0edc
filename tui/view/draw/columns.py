"""The figures of ready servers, as columns: which ones fit, and how each is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tui.sglang.model import Phase, Sample
from tui.view.draw import meter, units
from tui.view.draw.row import Row, Span, cell, join, longest, width
from tui.view.glance import Glance, log_age

_SPARK_MIN, _SPARK_MAX = 7, 40


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of ready servers. ``keep``: the higher, the longer it stays as the terminal narrows."""

    key: str
    width: int
    keep: int
    draw: Callable[[Glance, int], Row | None]
    has: Callable[[Glance], bool]


def chosen(glances: Sequence[Glance], room: int, by_host: bool) -> list[Column]:
    """The columns that some ready server can fill and that fit, the least important dropped first."""
    ready = [g for g in glances if g.phase is Phase.READY]
    told = [c for c in _COLUMNS if any(c.has(g) for g in ready) and not (by_host and c.key == "host")]
    wanted = [_widened(c, ready) for c in told]
    while wanted and total(wanted) > room:
        least = min(wanted, key=lambda c: c.keep)
        wanted.remove(least)
        if least.key in _SMALLER and any(least.has(g) for g in ready):
            wanted.append(_SMALLER[least.key])
            wanted.sort(key=lambda c: _ORDER.index(c.key))
    spare = room - total(wanted)
    return [replace(c, width=min(_SPARK_MAX, c.width + spare)) if c.key.startswith("spark") else c for c in wanted]


def _widened(column: Column, ready: Sequence[Glance]) -> Column:
    """A column of counts with room for four digits, where some server has as many."""
    of = _COUNTS.get(column.key)
    many = of and any(g.sample and (of(g.sample) or 0) > 999 for g in ready)
    return replace(column, width=column.width + 1) if many else column


def figures(glance: Glance, shown: Sequence[Column]) -> Row:
    return join([[cell("", c.width)] if (part := c.draw(glance, c.width)) is None else part for c in shown])


def figures_that_fit(glance: Glance, shown: Sequence[Column], room: int) -> Row:
    """The first of the ``shown`` figures, as many as ``room`` holds whole; those that are not told are left out."""
    parts = [part for c in shown if (part := c.draw(glance, c.width)) is not None]
    while parts and width(join(parts)) > room:
        parts.pop()
    return join(parts)


def total(columns: Sequence[Column]) -> int:
    return sum(c.width for c in columns) + 2 * max(0, len(columns) - 1)


def _ink(glance: Glance) -> str:
    """Figures that are not the present ones are quiet."""
    return "muted" if glance.stale or glance.unreachable else "text"


def _rate(glance: Glance, columns: int) -> Row | None:
    if glance.sample is None or (glance.generate is None and glance.sample.running):
        return [cell("—", columns, "muted", right=True)]  # not told yet
    if glance.generate is None or glance.stale:
        return [cell("idle", columns, "muted", right=True)]
    ink = "muted" if glance.unreachable else "text bold"
    return [cell(units.rate(glance.generate), columns - 6, ink, right=True), Span(" tok/s", "muted")]


def _spark(glance: Glance, columns: int) -> Row | None:
    return meter.spark(rates(glance, columns), columns, "muted" if _ink(glance) == "muted" else "ok")


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
            cell(longest((str(value), units.short(value)), digits), digits, _ink(glance), right=True),
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
        high = "warn bold" if value >= 0.95 and _ink(glance) == "text" else _ink(glance)
        return [Span(f"{label} ", "muted"), *meters, cell(units.percent(value), 4, high, right=True)]

    return draw


def _accept(glance: Glance, columns: int) -> Row | None:
    value = glance.sample.accept_len if glance.sample else None
    return (
        None
        if value is None
        else [
            Span("acc ", "muted"),
            cell(longest((f"{value:.2f}", f"{value:.1f}", f"{value:.0f}"), columns - 4), columns - 4, right=True),
        ]
    )


def _uptime(glance: Glance, columns: int) -> Row | None:
    up = glance.uptime
    if up is None:
        return None
    return [Span("up ", "muted"), cell(units.brief(up), columns - 3)]


def _age(glance: Glance, columns: int) -> Row | None:
    """How long ago the log grew."""
    age = log_age(glance)
    return None if age is None else [Span("log ", "muted"), cell(units.brief(age), columns - 4, "muted")]


def _host(glance: Glance, columns: int) -> Row | None:
    info = glance.state.info
    return [cell(f"{info.host}:{info.port}" if info.port else str(info.host), columns, "muted")] if info.host else None


def _pools(glance: Glance, columns: int) -> Row | None:
    gb, room = glance.host_gb, columns - 7
    if not gb:
        return None
    return [Span("pinned ", "muted"), cell(longest(units.sizes(gb), room), room, right=True)]


def _of(field: str) -> Callable[[Glance], bool]:
    return lambda glance: glance.sample is not None and getattr(glance.sample, field) is not None


_COUNTS: dict[str, Callable[[Sample], int | None]] = {"run": lambda s: s.running, "queue": lambda s: s.queued}
_COLUMNS = (
    Column("rate", 12, 99, _rate, lambda g: True),
    Column("spark", 20, 30, _spark, lambda g: bool(g.state.log.series)),
    Column("run", 7, 90, _number("run", lambda s: s.running), _of("running")),
    Column("queue", 9, 85, _number("queue", lambda s: s.queued), _of("queued")),
    Column("kv", 13, 60, _usage("KV", "kv", lambda s: s.kv, 5), _of("kv")),
    Column("mamba", 16, 58, _usage("Mamba", "mamba", lambda s: s.mamba, 5), _of("mamba")),
    Column("swa", 14, 59, _usage("SWA", "accent", lambda s: s.swa, 5), _of("swa")),
    Column("accept", 8, 50, _accept, _of("accept_len")),
    Column("uptime", 8, 45, _uptime, lambda g: g.uptime is not None),
    Column("age", 9, 36, _age, lambda g: log_age(g) is not None),
    Column("pools", 16, 40, _pools, lambda g: g.host_gb > 0),
    Column("host", 20, 35, _host, lambda g: g.state.info.host is not None),
)
_SMALLER = {
    "spark": Column("spark-small", _SPARK_MIN, 55, _spark, lambda g: bool(g.state.log.series)),
    "kv": Column("kv-small", 7, 80, _usage("KV", "kv", lambda s: s.kv, 0), _of("kv")),
    "swa": Column("swa-small", 8, 76, _usage("SWA", "accent", lambda s: s.swa, 0), _of("swa")),
    "mamba": Column("mamba-small", 10, 75, _usage("Mamba", "mamba", lambda s: s.mamba, 0), _of("mamba")),
}
_ORDER = (
    "rate",
    "spark",
    "spark-small",
    "run",
    "queue",
    "kv",
    "kv-small",
    "mamba",
    "mamba-small",
    "swa",
    "swa-small",
    "accept",
    "uptime",
    "age",
    "pools",
    "host",
)
