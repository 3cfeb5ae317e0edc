"""A user's command, run for alerts: without a shell, one at a time, each for a limited time, its words kept from us."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Mapping, Sequence

DEADLINE = 10.0  # seconds that one may take
WAITING = 20  # that may wait for their turn; of more, the oldest are dropped
_KEPT = 200  # bytes of what it wrote to stderr
_WORDS = 0.5  # seconds for them to come after its end


class Alarm:
    """Runs ``command`` with variables of the environment beside this program's own. ``trouble`` is why the last one
    failed, until it is asked for."""

    def __init__(self, command: Sequence[str], *, deadline: float = DEADLINE) -> None:
        self._command = tuple(command)
        self._deadline = deadline
        self._queue: deque[Mapping[str, str]] = deque(maxlen=WAITING)
        self._running: asyncio.Task[None] | None = None
        self._trouble = ""

    def ring(self, variables: Mapping[str, str]) -> None:
        """Have the command run soon. To be called on a running loop."""
        if not self._command:
            return
        self._queue.append(variables)
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._work())

    def trouble(self) -> str:
        """What went wrong since this was last asked; empty for nothing."""
        said, self._trouble = self._trouble, ""
        return said

    async def rest(self) -> None:
        """Until nothing waits."""
        if self._running is not None:
            await self._running

    async def _work(self) -> None:
        while self._queue:
            self._trouble = await self._run(self._queue.popleft()) or self._trouble

    async def _run(self, variables: Mapping[str, str]) -> str:
        clean = {name: value.replace("\0", "") for name, value in variables.items()}
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, env={**os.environ, **clean}, start_new_session=True,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            return f"alert_command {self._command[0]}: {reason.lower()}"
        said = asyncio.create_task(_head(process.stderr))
        try:
            async with asyncio.timeout(self._deadline):
                status = await process.wait()
        except (TimeoutError, asyncio.CancelledError) as over:
            _end(process)
            said.cancel()
            if isinstance(over, asyncio.CancelledError):
                raise
            return f"alert_command {self._command[0]}: took longer than {self._deadline:g} s, ended"
        with contextlib.suppress(TimeoutError):  # a child that it left behind may hold its stderr
            async with asyncio.timeout(_WORDS):
                words = await said
            return f"alert_command {self._command[0]}: exit {status}{words and f': {words}'}" if status else ""
        return f"alert_command {self._command[0]}: exit {status}" if status else ""


async def _head(stream: asyncio.StreamReader | None) -> str:
    """The beginning of what a command says; the rest is read and dropped, so that it does not wait for a reader."""
    kept = b""
    while stream is not None and (data := await stream.read(4096)):
        kept = (kept + data)[:_KEPT]
    return " ".join(kept.decode("utf-8", "replace").split())


def _end(process: asyncio.subprocess.Process) -> None:
    """End what is left of it, children too."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
