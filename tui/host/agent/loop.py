"""One poll loop: file descriptors, timers, and an output in which bulk never delays control.

Both ends are non-blocking: with a blocking stdout a full pipe would keep a kill from being executed.
"""

from __future__ import annotations

import fcntl
import heapq
import itertools
import os
import select
import sys
import time
from collections import deque

from . import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

IN = select.POLLIN
OUT = select.POLLOUT
GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL

SMALL = 8192  # bytes

monotonic = time.monotonic


def nonblocking(fd: int) -> None:
    """Reads and writes on ``fd`` return at once from now on."""
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)


class Timer:
    """A call in the future; ``cancel`` it or let it happen."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class Loop:
    """Calls back on readable descriptors and due timers, and writes frames to ``out``.

    ``bulk`` is asked for log bytes whenever nothing else is waiting to be written; it respects the credit itself.
    """

    def __init__(self, source: int = 0, out: int = 1) -> None:
        self.source = source
        self.out = out
        self.bulk: Callable[[], bytes | None] = lambda: None
        self.received = monotonic()
        self.on_part: list[Callable[[], None]] = []
        self._held = 0
        self._parted = False
        self._poll = select.poll()
        self._calls: dict[int, Callable[[int], None]] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._count = itertools.count()
        self._control: deque[bytes] = deque()
        self._writing = memoryview(b"")
        self._waiting_out = False
        nonblocking(source)
        nonblocking(out)

    def watch(self, fd: int, call: Callable[[int], None], events: int = IN) -> None:
        """Call ``call(event)`` whenever ``fd`` is ready."""
        self._calls[fd] = call
        self._poll.register(fd, events)

    def unwatch(self, fd: int) -> None:
        if self._calls.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def later(self, seconds: float, call: Callable[[], None]) -> Timer:
        return self.at(monotonic() + seconds, call)

    def at(self, when: float, call: Callable[[], None]) -> Timer:
        timer = Timer(call)
        heapq.heappush(self._timers, (when, next(self._count), timer))
        return timer

    def hold(self) -> None:
        """Something has begun that must be done even if the channel goes; ``release`` when it is."""
        self._held += 1

    def release(self) -> None:
        self._held -= 1
        if self._parted and not self._held:
            leave()

    def part(self) -> None:
        """The channel is gone: end. A copy of this process, which has nothing to do with the channel, does what is
        held."""
        if self._parted:
            return
        if not self._held or os.fork():
            leave()
        self._parted = True
        os.setsid()
        self._control.clear()
        self._writing = memoryview(b"")
        self.bulk = lambda: None
        self.unwatch(self.source)
        self._want_out(False)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        for call in self.on_part:
            call()

    def send(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Queue a control frame: before all log bytes, and without credit."""
        if not self._parted:
            self._control.append(frames.encode(header, body))

    def run(self) -> None:
        """For ever; the process ends from within (channel gone, silence)."""
        while True:
            self._flush()
            for fd, event in self._poll.poll(self._timeout()):
                call = self._calls.get(fd)
                if call is not None:
                    self._guard(call, event)
            self._run_timers()

    def _timeout(self) -> int | None:
        while self._timers and self._timers[0][2].call is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return None
        return max(0, int((self._timers[0][0] - monotonic()) * 1000 + 0.999))

    def _run_timers(self) -> None:
        now = monotonic()
        while self._timers and self._timers[0][0] <= now:
            call = heapq.heappop(self._timers)[2].call
            if call is not None:
                self._guard(call)

    def _guard(self, call: Callable[..., None], *args: Any) -> None:
        try:
            call(*args)
        except Exception:  # one broken request must not end the servers' only witness
            self.send({"t": "trouble"}, current_trouble())

    def _flush(self) -> None:
        while True:
            if not self._writing:
                self._writing = memoryview(self._next())
                if not self._writing:
                    break
            try:
                written = os.write(self.out, self._writing)
            except BlockingIOError:
                break
            except OSError:
                self.part()
                return
            self._writing = self._writing[written:]
        self._want_out(bool(self._writing))

    def _next(self) -> bytes:
        """What to write next: a large frame, or a few small ones, since each write wakes the other side."""
        chunks: list[bytes] = []
        size = 0
        while size < SMALL:
            chunk = self._control.popleft() if self._control else self.bulk()
            if chunk is None:
                break
            chunks.append(chunk)
            size += len(chunk)
        return b"".join(chunks)

    def _want_out(self, want: bool) -> None:
        if want and not self._waiting_out:
            self.watch(self.out, self._on_out, OUT)
        elif not want and self._waiting_out:
            self.unwatch(self.out)
        self._waiting_out = want

    def _on_out(self, event: int) -> None:
        if event & GONE:
            self.part()


def current_trouble() -> bytes:
    """The traceback of the exception that is being handled; its text alone where not even that can be had."""
    error = sys.exc_info()[1]
    try:
        import traceback  # 0.7 MB, for what should never happen

        text = traceback.format_exc()
    except (OSError, ImportError, MemoryError):  # out of descriptors, say: the very trouble may be the reason
        text = "%s: %s" % (type(error).__name__, error)
    return text.encode("utf-8", "replace")


def leave(status: int = 0) -> None:
    """End at once: no flush or atexit that could block."""
    os._exit(status)


def complain(text: str) -> None:
    """Tell the other side through stderr, which it shows when the agent ends."""
    try:
        os.write(2, (text + "\n").encode("utf-8", "replace"))
    except OSError:
        pass
