"""Whether a server that works is short of cache: said before requests fail. Pure functions of its samples."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter

from tui.sglang import verdict
from tui.sglang.model import Sample
from tui.sglang.state import ServerState

FULL = 0.95  # of a pool: beyond it, requests wait for others to end
LOOKED_AT = 120.0  # seconds
ENOUGH = 3  # samples that must agree
WAITING = 8  # requests in the queue that are worth a word

_AT = attrgetter("at_local")
_POOLS = (("kv", "KV cache"), ("mamba", "Mamba cache"), ("swa", "sliding-window cache"))


def warnings(state: ServerState, now: float) -> tuple[str, ...]:
    """What the log warns of, and the pressure that its figures tell, unless they are too old to be true at ``now``."""
    jam = () if verdict.is_stale(state, now) else pressure(state.log.series)
    return (*state.log.warnings, *jam)


def pressure(series: Sequence[Sample]) -> tuple[str, ...]:
    """Warnings at the end of a series: pools that stay full, and a queue that grows."""
    lately = series[bisect_left(series, series[-1].at_local - LOOKED_AT, key=_AT) :] if series else ()
    full = (_full(name, words, lately) for name, words in _POOLS)
    return tuple(said for said in (*full, _queue(lately)) if said)


def _full(name: str, words: str, lately: Sequence[Sample]) -> str:
    """A pool that has been full for as long as ``ENOUGH`` samples."""
    full: list[tuple[float, float]] = []  # newest first
    for sample in reversed(lately):
        value: float | None = getattr(sample, name)
        if value is not None:
            if value < FULL:
                break
            full.append((sample.at_local, value))
    if len(full) < ENOUGH:
        return ""
    seconds = full[0][0] - full[-1][0]
    return (
        f"{words} {full[0][1]:.0%} full, and at least {FULL:.0%} for {seconds:.0f} s: requests wait for others to end"
    )


def _queue(lately: Sequence[Sample]) -> str:
    """A queue that has grown all the time, and is long."""
    grown: list[tuple[float, int]] = []  # newest first
    for sample in reversed(lately):
        if sample.queued is not None:
            if grown and sample.queued > grown[-1][1]:
                break
            grown.append((sample.at_local, sample.queued))
    if len({count for _, count in grown}) < ENOUGH or grown[0][1] < WAITING:
        return ""
    return f"queue grows: {grown[-1][1]} → {grown[0][1]} requests in {grown[0][0] - grown[-1][0]:.0f} s"
