"""The cache table: device and host pools per kind, per rank and in total, and planned against real host memory."""

from __future__ import annotations

import re

from tui.fleet.api import HostState
from tui.sglang import memory, verdict
from tui.sglang.limits import running_limit
from tui.sglang.model import FailureKind, Phase, Pool
from tui.view.draw import hostmemory, meter, units
from tui.view.draw.row import Row, Span, cell, fit, flow, longest, pad, plain
from tui.view.draw.starting import kind_ink
from tui.view.glance import Glance, pinning

Planned = tuple[str, float | None, int, str]
"""Kind, decimal GB per rank, ranks, and what has become of it: a host pool that the log does not tell of."""

_REQUEST = re.compile(r"Requesting (\d+(?:\.\d+)?) GB")
_KIND = 8  # columns of a kind's name
_PLACE = 7
_STATE = 11  # columns that say what has become of a pool
_SAID = {
    "planned": (("planned", "plan", "○"), "muted"),
    "growing": (("being allocated", "being taken", "growing", "◐"), "start"),
    "allocated": (("✔ allocated", "✔ taken", "taken", "✔"), "ok"),
    "on device": (("allocated", "taken", "✔"), "ok"),
    "refused": (("✖ refused", "refused", "✖"), "bad bold"),
    "freed": (("freed", "◌"), "muted"),
}
"""What has become of a pool: from the longest words to a sign, and the ink."""
_KIND_SIZES = ((76, (18, 14, 14)), (52, (16, 11, 10)), (0, (10, 10, 30)))
"""From so many columns on: those of a kind's size on the device and on the host, and of its state."""


def caches(glance: Glance, host: HostState | None, columns: int, rows: int) -> list[Row]:
    """At most ``rows`` rows. Sizes are as SGLang prints them: device GiB, host GB, per rank.

    Where all does not fit: a row per kind instead of one per pool, and host memory in words instead of bars.
    """
    for table, told in (
        (_pools(glance, columns), hostmemory.bars(glance, host, columns)),
        (_pools(glance, columns), hostmemory.words(glance, host, columns)),
        (_kinds(glance, columns), hostmemory.words(glance, host, columns)),
    ):
        limits = flow([*_limits(glance, columns), *_layouts(glance, table)], columns)
        if len(table) + len(told) + len(limits) <= rows:
            return [*table, *told, *limits]
    table = _kinds(glance, columns)[1:] or table  # without its heading
    return [*table, *told, *limits][:rows]


def _layouts(glance: Glance, table: list[Row]) -> list[Row]:
    """The layouts of pools that have no room for them in the ``table``."""
    told = {pool.kind: pool.layout for pool in glance.state.log.pools if pool.layout}
    shown = plain(table)
    if not told or all(layout in shown for layout in told.values()):
        return []
    words = [f"{kind} {layout}" for kind, layout in told.items()]
    same = len(set(told.values())) == 1
    return [[Span("layout ", "muted"), Span(next(iter(told.values())) if same else ", ".join(words))]]


def _no_pools(glance: Glance) -> list[Row]:
    yet = glance.phase in (Phase.STARTING, Phase.ABSENT)
    return [[Span("no cache allocated yet" if yet else "its log tells of no cache", "muted")]]


# a row per pool


def _pools(glance: Glance, columns: int) -> list[Row]:
    """Each pool: what it takes per rank and in all, what it holds, and how far it has come or is in use."""
    pools = _by_kind(glance)
    planned = _planned(glance)
    if not pools and not planned:
        return _no_pools(glance)
    sizes = _sizes(columns, any(p.ranks > 1 for p in pools))
    heads = ("", "", "per rank", "in all", "holds", "state")
    out = [fit([cell(text, size, "muted") for text, size in zip(heads, sizes, strict=True)], columns)]
    before = ""
    for pool in pools:
        out.append(_pool_row(glance, pool, sizes, before, columns))
        before = pool.kind
        following = next((p.kind for p in pools[pools.index(pool) + 1 :]), None)
        if following != pool.kind:  # its host pools to come, below it
            out += [_planned_row(one, sizes, pool.kind, columns) for one in planned if one[0] == pool.kind]
    had = {pool.kind for pool in pools}
    return [*out, *(_planned_row(one, sizes, "", columns) for one in planned if one[0] not in had)]


def _sizes(columns: int, ranks: bool) -> tuple[int, ...]:
    """Columns of kind, place, size per rank, in all, count, state: what matters less goes first."""
    whole = 12 if ranks else 0
    choices = ((19, whole, 21), (17, whole, 10), (15, whole, 0), (15, 0, 0), (11, 0, 0))
    state = [columns - _KIND - _PLACE - sum(choice) for choice in choices]
    best = next((n for n, left in enumerate(state) if left >= _STATE), len(choices) - 1)
    return (_KIND, _PLACE, *choices[best], max(0, state[best]))


