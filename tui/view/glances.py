"""Looking at many servers that all change all the time: what matters at once, the rest in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import fields
from operator import attrgetter

from tui.sglang.model import Phase
from tui.sglang.state import ServerState
from tui.view.glance import Glance, glance

STEADY = 1.0
"""Seconds that a look at a server that serves on stays good: its figures are told by the second."""

AT_ONCE = 16
"""Servers that are only due for another look, taken at once: 64 of them must not hold up a key."""

_FIGURES = {"log", "log_at", "seen_at", "memory", "memory_peak", "grew_at", "http"}
_REST = attrgetter(*(field.name for field in fields(ServerState) if field.name not in _FIGURES))
_TOLD = attrgetter("failure", "fatal", "unhealthy", "shutting_down", "ready", "stage", "pools", "warnings", "missing")
"""Of a state and of its log: what is no figure."""


class Glances:
    """What was seen of each server last. ``late``: of some there is something newer than what ``look`` gave."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[float, Glance]] = {}
        self.late = False

    def look(self, states: Iterable[ServerState], now: float, selected: str | None) -> tuple[Glance, ...]:
        """A glance at every server. ``now``: Unix seconds."""
        at, due, self.late = self._clock(), AT_ONCE, False
        seen: dict[str, tuple[float, Glance]] = {}
        for state in states:
            name = state.info.name
            looked, known = self._seen.get(name, (0.0, None))
            if known is None or not _goes_on(known, state, now) or (name == selected and known.state is not state):
                seen[name] = (at, glance(state, now))
            elif at - looked >= STEADY and due > 0:
                due -= 1
                seen[name] = (at, glance(state, now))
            else:
                seen[name] = (looked, known)
                self.late = self.late or known.state is not state or at - looked >= STEADY
        self._seen = seen
        return tuple(one for _, one in seen.values())


def _goes_on(known: Glance, state: ServerState, now: float) -> bool:
    """Whether nothing but figures can be different since ``known``."""
    before = known.state
    if state is before:
        return known.phase is Phase.READY or int(now) == int(known.now)
    return (
        known.phase is Phase.READY
        and not known.stalled
        and _REST(state) == _REST(before)
        and (state.log is before.log or _TOLD(state.log) == _TOLD(before.log))
    )
