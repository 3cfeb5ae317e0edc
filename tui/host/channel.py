"""A byte channel to an agent, and the one over a pipe: the same agent on this machine, without SSH."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Protocol

from tui.host.api import HostError, HostErrorKind
from tui.host.forward import Listener

LAST_WORDS = 4096  # bytes of stderr kept for error messages


class Channel(Protocol):
    """Bytes both ways. ``read`` gives ``b""`` at the end, and raises ``OSError`` where the link broke."""

    async def read(self, size: int) -> bytes: ...

    def write(self, data: bytes) -> None: ...

    async def close(self) -> None: ...

    def last_words(self) -> str:
        """What the other side wrote to stderr, its end."""

    async def forward(self, address: str, port: int, local: int) -> Listener:
        """Let ``local`` of this machine's loopback lead to ``address:port`` of the host. Raises ``HostError``."""


class Tail:
    """The last bytes of a stream of text."""

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, data: bytes) -> None:
        self._data += data
        del self._data[:-LAST_WORDS]

    def __str__(self) -> str:
        return self._data.decode("utf-8", "replace").strip()


class PipeChannel:
    """The agent as a child of this process, in a session of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin and process.stdout and process.stderr
        self._process = process
        self._stdin, self._stdout = process.stdin, process.stdout
        self._tail = Tail()
        self._drain = asyncio.create_task(self._drain_stderr(process.stderr))

    @classmethod
    async def open(cls, command: str) -> PipeChannel:
        """Run ``command`` as sshd would: by a shell, without a terminal. Raises ``OSError``."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, limit=1 << 18,
            cwd=_home(),
        )  # fmt: skip
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def _drain_stderr(self, stream: asyncio.StreamReader) -> None:
        while data := await stream.read(65536):
            self._tail.add(data)

    async def read(self, size: int) -> bytes:
        return await self._stdout.read(size)

    def write(self, data: bytes) -> None:
        self._stdin.write(data)

    async def close(self) -> None:
        """The agent leaves when its stdin ends; one that does not is killed."""
        self._stdin.close()
        try:
            async with asyncio.timeout(2.0):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
            with contextlib.suppress(TimeoutError):  # in the kernel, state D: not waited for
                async with asyncio.timeout(2.0):
                    await self._process.wait()
        self._drain.cancel()
        await asyncio.gather(self._drain, return_exceptions=True)

    def last_words(self) -> str:
        return str(self._tail)

    async def forward(self, address: str, port: int, local: int) -> Listener:
        raise HostError(HostErrorKind.REFUSED, f"The host is this machine: port {port} is here already.")


def _home() -> Path:
    """Where sshd begins: at home, or at the root where there is none."""
    home = Path(os.environ.get("HOME") or "/")
    return home if home.is_dir() else Path("/")
