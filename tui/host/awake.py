"""Whether this machine slept: its wall clock went on, the clock that counts running time did not."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

JUMP = 10.0  # seconds; below it, a clock was set right

wall = time.time
steady = time.monotonic


@dataclass(slots=True)
class SleepWatch:
    """Ask it now and then. A clock that was set forward looks like a sleep, which does no harm."""

    _apart: float = field(default_factory=lambda: wall() - steady())

    def slept(self) -> bool:
        """Whether the machine slept since the last question."""
        before, self._apart = self._apart, wall() - steady()
        return self._apart - before > JUMP
