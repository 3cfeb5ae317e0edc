"""Logs, sent from a byte on: within a credit, one frame per log in turn, each frame with inode and true offset.

What is new goes first, then stretches that somebody asked for (a log's head, then its middle), by their urgency.
The first write after silence is read at once (inotify); while any log is busy, all are read together every 50 ms, by
the clock: each message wakes the other side. Where inotify does not work, the clock does it all.
"""

from __future__ import annotations

import os
from collections import deque

from . import frames
from .files import open_regular
from .loop import Loop, Timer, monotonic
from .notify import Notifier

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

TICK = 0.05  # seconds between two reads of a busy log
SETTLE = 0.003  # seconds after the first write: unbuffered Python writes a line in pieces
CHECK = 1.0  # seconds between two looks at a silent one, whatever inotify says: replaced, truncated, missed
NEVER = float("inf")
LIVE, HEAD, MIDDLE = range(3)  # urgency


class Stream:
    """One followed log. ``offset`` is the next byte to send; ``end`` bounds a stretch that is sent and forgotten.

    ``held`` is another way to the same file, for when it was renamed or removed under its writer.
    """

    def __init__(
        self, number: int, path: str, inode: int | None, offset: int, end: int | None = None, held: str | None = None
    ) -> None:
        self.number = number
        self.path = path
        self.held = held
        self.offset = offset
        self.end = end
        self.urgency = LIVE
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
        found = self._open()
        if found is None:
            return self.fd >= 0
        fd, stat = found
        if self.fd >= 0:
            # An empty newcomer is a rotation under way, or one that the writer does not follow
            if stat.st_ino == self.inode or not stat.st_size:
                os.close(fd)
                return True
            os.close(self.fd)
        if self.inode not in (None, stat.st_ino) or stat.st_size < self.offset:
            self.offset = 0  # another file, or the same one cut short
        self.fd, self.inode = fd, stat.st_ino
        return True

    def _open(self) -> tuple[int, os.stat_result] | None:
        """The file at ``path``, unless only ``held`` still leads to the one that was read before."""
        found = _opened(self.path)
        if self.held and self.inode is not None and self.fd < 0 and (found is None or found[1].st_ino != self.inode):
            held = _opened(self.held)
            if held is not None:
                if held[1].st_ino == self.inode:
                    found, held = held, found
                if held is not None:
                    os.close(held[0])
        return found

    def rest(self) -> int:
        """Bytes that stand there unsent."""
        size = self.size()
        return (size if self.end is None else min(size, self.end)) - self.offset

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
        self._queues: tuple[deque[Stream], ...] = (deque(), deque(), deque())  # by urgency
        self.credit = 0
        self._sent = 0.0  # when something new was sent
        self._timer: Timer | None = None
        self._tick_at = NEVER
        loop.bulk = self.next_frame

    def follow(self, number: int, path: str, inode: int | None, offset: int, held: str | None = None) -> None:
        """Send ``path`` from ``offset`` on as stream ``number``; from 0 if it is no longer the file ``inode``."""
        self.unfollow(number)
        stream = Stream(number, path, inode, offset, held=held)
        stream.notified = self._notifier.works_in(os.path.dirname(path))
        self._streams[number] = stream
        self._look(stream)
        self._tick_later()

    def fill(
        self, number: int, path: str, inode: int | None, start: int, end: int, urgency: int, held: str | None = None
    ) -> bool:
        """Send the bytes from ``start`` to ``end`` as stream ``number``, when nothing more urgent waits. False: the
        file has no such bytes (any more)."""
        self.unfollow(number)
        stream = Stream(number, path, inode, start, end, held)
        if not stream.reopen() or inode not in (None, stream.inode) or stream.size() < end:
            stream.close()
            return False
        stream.due, stream.urgency = NEVER, min(max(urgency, LIVE), MIDDLE)
        self._streams[number] = stream
        self._queue(stream)
        return True

    def unfollow(self, number: int) -> None:
        stream = self._streams.pop(number, None)
        if stream is not None:
            self._notifier.disarm(stream.watch)
            stream.close()
            if stream.queued:
                self._queues[stream.urgency].remove(stream)

    def next_frame(self) -> bytes | None:
        """The next bytes of whichever log is next in turn, while there is credit."""
        for queue in self._queues:
            while queue and self.credit > 0:
                stream = queue.popleft()
                stream.queued = False
                data = self._read(stream)
                if data:
                    header = {"t": "log", "s": stream.number, "i": stream.inode, "o": stream.offset - len(data)}
                    return frames.encode(header, data)
        return None

    def _read(self, stream: Stream) -> bytes:
        try:
            data = os.pread(stream.fd, max(0, min(frames.BULK, self.credit, stream.rest())), stream.offset)
        except OSError:  # a file system that went away; the next look asks again
            return b""
        stream.offset += len(data)
        self.credit -= len(data)
        if data and stream.urgency == LIVE:
            self._sent = monotonic()
        if data and stream.rest() > 0:
            self._queue(stream)
        elif stream.end is not None:
            self.unfollow(stream.number)
        return data

    def _queue(self, stream: Stream) -> None:
        if not stream.queued:
            stream.queued = True
            self._queues[stream.urgency].append(stream)

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
                now = monotonic()
                if now - self._sent < TICK:
                    stream.due = next_tick(now)
                else:
                    stream.due = now + SETTLE
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


def _opened(path: str) -> tuple[int, os.stat_result] | None:
    try:
        fd = open_regular(path)
    except OSError:
        return None
    return None if fd is None else (fd, os.fstat(fd))


def next_tick(now: float) -> float:
    return (int(now / TICK) + 1) * TICK
