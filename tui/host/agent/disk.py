"""Room for a log: what its file system has left, how fast the log grows, and when that deserves a word."""

from __future__ import annotations

import os
from collections import deque

PERIOD = 10.0  # seconds between two looks
MEMORY = 600.0  # seconds over which growth is measured
ENOUGH = 60.0  # seconds of growth before it is believed
LOW_SHARE = 0.05
LOW_BYTES = 2 * 10**9
PLENTY_BYTES = 50 * 10**9  # of this nobody runs short, whatever share of a huge disk it is
LOW_HOURS = 6.0


class Room:
    """The room that is left to one log file. ``free`` and ``size`` in bytes, ``None`` where they cannot be read."""

    def __init__(self, log: str) -> None:
        self._log = log
        self._sizes: deque[tuple[float, int]] = deque()
        self._next = 0.0
        self.free: int | None = None
        self.size: int | None = None
        self.warning = ""

    def look(self, now: float) -> None:
        """Look again, at most every ``PERIOD``. ``now``: monotonic seconds."""
        if now < self._next:
            return
        self._next = now + PERIOD
        try:
            size = os.stat(self._log).st_size
            system = os.statvfs(self._log)
        except OSError:
            self.free, self.size, self.warning = None, None, ""
            return
        self.free, self.size = system.f_bavail * system.f_frsize, size
        self._sizes.append((now, size))
        while now - self._sizes[0][0] > MEMORY:
            self._sizes.popleft()
        total = system.f_blocks * system.f_frsize
        self.warning = words(os.path.dirname(self._log), self.free, total, growth(self._sizes))


def growth(sizes: deque[tuple[float, int]]) -> float | None:
    """Bytes per second between the first and the last of (seconds, bytes); ``None`` while that is too early to say."""
    (first, before), (last, after) = sizes[0], sizes[-1]
    return max(0.0, (after - before) / (last - first)) if last - first >= ENOUGH else None


def words(folder: str, free: int, total: int, rate: float | None) -> str:
    """A warning where little is left, or where the log will soon have filled it; else empty."""
    left = "%.1f of %.1f GB left on the file system of %s" % (free / 1e9, total / 1e9, folder)
    if free == 0:
        return "no space left on the file system of %s: the log loses lines" % folder
    if rate and free / rate < LOW_HOURS * 3600:
        hours = free / rate / 3600
        return "%s: the log, growing by %.2g GB an hour, fills it in %.1f hours" % (left, rate * 3600 / 1e9, hours)
    if free < LOW_BYTES or free < min(total * LOW_SHARE, PLENTY_BYTES):
        return "only " + left
    return ""
