"""A TCP connection as a state machine."""

from __future__ import annotations

import _socket as socket
import errno
import os

from .loop import OUT, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable


class Connect:
    """Calls ``done(socket, None)`` or ``done(None, reason)``, once."""

    def __init__(
        self,
        loop: Loop,
        address: str,
        port: int,
        done: Callable[[socket.socket | None, str | None], None],
        timeout: float = 1.0,
    ) -> None:
        self._loop, self._done = loop, done
        self._sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        self._sock.setblocking(False)
        code = self._sock.connect_ex((address, port))
        self._timer = loop.later(timeout if code in (0, errno.EINPROGRESS) else 0.0, lambda: self._fail(self._reason))
        self._reason = os.strerror(code) if code not in (0, errno.EINPROGRESS) else "no answer in %g s" % timeout
        if code in (0, errno.EINPROGRESS):
            loop.watch(self._sock.fileno(), self._on_ready, OUT)

    def _on_ready(self, event: int) -> None:
        code = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._fail(os.strerror(code))
            return
        self._loop.unwatch(self._sock.fileno())
        self._timer.cancel()
        self._done(self._sock, None)

    def _fail(self, reason: str) -> None:
        self._loop.unwatch(self._sock.fileno())
        self._timer.cancel()
        self._sock.close()
        self._done(None, reason)
