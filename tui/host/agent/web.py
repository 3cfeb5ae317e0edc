"""GET and POST to a server on this host: HTTP/1.0, one connection each, the answer's body capped."""

from __future__ import annotations

import _socket as socket

from . import sockets
from .connect import Connect
from .loop import IN, OUT, monotonic
from .requests import Refused, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_BODY = 8 << 20
MAX_HEAD = 64 << 10
COMPLETIONS = "/v1/completions"  # of a smoke test; other POSTs may flush caches, abort requests, load weights


def fetch(request: Request) -> None:
    """The header has ``port``, ``path``, ``method``, ``headers`` and ``seconds`` (to wait)."""
    header = request.header
    harmless = header.get("method", "GET") == "GET" or header["path"] == COMPLETIONS
    if request.agent.config.get("read_only") and not harmless:
        raise Refused("This session is read-only: it asks servers for completions and readings alone.")
    Fetch(request)


class Fetch:
    """Connect, write, read to the end."""

    def __init__(self, request: Request) -> None:
        header = request.header
        self._request = request
        self._loop = request.agent.loop
        self._began = monotonic()
        self._port = int(header["port"])
        self._timeout = float(header.get("seconds", 5.0))
        self._deadline = self._loop.later(self._timeout, self._on_deadline)
        self._sock: socket.socket | None = None
        self._unsent = memoryview(self._text())
        self._answer = bytearray()
        self._expected: int | None = None
        self._first: float | None = None  # when the body began
        self._over = False
        Connect(
            self._loop, sockets.reachable(sockets.listeners(self._port)), self._port, self._on_connect, self._timeout
        )

    def _text(self) -> bytes:
        header, body = self._request.header, self._request.body
        method = header.get("method", "GET")
        fields = {"Host": "127.0.0.1:%d" % self._port, "Accept": "*/*", "Connection": "close"}
        if method == "POST":
            fields["Content-Length"] = str(len(body))
            fields["Content-Type"] = "application/json"
        fields.update(header.get("headers") or {})
        lines = ["%s %s HTTP/1.0" % (method, header["path"])] + ["%s: %s" % pair for pair in fields.items()]
        if any("\r" in line or "\n" in line for line in lines):
            raise Refused("The request's path or headers hold a line break.")
        return "\r\n".join([*lines, "", ""]).encode("utf-8") + body

    def _on_connect(self, sock: socket.socket | None, error: str | None) -> None:
        if self._over:
            if sock is not None:
                sock.close()
        elif sock is None:
            self._fail("Nothing answers on port %d: %s." % (self._port, error))
        else:
            self._sock = sock
            self._loop.watch(sock.fileno(), self._on_ready, OUT)

    def _on_ready(self, event: int) -> None:
        sock = self._sock
        assert sock is not None
        try:
            if self._unsent:
                self._unsent = self._unsent[sock.send(self._unsent) :]
                if not self._unsent:
                    self._loop.unwatch(sock.fileno())
                    self._loop.watch(sock.fileno(), self._on_ready, IN)
                return
            data = sock.recv(65536)
        except BlockingIOError:
            return
        except OSError as error:
            self._fail("The server on port %d broke off: %s." % (self._port, error.strerror))
            return
        self._answer += data
        if self._first is None and not self._answer.endswith(b"\r\n\r\n") and b"\r\n\r\n" in self._answer:
            self._first = monotonic() - self._began
        if not data or self._is_whole() or len(self._answer) > MAX_BODY + MAX_HEAD:
            self._finish()

    def _is_whole(self) -> bool:
        """Servers may keep the connection open: then the length says when to stop."""
        if self._expected is None:
            head, gap, _ = self._answer.partition(b"\r\n\r\n")
            if gap:
                length = [line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                known = bool(length) and length[0].strip().isdigit()
                self._expected = len(head) + 4 + int(length[0]) if known else MAX_BODY + MAX_HEAD
        return self._expected is not None and len(self._answer) >= self._expected

    def _finish(self) -> None:
        head, _, body = bytes(self._answer).partition(b"\r\n\r\n")
        words = head.split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
            self._fail("What listens on port %d does not speak HTTP." % self._port)
            return
        answer: dict[str, Any] = {"status": int(words[1]), "seconds": monotonic() - self._began, "first": self._first}
        self._close()
        self._request.raw(answer, body[:MAX_BODY])

    def _on_deadline(self) -> None:
        self._fail("The server on port %d gave no answer in %g s." % (self._port, self._timeout))

    def _fail(self, message: str) -> None:
        if not self._over:
            self._close()
            self._request.refuse(Refused(message))

    def _close(self) -> None:
        self._over = True
        self._deadline.cancel()
        if self._sock is not None:
            self._loop.unwatch(self._sock.fileno())
            self._sock.close()
