"""Which servers the board lists, and in which order. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tui.sglang.model import Phase
from tui.view.glance import STAGE_NAMES, Glance

_FIRST = (
    Phase.FAILED,
    Phase.LOST,
    Phase.STARTING,
    Phase.STOPPING,
    Phase.READY,
    Phase.STOPPED,
    Phase.ABSENT,
)
"""What needs a look comes first."""


@dataclass(frozen=True, slots=True)
class Order:
    """``sort`` is a key of ``SORTS``; ``by_host``: the servers of a host stand together; ``only``: words that must all
    be found in a server's name, host, state, stage or model."""

    sort: str = "profile"
    by_host: bool = False
    only: str = ""

    @property
    def words(self) -> str:
        """How the board is ordered, where it is not the profile's way."""
        told = (SORTS[self.sort][0] if self.sort != "profile" else "", "by host" if self.by_host else "")
        return " · ".join(word for word in told if word)


def _attention(glance: Glance) -> tuple[bool, int]:
    marked = glance.unreachable or glance.stalled or bool(glance.warnings)
    return not marked and glance.phase is not Phase.FAILED, _FIRST.index(glance.phase)


def _rate(glance: Glance) -> float:
    rate = glance.generate if glance.phase is Phase.READY and not glance.stale else None
    return -rate if rate is not None and math.isfinite(rate) else 0.0


def _queue(glance: Glance) -> int:
    return -(glance.sample.queued or 0) if glance.sample else 1


def _usage(glance: Glance) -> float:
    """The fullest pool."""
    sample = glance.sample
    told = [u for u in (sample.kv, sample.mamba, sample.swa) if u is not None and math.isfinite(u)] if sample else []
    return -max(told) if told else 1.0


SORTS: dict[str, tuple[str, Callable[[Glance], object]]] = {
    "profile": ("", lambda glance: 0),
    "state": ("by state", _attention),
    "rate": ("by tok/s", _rate),
    "queue": ("by queue", _queue),
    "usage": ("by usage", _usage),
}
"""Sort → its words, and what it compares; servers that are alike keep the profile's order."""


def next_sort(sort: str) -> str:
    """The sort after ``sort``."""
    names = list(SORTS)
    return names[(names.index(sort) + 1) % len(names)]


def ordered(glances: Sequence[Glance], order: Order) -> tuple[Glance, ...]:
    """All servers in their order."""
    shown = sorted(glances, key=SORTS[order.sort][1])  # type: ignore[arg-type]  # each compares values of one kind
    if order.by_host:
        hosts = list(dict.fromkeys(g.state.info.host for g in glances))
        shown.sort(key=lambda g: hosts.index(g.state.info.host))
    return tuple(shown)


class Listing:
    """The servers that the board lists. Figures change all the time: places are given anew every ``EVERY`` seconds."""

    EVERY = 5.0

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._given: tuple[Order, int] | None = None

    def of(self, glances: Sequence[Glance], order: Order) -> tuple[Glance, ...]:
        """Those of ``glances`` that match, in their order."""
        if order.sort == "profile" and not order.by_host:
            listed = list(glances)
        else:
            now = glances[0].now if glances else 0.0
            given = (replace(order, only=""), int(now / self.EVERY))
            if given != self._given or any(g.name not in self._places for g in glances):
                self._given = given
                self._places = {g.name: n for n, g in enumerate(ordered(glances, order))}
            listed = sorted(glances, key=lambda g: self._places[g.name])
        words = order.only.casefold().split()
        return tuple(g for g in listed if matches(g, words)) if words else tuple(listed)


def matches(glance: Glance, words: Sequence[str]) -> bool:
    """Whether each of ``words`` (casefolded) is found in what the server is called or does."""
    info = glance.state.info
    stage = STAGE_NAMES[glance.stage] if glance.stage else ""
    told = (info.name, info.host or "", str(glance.phase.value), stage, info.model or glance.state.log.model or "")
    marks = (
        ("stalled" if glance.stalled else ""),
        ("unreachable" if glance.unreachable else ""),
        ("warning" if glance.warnings else ""),
    )
    text = "\n".join((*told, *marks)).casefold()
    return all(word in text for word in words)
