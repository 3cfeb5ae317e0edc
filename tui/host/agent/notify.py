"""inotify, where it works: ctypes, one instance for all logs, each watch good for one event."""

from __future__ import annotations

import os
import struct

from .loop import Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

IN_MODIFY = 0x2
IN_MOVE_SELF = 0x800
IN_DELETE_SELF = 0x400
IN_IGNORED = 0x8000
IN_ONESHOT = 0x80000000
EVENT = struct.Struct("iIII")
FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class Notifier:
    """Calls back once per armed watch: a busy log is then read by the clock, and costs no events."""

    def __init__(self, loop: Loop, allowed: bool = True) -> None:
        self._libc: Any = None
        self._fd = -1
        self._calls: dict[int, Callable[[], None]] = {}
        self._tested: dict[int, bool] = {}
        if not allowed:
            return
        try:
            import ctypes

            self._libc = ctypes.CDLL(None, use_errno=True)
            self._fd = self._libc.inotify_init1(FLAGS)
        except (ImportError, OSError, AttributeError):
            self._fd = -1
        if self._fd >= 0:
            loop.watch(self._fd, self._on_event)

    def arm(self, path: str, call: Callable[[], None]) -> int:
        """Watch ``path`` for its next event; negative where that is not possible."""
        if self._fd < 0:
            return -1
        mask = IN_MODIFY | IN_MOVE_SELF | IN_DELETE_SELF | IN_ONESHOT
        watch: int = self._libc.inotify_add_watch(self._fd, os.fsencode(path), mask)
        if watch >= 0:
            self._calls[watch] = call
        return watch

    def disarm(self, watch: int) -> None:
        if self._calls.pop(watch, None) is not None:
            self._libc.inotify_rm_watch(self._fd, watch)

    def works_in(self, folder: str) -> bool:
        """A self-test, once per file system: is a write of ours in ``folder`` told at once?"""
        try:
            device = os.stat(folder).st_dev
            if device not in self._tested:
                self._tested[device] = self._fd >= 0 and self._test(os.path.join(folder, ".notify.%d" % os.getpid()))
            return self._tested[device]
        except OSError:
            return False

    def _test(self, path: str) -> bool:
        seen: list[bool] = []
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            watch = self.arm(path, lambda: seen.append(True))
            os.write(fd, b"x")
            self._on_event(0)  # the kernel has queued the event before write returned
            self.disarm(watch)
        finally:
            os.close(fd)
            os.unlink(path)
        return bool(seen)

    def _on_event(self, event: int) -> None:
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            return
        at = 0
        while at + EVENT.size <= len(data):
            watch, mask, _, size = EVENT.unpack_from(data, at)
            at += EVENT.size + size
            call = self._calls.pop(watch, None) if not mask & IN_IGNORED else None
            if call is not None:
                call()
