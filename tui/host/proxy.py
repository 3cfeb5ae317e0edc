"""A ProxyCommand of the SSH settings, with its stderr kept off the terminal and in the error message."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket

from tui.host.api import HostError, HostErrorKind
from tui.host.channel import Tail


class Proxy:
    """The running command; ``socket`` is this side of its stdin and stdout."""

    def __init__(self, process: asyncio.subprocess.Process, ours: socket.socket, line: str, host: str) -> None:
        assert process.stderr
        self.socket = ours
        self._process = process
        self._line, self._host = line, host
        self._tail = Tail()
        self._drain = asyncio.create_task(self._drain_stderr(process.stderr))

    @classmethod
    async def start(cls, line: str, host: str) -> Proxy:
        """Run the command as `ssh` does, by the user's shell. Raises ``HostError``."""
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                os.environ.get("SHELL") or "/bin/sh",
                "-c",
                f"exec {line}",
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise HostError(
                HostErrorKind.CONFIG, f"The ProxyCommand for {host} cannot be run: {error}.", "See ~/.ssh/config."
            ) from error
        finally:
            theirs.close()
        return cls(process, ours, line, host)

    async def _drain_stderr(self, stream: asyncio.StreamReader) -> None:
        while data := await stream.read(65536):
            self._tail.add(data)

    @property
    def failed(self) -> bool:
        """Whether the command has ended, or said something, so that it is to blame."""
        return self._process.returncode not in (None, 0) or bool(str(self._tail))

    def error(self) -> HostError:
        told = str(self._tail).splitlines()[-1:] or [f"status {self._process.returncode}"]
        return HostError(
            HostErrorKind.UNREACHABLE,
            f"The ProxyCommand for {self._host} failed: {told[0][:300]}.",
            f"Try: {self._line}",
        )

    async def close(self) -> None:
        self.socket.close()
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)
            try:
                async with asyncio.timeout(1.0):
                    await self._process.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
        self._drain.cancel()
        await asyncio.gather(self._drain, return_exceptions=True)
