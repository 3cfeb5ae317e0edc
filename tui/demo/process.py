"""What the processes of a simulated server share: records on stderr, names, signals, and messages over a socket."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
STDOUT, STDERR = 1, 2
_silent = False
Message = Mapping[str, Any]  # JSON, between processes of one server


def silence() -> None:
    """``--log-level warning``: of this process and its children, only what goes wrong is printed from now on."""
    global _silent
    _silent = True


def record(text: str, rank: str = "", stream: int = STDERR, *, urgent: bool = False) -> None:
    """Print one log record with SGLang's prefix, in one write, so that processes do not cut into each other."""
    if _silent and not urgent:
        return
    raw(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}{rank}] {text}\n", stream)


def raw(text: str, stream: int = STDERR) -> None:
    """Write ``text`` as it is. A reader that went away is no reason to die: the log is lost, the server is not."""
    data = text.encode()
    try:
        while data:
            data = data[os.write(stream, data) :]
    except OSError:
        return


def name_process(name: str) -> None:
    """Set the name that ``ps`` and ``/proc/PID/comm`` show (15 bytes)."""
    _prctl(_PR_SET_NAME, name.encode()[:15] + b"\0")


def die_with_parent(parent: int) -> None:
    """Be killed when the parent dies, as SGLang's children are; at once when it is dead already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: bytes | int) -> None:
    argument = ctypes.c_char_p(value) if isinstance(value, bytes) else ctypes.c_ulong(value)
    ctypes.CDLL(None, use_errno=True).prctl(option, argument, 0, 0, 0)


def exit_code(status: int) -> int:
    """The code that Python's multiprocessing gives a wait status: negative for signals."""
    return os.waitstatus_to_exitcode(status)


class Channel:
    """JSON messages, one a line, over one end of a socket pair."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._rest = b""

    def send(self, **message: object) -> None:
        try:
            self.socket.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        except OSError:
            return  # the other end is gone; who watches it will say so

    def receive(self) -> Iterator[Message]:
        """The messages of one read. Raises ``EOFError`` when the other end is gone."""
        try:
            data = self.socket.recv(1 << 18)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            raise EOFError from error
        if not data:
            raise EOFError
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            yield json.loads(line)