def _pool_row(glance: Glance, pool: Pool, sizes: tuple[int, ...], before: str, columns: int) -> Row:
    kind, place, each, whole, count, state = sizes
    ink = kind_ink(pool.kind)
    total = f"{units.gigabytes(pool.gb * pool.ranks, pool.unit)}" if pool.ranks > 1 else ""
    return fit(
        [
            cell("" if pool.kind == before else pool.kind, kind, f"{ink} bold"),
            cell(pool.place, place, "muted"),
            cell(_size(pool, each - 1), each),
            cell(total, whole),
            cell(_count(pool, count - 1), count, "muted"),
            *_state(glance, pool, state),
        ],
        columns,
    )


def _planned_row(one: Planned, sizes: tuple[int, ...], before: str, columns: int) -> Row:
    """A host pool that the flags ask for and that the log does not tell of yet."""
    kind, gb, ranks, state = one
    size = _planned_size(one, sizes[2] - 1)
    whole = f"{units.gigabytes(gb * ranks)}" if gb is not None and ranks > 1 else ""
    cells = (
        cell("" if kind == before else clip_kind(kind), sizes[0], f"{kind_ink(kind)} bold"),
        cell("host", sizes[1], "muted"),
    )
    rest = (cell(size, sizes[2], "muted"), cell(whole, sizes[3], "muted"), cell("", sizes[4]))
    return fit([*cells, *rest, _say(state, sizes[5])], columns)


def _say(what: str, room: int) -> Span:
    """What has become of a pool, in the longest words that fit."""
    words, ink = _SAID[what]
    return Span(longest(words, room), ink)


def _planned_size(one: Planned, room: int) -> str:
    _, gb, ranks, _ = one
    if gb is None:
        return longest(("by ratio", "ratio"), room)
    by = f" ×{ranks}" if ranks > 1 else ""
    return longest((f"{units.gigabytes(gb)}{by}", f"{gb:.0f} GB{by}", f"{gb:.0f}{by}", f"{gb:.0f} GB"), room)


def clip_kind(kind: str) -> str:
    """A kind's name in the columns that it has: ``KV + Mamba`` as ``KV+Mamba``."""
    return kind.replace(" ", "") if len(kind) >= _KIND else kind


def _planned(glance: Glance) -> list[Planned]:
    """The host pools that the log does not tell of: those to come while the server starts, and the one that was refused
    before its line was printed."""
    refused = _refused(glance)
    if glance.phase is not Phase.STARTING and not refused:
        return []
    hybrid = True if any(p.kind == "Mamba" for p in glance.state.log.pools) else None
    plan = memory.plan(glance.state.log.args, verdict.version(glance.state), hybrid)
    had = {pool.kind for pool in glance.host_pools}
    rest = [pool for pool in plan.pools if plan.enabled and pool.kind not in had and not (had and "+" in pool.kind)]
    if not refused:
        return [(pool.kind, pool.gb, plan.ranks, "planned") for pool in rest]
    if any(_is_refused(glance, pool) for pool in glance.host_pools):
        return []
    asked = _asked(glance)
    sizes = ((pool, pool.gb if asked is None or "+" in pool.kind else asked) for pool in rest[:1])
    return [(pool.kind, gb, plan.ranks, "refused") for pool, gb in sizes]


def _refused(glance: Glance) -> bool:
    """Whether it failed because a host pool did not fit."""
    return glance.failure is not None and glance.failure.kind is FailureKind.OOM_HOST_HICACHE


def _is_refused(glance: Glance, pool: Pool) -> bool:
    """Whether the failure's line asks for what this pool, the last one told, takes."""
    asked = _asked(glance) if _refused(glance) and pool is glance.host_pools[-1] else None
    return asked is not None and abs(asked - pool.gb) < 0.01


def _asked(glance: Glance) -> float | None:
    """The decimal GB that the failure's line asks for."""
    asked = _REQUEST.search(glance.failure.line) if glance.failure else None
    return float(asked[1]) if asked else None


def _state(glance: Glance, pool: Pool, room: int) -> Row:
    """What has become of a pool: planned, growing, allocated, in use, refused, freed."""
    if glance.state.alive is False or glance.phase in (Phase.FAILED, Phase.STOPPED, Phase.LOST):
        if pool.place == "host" and _is_refused(glance, pool):
            return [_say("refused", room)]
        return [_say("freed", room)]
    if pool.place == "host":
        return _growing(glance, pool, room)
    usage = _usage(glance, pool)
    if usage is None:
        return [_say("on device", room)]
    percent = longest((f"{units.percent(usage)} used", units.percent(usage)), room)
    blocks = min(8, room - len(percent) - 1)
    bar = [*meter.bar(usage, blocks, kind_ink(pool.kind)), Span(" ")] if blocks >= 3 else []
    return [*bar, Span(percent, "muted" if glance.stale or glance.unreachable else "text")]


def _growing(glance: Glance, pool: Pool, room: int) -> Row:
    """A host pool: allocated, or how much of it is."""
    here = next((p for p in pinning(glance) if p.pool is pool), None)
    if here is None or here.gb is None:
        return [_say("growing", room)]
    if here.gb >= here.of * 0.995:
        return [_say("allocated", room)]
    whole = f"{here.gb:.0f} of {here.of:.0f} GB"
    text = longest((whole, f"{here.gb:.0f}/{here.of:.0f} GB", units.percent(here.gb / here.of)), room)
    blocks = min(8, room - len(text) - 1)
    if blocks < 3:
        return [Span(text, "start")]
    return [*meter.bar(here.gb / here.of, blocks, "start"), Span(f" {text}", "start")]


