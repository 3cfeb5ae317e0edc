"""Whether a server that works is short of cache: said before requests fail. Pure functions of its samples."""

from __future__ import annotations

from collections.abc import Sequence

from tui.sglang import verdict
from tui.sglang.model import Sample
from tui.sglang.state import ServerState

FULL = 0.95  # of a pool: beyond it, requests wait for others to end
LOOKED_AT = 120.0  # seconds
ENOUGH = 3  # samples that must agree
WAITING = 8  # requests in the queue that are worth a word

_POOLS = (("kv", "KV cache"), ("mamba", "Mamba cache"), ("swa", "sliding-window cache"))


def warnings(state: ServerState, now: float) -> tuple[str, ...]:
    """What the log warns of, and the pressure that its figures tell, unless they are too old to be true at ``now``."""
    jam = () if verdict.is_stale(state, now) else pressure(state.log.series)
    return (*state.log.warnings, *jam)


def pressure(series: Sequence[Sample]) -> tuple[str, ...]:
    """Warnings at the end of a series: pools that stay full, and a queue that grows."""
    lately = [sample for sample in series if series[-1].at_local - sample.at_local <= LOOKED_AT]
    full = (_full(name, words, lately) for name, words in _POOLS)
    return tuple(said for said in (*full, _queue(lately)) if said)


def _full(name: str, words: str, lately: Sequence[Sample]) -> str:
    """A pool that has been full for as long as ``ENOUGH`` samples."""
    told = [(sample.at_local, value) for sample in lately if (value := getattr(sample, name)) is not None]
    since = next((i for i, (_, value) in reversed(list(enumerate(told))) if value < FULL), -1) + 1
    if len(told) - since < ENOUGH:
        return ""
    seconds = told[-1][0] - told[since][0]
    return (
        f"{words} {told[-1][1]:.0%} full, and at least {FULL:.0%} for {seconds:.0f} s: requests wait for others to end"
    )


def _queue(lately: Sequence[Sample]) -> str:
    """A queue that has grown all the time, and is long."""
    told = [(sample.at_local, sample.queued) for sample in lately if sample.queued is not None]
    begin = next((i for i in range(len(told) - 1, 0, -1) if told[i - 1][1] > told[i][1]), 0)
    grown = told[begin:]
    if len({count for _, count in grown}) < ENOUGH or grown[-1][1] < WAITING:
        return ""
    return f"queue grows: {grown[0][1]} → {grown[-1][1]} requests in {grown[-1][0] - grown[0][0]:.0f} s"
