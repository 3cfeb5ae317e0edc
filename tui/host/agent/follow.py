"""Logs, sent from a byte on: within a credit, one frame per log in turn, each frame with inode and true offset.

The first write after silence is read at once (inotify); while a log is busy it is read every 50 ms, by the clock.
Where inotify does not work, the clock does it all.
"""

from __future__ import annotations

import os
from collections import deque
from typing import Callable

from . import frames
from .loop import Loop, Timer, monotonic
from .notify import Notifier

TICK = 0.05  # seconds between two reads of a busy log
SETTLE = 0.003  # seconds after the first write: unbuffered Python writes a line in pieces
CHECK = 1.0  # seconds between two looks at a silent one, whatever inotify says: replaced, truncated, missed
NEVER = float("inf")


class Stream:
    """One followed log. ``offset`` is the next byte to send."""

    def __init__(self, number: int, path: str, inode: int | None, offset: int) -> None:
        self.number = number
        self.path = path
        self.offset = offset
        self.inode = inode
        self.fd = -1
        self.watch = -1
        self.due = 0.0  # when to look again
        self.notified = False  # an inotify watch is armed
        self.queued = False  # more is known to be there
        self.settling = False  # woken a moment ago: the rest of a line that is written in pieces is due
        self.checked = 0.0

    def reopen(self) -> bool:
        """Open the file, or the one that took its place. True: there is a file to read."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return self.fd >= 0
        stat = os.fstat(fd)
        if self.fd >= 0:
            if stat.st_ino == self.inode:
                os.close(fd)
                return True
            os.close(self.fd)
        if self.inode not in (None, stat.st_ino) or stat.st_size < self.offset:
            self.offset = 0  # another file, or the same one cut short
        self.fd, self.inode = fd, stat.st_ino
        return True

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class Follower:
    """All followed logs of one channel."""

    def __init__(self, loop: Loop, notifier: Notifier) -> None:
        self._loop = loop
        self._notifier = notifier
        self._streams: dict[int, Stream] = {}
        self._ready: deque[Stream] = deque()
        self.credit = 0
        self._timer: Timer | None = None
        self._tick_at = NEVER
        loop.bulk = self.next_frame

    def follow(self, number: int, path: str, inode: int | None, offset: int) -> None:
        """Send ``path`` from ``offset`` on as stream ``number``; from 0 if it is no longer the file ``inode``."""
        self.unfollow(number)
        stream = Stream(number, path, inode, offset)
        stream.notified = self._notifier.works_in(os.path.dirname(path))
        self._streams[number] = stream
        self._look(stream)
        self._tick_later()

    def unfollow(self, number: int) -> None:
        stream = self._streams.pop(number, None)
        if stream is not None:
            self._notifier.disarm(stream.watch)
            stream.close()
            if stream.queued:
                self._ready.remove(stream)

    def next_frame(self) -> bytes | None:
        """The next bytes of whichever log is next in turn, while there is credit."""
        while self._ready and self.credit > 0:
            stream = self._ready.popleft()
            stream.queued = False
            data = os.pread(stream.fd, min(frames.BULK, self.credit), stream.offset)
            if not data:
                continue
            header = {"t": "log", "s": stream.number, "i": stream.inode, "o": stream.offset}
            stream.offset += len(data)
            self.credit -= len(data)
            if stream.offset < stream.size():
                self._queue(stream)
            return frames.encode(header, data)
        return None

    def _queue(self, stream: Stream) -> None:
        if not stream.queued:
            stream.queued = True
            self._ready.append(stream)

    def _look(self, stream: Stream) -> None:
        """Queue what is new. Nothing new and inotify at hand: sleep until it wakes us."""
        now = monotonic()
        if stream.fd < 0 or now - stream.checked >= CHECK:
            stream.checked = now
            self._check(stream)
        stream.due = next_tick(now)
        settling, stream.settling = stream.settling, False
        if stream.fd < 0:
            return
        if self._grown(stream):
            self._queue(stream)
        elif stream.notified and not settling:
            stream.watch = self._notifier.arm(stream.path, self._waker(stream))
            if stream.watch >= 0:
                stream.due = now + CHECK
            if self._grown(stream):  # written between the look and the watch
                self._queue(stream)

    def _check(self, stream: Stream) -> None:
        """Has another file taken the log's place? Asked only when the old one is read to its end."""
        if stream.queued or (stream.fd >= 0 and stream.offset < stream.size()):
            return
        before = stream.inode
        stream.reopen()
        if stream.inode != before:
            self._notifier.disarm(stream.watch)
            stream.watch = -1

    def _grown(self, stream: Stream) -> bool:
        size = stream.size()
        if size < stream.offset and not stream.queued:
            stream.offset = 0  # truncated
        return size > stream.offset

    def _waker(self, stream: Stream) -> Callable[[], None]:
        def wake() -> None:
            if self._streams.get(stream.number) is stream:
                stream.watch = -1
                stream.due = monotonic() + SETTLE
                stream.settling = True
                if stream.fd >= 0 and self._grown(stream):
                    self._queue(stream)
                self._tick_later()

        return wake

    def _tick_later(self) -> None:
        """One timer for all logs; the busy ones share a grid, and are read together."""
        due = min((stream.due for stream in self._streams.values()), default=None)
        if due is None or due >= self._tick_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._tick_at = due
        self._timer = self._loop.at(due, self._tick)

    def _tick(self) -> None:
        self._timer, self._tick_at = None, NEVER
        now = monotonic()
        for stream in list(self._streams.values()):
            if stream.due <= now:
                self._look(stream)
        self._tick_later()


def next_tick(now: float) -> float:
    return (int(now / TICK) + 1) * TICK
