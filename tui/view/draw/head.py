"""The header line (fleet totals), the hosts' troubles, and the footer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from rich.cells import cell_len

from tui.fleet.api import HostState
from tui.sglang import verdict
from tui.sglang.model import Phase
from tui.view.draw import units
from tui.view.draw.board import INKS, generated
from tui.view.draw.row import Row, Span, clip, clip_words, fit, join, spread, width
from tui.view.glance import GLYPHS, Glance


class Key(Protocol):
    """A key of the footer: what is pressed, what it is called, what it does, how soon it is dropped."""

    @property
    def id(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def foot(self) -> int: ...


_TITLE = 8  # columns of a title that gives way to the totals
_MARKS = [Span("read-only", "warn")]
_TELL = (Phase.READY, Phase.STARTING, Phase.FAILED, Phase.STOPPING, Phase.LOST, Phase.STOPPED, Phase.ABSENT)


def header(title: str, glances: Sequence[Glance], now: float, columns: int, *, read_only: bool = False) -> Row:
    """One row: title, servers per phase, tokens per second, hour and day, clock."""
    counts = Counter(g.phase for g in glances)
    number = f"{len(glances)} server{'s' if len(glances) != 1 else ''}" if glances else ""
    phases = [[Span(f"{GLYPHS[p]} {counts[p]} {p.value}", INKS[p])] for p in _TELL if counts[p]]
    few = [[Span(f"{GLYPHS[p]} {counts[p]}", INKS[p])] for p in _TELL[:-2] if counts[p]]
    short = [[Span(f"{GLYPHS[p]} {counts[p]}", INKS[p])] for p in _TELL if counts[p]]
    for count, name in (
        (sum(g.unreachable for g in glances), "unreachable"),
        (sum(g.stalled for g in glances), "stalled"),
    ):
        if count:
            phases.append([Span(f"⚠ {count} {name}", "warn")])
    if marked := sum(g.unreachable or g.stalled for g in glances):
        short.append([Span(f"⚠ {marked}", "warn")])
    clock: Row = [Span(_clock(glances, now), "muted"), Span(" ")]
    speed = generated(glances)
    totals = _totals(speed) if speed is not None else []
    sigma = [Span("Σ ", "muted"), Span(f"{units.rate(speed)} tok/s", "text bold")] if speed is not None else []
    room = columns - width(join([[Span(" hcs-tui")], _MARKS * read_only, *short])) - 2
    room = max(min(room, _TITLE), room - width(sigma) - 4)
    called: Row = [Span(clip(title, room), "text bold")] if title and room > 0 else []
    left = join([[Span(" hcs-tui", "accent bold")], called, _MARKS * read_only])
    choices = (
        (join([left, [Span(number, "muted")] if number else [], *phases]), join([totals, clock], "   ")),
        (join([left, *phases]), join([totals, clock], "   ")),
        (join([left, *short]), join([totals, clock], "   ")),
        (join([left, *short]), [*totals, Span(" ")] if totals else []),
        (join([left, *short]), join([sigma, clock], "   ")),
        (join([left, *short]), [*sigma, Span(" ")] if sigma else []),
        (join([left, *few]), [*sigma, Span(" ")] if sigma else []),
    )
    for one, other in choices:
        if width(one) + width(other) + 3 <= columns:
            return spread(one, other, columns)
    return fit(join([left, *short]), columns)


def _clock(glances: Sequence[Glance], now: float) -> str:
    """The time; of saved logs when they end, by their own clock, for no time goes on there."""
    if not glances or not all(verdict.saved(g.state) for g in glances):
        return time.strftime("%H:%M:%S", time.localtime(now))
    end = max((g.state.log.last_local for g in glances if g.state.log.last_local is not None), default=None)
    return "" if end is None else time.strftime("log of %d %b %H:%M:%S", time.gmtime(end))


def _totals(speed: float) -> Row:
    hour, day = units.short(speed * 3600), units.short(speed * 86400)
    return [
        Span("Σ ", "muted"),
        Span(f"{units.rate(speed)} tok/s", "text bold"),
        Span(f"  {_spaced(hour)}/h  {_spaced(day)}/day", "muted"),
    ]


def _spaced(number: str) -> str:
    return f"{number[:-1]} {number[-1]}" if number[-1].isalpha() else number


def troubles(hosts: Sequence[HostState], error: str, now: float, columns: int, most: int = 4) -> list[Row]:
    """A row per host that cannot be used (what happened, what to do, when it is tried again), and one for ourselves; at
    most ``most``, the last of which says how many more there are."""
    rows: list[Row] = []
    if error:
        rows.append(fit([Span(" ⚠ dashboard: ", "bad bold"), Span(error, "bad")], columns))
    for host in hosts:
        if host.phase not in ("unreachable", "refused"):
            continue
        retry: Row = []
        if host.retry_at and host.retry_at > now:
            retry = [Span(f"next try in {units.span(host.retry_at - now)} ", "muted")]
        message = " ".join(host.message.split())
        name = f" ⚠ {host.name}"
        message = message.removeprefix(host.name) if message.startswith(f"{host.name} ") else f": {message}"
        room = columns - cell_len(name)
        what: Row = [Span(name, "warn bold", "hosts"), Span(clip_words(message, room), "warn", "hosts")]
        rows.append(spread(what, retry, columns))
    if len(rows) <= most:
        return rows
    more = len(rows) - max(0, most - 1)
    return [*rows[: max(0, most - 1)], fit([Span(f" ⚠ and {more} hosts more: h shows all", "warn", "hosts")], columns)]


def footer(keys: Sequence[Key], columns: int) -> Row:
    """Keys and names in the given order; those with the largest ``foot`` go first as it gets narrow."""
    shown = sorted(keys, key=lambda key: key.foot)
    while shown and sum(cell_len(k.key) + cell_len(k.name) + 3 for k in shown) - 1 > columns:
        shown.pop()
    parts = [[Span(k.key, "key bold", k.id), Span(f" {k.name}", "muted", k.id)] for k in keys if k in shown]
    return [Span(" "), *join(parts)]
