"""How many bytes of logs may be on their way: as many as the link carries in a moment, so that a kill, which queues
behind them, is answered soon on a slow link, and a fast one is used."""

from __future__ import annotations

from dataclasses import dataclass

LEAST, MOST = 64 << 10, 256 << 10  # bytes
MOMENT = 0.1  # seconds that what is on its way may take
_SMOOTH = 0.3  # weight of the newest measurement
_STEPS = 4  # returns per window


@dataclass(slots=True)
class Credit:
    """The sliding window of one channel. The rate is measured from return to return, so a consumer that pauses, or a
    log that is silent, shrinks the window, and a backfill grows it within a few returns."""

    window: int = LEAST
    rate: float = 0.0  # bytes per second
    _consumed: int = 0  # since the last return
    _granted: int = 0  # how much the agent may have on its way
    _since: float = 0.0

    def first(self, now: float) -> int:
        """What is granted at the start."""
        self._since, self._granted = now, self.window
        return self.window

    def consumed(self, size: int, now: float) -> int:
        """``size`` bytes arrived and were handled; the credit to return now, 0 for not yet."""
        self._consumed += size
        self._granted -= size
        if self._consumed < self.window // _STEPS:
            return 0
        measured = self._consumed / max(now - self._since, 1e-4)
        self.rate += (measured - self.rate) * _SMOOTH
        self.window = int(min(max(self.rate * MOMENT, LEAST), MOST))
        self._consumed, self._since = 0, now
        grant = max(0, self.window - self._granted)
        self._granted += grant
        return grant