def _usage(glance: Glance, pool: Pool) -> float | None:
    sample = glance.sample
    if sample is None or glance.phase is not Phase.READY:
        return None
    return {"KV": sample.kv, "Mamba": sample.mamba, "SWA": sample.swa}.get(pool.kind)


def _by_kind(glance: Glance) -> list[Pool]:
    """KV first; of each kind device pools before host pools."""
    names = list(dict.fromkeys(p.kind for p in glance.state.log.pools))
    names.sort(key=lambda kind: kind != "KV")
    return sorted(glance.state.log.pools, key=lambda p: (names.index(p.kind), p.place != "device"))


def _size(pool: Pool, room: int) -> str:
    """A pool's size per rank, by its parts where there is room."""
    ranks = f" ×{pool.ranks}" if pool.ranks > 1 else ""
    parts = " + ".join(f"{v:.2f}" for v in pool.parts.values())
    by_parts = [f"{parts} {pool.unit}{ranks}"] if len(pool.parts) > 1 else []
    whole, rounded = units.gigabytes(pool.gb, pool.unit), f"{pool.gb:.0f} {pool.unit}"
    return longest((*by_parts, f"{whole}{ranks}", f"{rounded}{ranks}", f"{pool.gb:.0f}{ranks}", whole, rounded), room)


def _count(pool: Pool, room: int) -> str:
    """Tokens or slots, and the layout where there is room."""
    number = pool.tokens if pool.tokens is not None else pool.slots
    if number is None:
        return (pool.layout or "") if len(pool.layout or "") <= room else ""
    named = f"{units.count(number)} {'tokens' if pool.tokens is not None else 'slots'}"
    for text in (f"{named} {pool.layout}" if pool.layout else named, named, units.count(number), units.short(number)):
        if len(text) <= room:
            return text
    return ""


# a row per kind


def _kinds(glance: Glance, columns: int) -> list[Row]:
    """Device beside host, where there is no room for a row each."""
    pools = _by_kind(glance)
    if not pools:
        return _pools(glance, columns)
    planned = {one[0]: one for one in _planned(glance)}
    *widths, most = next(sizes for least, sizes in _KIND_SIZES if columns >= least)
    rest = columns - _KIND - sum(widths) - most
    state = most + min(0, rest)
    heads = zip(("", "device", "host", "state"), (_KIND, *widths, state), strict=True)
    heading = [cell(text, size, "muted") for text, size in heads]
    out = [fit([*heading, Span("tokens / slots", "muted")] if rest >= 14 else heading, columns)]
    for kind in dict.fromkeys([*(pool.kind for pool in pools), *planned]):
        device, host = ([p for p in pools if (p.kind, p.place) == (kind, place)] for place in ("device", "host"))
        row = [cell(clip_kind(kind), _KIND, f"{kind_ink(kind)} bold")]
        for of, size in zip((device, host), widths, strict=True):
            row.append(cell(" + ".join(_size(p, size - 1) for p in of) or "—", size))
        if kind in planned:
            row[-1] = cell(_planned_size(planned[kind], widths[1] - 1), widths[1], "muted")
        row += pad(_of_kind(glance, device, host, planned.get(kind), state - 1), state)
        out.append(fit([*row, Span(_numbers(device, host, rest), "muted")] if rest >= 9 else row, columns))
    return out


def _of_kind(glance: Glance, device: list[Pool], host: list[Pool], planned: Planned | None, room: int) -> Row:
    """What is told of both pools of a kind in one place: how much is in use, else what has become of the host's."""
    if planned:
        return [_say(planned[3], room)]
    in_use = [pool for pool in device if _usage(glance, pool) is not None]
    return _state(glance, (in_use or host[-1:] or device)[0], room)


def _numbers(device: list[Pool], host: list[Pool], room: int) -> str:
    """Tokens or slots on the device, then on the host."""
    told = []
    for pools in (device, host):
        told += [n for p in pools if (n := p.tokens if p.tokens is not None else p.slots) is not None][:1]
    return longest((" / ".join(map(units.count, told)), " / ".join(map(units.short, told))), room)


def _limits(glance: Glance, columns: int) -> list[Row]:
    """What bounds the requests and tokens, and the first of them why, where there is room."""
    facts = verdict.model_facts(glance.state)
    why = running_limit(glance.state)
    told = (
        ("max running", facts.max_running_requests, f" ({why})" if why else ""),
        ("max tokens", facts.max_total_num_tokens, ""),
        ("context", facts.context_len, ""),
    )
    return [
        [Span(f"{name} ", "muted"), Span(number, "text bold"), Span(longest((more,), room - len(number)), "muted")]
        for name, n, more in told
        if n is not None and (number := units.count(n)) and (room := columns - len(name) - 1)
    ]
