"""Commands on the embedded hosts: each in a session of its own, with pumps for its three streams."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping

import asyncssh

from tui.demo.machine import Machine

_CHUNK = 1 << 16
_KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")
_HANGUP_SECONDS = 1.0
Process = asyncssh.SSHServerProcess[bytes]


class LoopbackServer(asyncssh.SSHServer):
    """Forwards connections to this machine's loopback and to nothing else."""

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        return dest_host in ("127.0.0.1", "localhost")


class Shells:
    """Runs commands by ``/bin/sh -c``; ends those whose channel closes.

    ``machines`` are the simulated hosts by name. Who logs in as a host's name is on that one, in a home of its own.
    """

    def __init__(self, machines: Mapping[str, Machine]) -> None:
        self._environments = {name: _environment(machine) for name, machine in machines.items()}
        self.pids: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: set[asyncio.Task[None]] = set()

    async def run(self, process: Process) -> None:
        """One exec request (or a bare shell), from start to exit status."""
        environment = self._environments.get(process.get_extra_info("username"))
        if environment is None:
            process.stderr.write(b"There is no host of that name: log in as one of the profile's hosts.\n")
            process.exit(1)
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        shell = await asyncio.create_subprocess_exec(
            "/bin/sh",
            *(("-c", process.command) if process.command else ()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=environment["HOME"],
            env=environment,
            start_new_session=True,
        )
        self.pids.add(shell.pid)
        try:
            await self._attend(process, shell)
        finally:
            # On its own, so that the end of the host, which cancels this, does not cut it short.
            ending = asyncio.create_task(_hang_up(shell))
            self._ends.add(ending)
            ending.add_done_callback(self._ends.discard)
            await asyncio.shield(ending)
            self.pids.discard(shell.pid)

    async def _attend(self, process: Process, shell: asyncio.subprocess.Process) -> None:
        """Pump until the command ends or its channel closes, whichever is first."""
        assert shell.stdin and shell.stdout and shell.stderr
        feeding = asyncio.create_task(_feed(process, shell.stdin, shell.pid))
        outputs = asyncio.gather(_pump(shell.stdout, process.stdout), _pump(shell.stderr, process.stderr))
        ending = asyncio.create_task(_end(shell, outputs))
        closed = asyncio.create_task(process.channel.wait_closed())
        tasks = {feeding, ending, closed}
        try:
            await asyncio.wait({ending, closed}, return_when=asyncio.FIRST_COMPLETED)
            if ending.done() and not closed.done():
                _tell(process, await ending)
        finally:
            outputs.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, outputs, return_exceptions=True)

    async def close(self) -> None:
        """End all commands."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*self._ends, return_exceptions=True)


def _environment(machine: Machine) -> dict[str, str]:
    """Of a login on a simulated host."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {
        "HOME": str(machine.root.parent),
        "USER": "demo",
        "LOGNAME": "demo",
        "SHELL": "/bin/sh",
        "PATH": os.pathsep.join([str(machine.bin), kept.get("PATH", os.defpath)]),
        "HCS_MEMORY_ROOT": str(machine.root),  # for the agent
        "HCS_DEMO_MACHINE": str(machine.root),  # for the simulated servers
        "HCS_DEMO_HOST_PID": str(os.getpid()),
    }


async def _end(shell: asyncio.subprocess.Process, outputs: asyncio.Future[tuple[None, None]]) -> int:
    """All output, then the status."""
    await outputs
    return await shell.wait()


async def _feed(process: Process, stdin: asyncio.StreamWriter, group: int) -> None:
    """The client's bytes to the command. Signals arrive as exceptions of the read and go to the whole group."""
    with contextlib.suppress(ConnectionError, asyncssh.Error):
        while True:
            try:
                data = await process.stdin.read(_CHUNK)
            except asyncssh.SignalReceived as sent:
                _signal_group(group, getattr(signal, f"SIG{sent.signal}", signal.SIGTERM))
                continue
            except (asyncssh.BreakReceived, asyncssh.TerminalSizeChanged):
                continue
            if not data:
                break
            stdin.write(data)
            await stdin.drain()
    stdin.close()


async def _pump(source: asyncio.StreamReader, sink: asyncssh.SSHWriter[bytes]) -> None:
    """A stream of the command to the client, at the client's pace."""
    with contextlib.suppress(ConnectionError, asyncssh.Error):
        while data := await source.read(_CHUNK):
            sink.write(data)
            await sink.drain()


def _tell(process: Process, status: int) -> None:
    """The exit status, or the signal that ended the command."""
    with contextlib.suppress(OSError, asyncssh.Error):
        if status < 0:
            process.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
        else:
            process.exit(status)


async def _hang_up(shell: asyncio.subprocess.Process) -> None:
    """End the command's group if it still runs: a channel that closes takes its command along."""
    for number in (signal.SIGHUP, signal.SIGKILL):
        if shell.returncode is not None:
            return
        _signal_group(shell.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_HANGUP_SECONDS):  # wait_for of Python 3.11 can lose a cancellation
                await asyncio.shield(shell.wait())


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return
