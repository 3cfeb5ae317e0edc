"""When there is nothing more to wait for: decided servers, settled fleets."""

from __future__ import annotations

from collections.abc import Iterable

from tui.sglang import verdict
from tui.sglang.model import Phase
from tui.sglang.state import ServerState

_DECIDED = frozenset({Phase.ABSENT, Phase.READY, Phase.STOPPED, Phase.FAILED, Phase.LOST})


def decided(state: ServerState) -> bool:
    """Whether the start-up has an outcome."""
    return verdict.phase(state) in _DECIDED


def settled(states: Iterable[ServerState], now: float) -> bool:
    """Every outcome is known, and each ready server shows a present throughput."""
    return all(decided(s) and (verdict.phase(s) is not Phase.READY or _works(s, now)) for s in states)


def _works(state: ServerState, now: float) -> bool:
    rates = verdict.throughput(state, now)
    return bool(rates.generate) and not rates.stale
