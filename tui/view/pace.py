"""When the dashboard draws what came in by itself: often, but never so often that a key has to wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable

FAST, SLOW, STATES = 30, 10, 5
"""Frames a second of the log that is read just now, of other logs, and of what is known of servers."""

REST = 3.0
"""A frame is followed by a pause of so many times its cost: drawing takes a quarter of a core at most."""

AFTER_KEY = 0.06
"""Seconds after a key in which only what the key changes is drawn."""

AMID_KEYS = 0.5
"""Seconds after which a frame is drawn even if keys are hammered."""


class Pace:
    """``clock`` tells seconds, ``spent`` the CPU seconds of the thread that draws."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, spent: Callable[[], float] = time.thread_time
    ) -> None:
        self._clock, self._spent = clock, spent
        self._key = self._began = self._cost = -1e9
        self._last = dict.fromkeys((FAST, SLOW, STATES), -1e9)
        self._begun: float | None = None

    def key(self) -> None:
        """A key was pressed, or the mouse used."""
        self._key = self._clock()

    def due(self, fps: int) -> bool:
        """Whether the next frame of those that are drawn ``fps`` times a second may be drawn now; then it counts."""
        now = self._clock()
        since = now - self._last[fps]
        keys = now - self._key < AFTER_KEY and since < AMID_KEYS
        if keys or now - self._began < REST * self._cost or since < 0.9 / fps:
            return False
        self._last[fps] = now
        return True

    def begin(self) -> None:
        """A frame is being made."""
        self._began, self._begun = self._clock(), self._spent()

    def painted(self) -> None:
        """It is on the terminal."""
        if self._begun is not None:
            self._cost, self._begun = self._spent() - self._begun, None
