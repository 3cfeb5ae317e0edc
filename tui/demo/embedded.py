"""The embedded SSH host: ``python -m tui.demo.embedded FOLDER SERVERS SPEED LOAD``, started by ``DemoHost``.

It listens on 127.0.0.1 only, accepts one key that it made itself, is the simulated host by whose name one logs in, and
ends when its stdin does. Everything that was started on it ends with it: it is the subreaper of all that detaches.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import asyncssh

from tui.demo.fleet import HARDWARE, DemoServer, hosts, plan, profile
from tui.demo.load import keep_busy
from tui.demo.machine import Machine
from tui.demo.reaper import end_descendants, reap_orphans
from tui.demo.shell import LoopbackServer, Shells

_PR_SET_CHILD_SUBREAPER = 36
_REFRESH_SECONDS = 0.2  # the agent looks twice a second


def _write(path: Path, data: bytes) -> None:
    """Write a file that only the user may read, whatever stood there before."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    scratch.replace(path)


async def _stdin_ends() -> None:
    """Return when the one who started this process is gone, or asks for the end."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()

    def readable() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            over.set()

    loop.add_reader(0, readable)
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, over.set)
    loop.add_signal_handler(signal.SIGINT, lambda: None)  # Ctrl-C is for the one who started us
    await over.wait()


async def run(folder: Path, count: int, speed: float, load: bool, home: Path) -> None:
    """Serve until stdin ends."""
    client, server = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    ports = contextlib.ExitStack()
    servers = plan(count, ports)
    machines = _machines(servers, home)
    shells = Shells(machines)
    acceptor = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[server],
        authorized_client_keys=asyncssh.import_authorized_keys(client.export_public_key().decode()),
        server_factory=LoopbackServer,
        process_factory=shells.run,
        sftp_factory=True,
        encoding=None,
        allow_pty=False,
        password_auth=False,
        kbdint_auth=False,
        agent_forwarding=False,
        x11_forwarding=False,
        config=None,
        login_timeout=30,
        keepalive_interval=15,
    )
    port = acceptor.get_port()
    known = f"[127.0.0.1]:{port} {server.export_public_key().decode().strip()}\n"
    _write(folder / "key", client.export_private_key())
    _write(folder / "known_hosts", known.encode())
    _write(folder / "demo.yaml", profile(servers, port, folder, speed).encode())
    with contextlib.suppress(BrokenPipeError):  # whoever started us has left already: then stdin has ended too
        os.write(1, json.dumps({"port": port, "pid": os.getpid(), "home": str(home)}).encode() + b"\n")
    tasks = [asyncio.create_task(reap_orphans(shells.pids)), asyncio.create_task(_keep_fresh(machines.values()))]
    if load:
        tasks.append(asyncio.create_task(keep_busy(servers)))
    try:
        await _stdin_ends()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        acceptor.close()
        await shells.close()
        ports.close()


def _machines(servers: Sequence[DemoServer], home: Path) -> dict[str, Machine]:
    """The simulated hosts by name, each in a home of its own."""
    machines = {name: Machine(home / name / ".machine") for name in hosts(servers)}
    for machine in machines.values():
        machine.build(HARDWARE)
    return machines


async def _keep_fresh(machines: Iterable[Machine]) -> None:
    while True:
        for machine in machines:
            machine.refresh()
        await asyncio.sleep(_REFRESH_SECONDS)


def main(argv: list[str]) -> int:
    """Run the host in a home that is removed at the end, after everything that was started there."""
    folder, count, speed, load = Path(argv[0]), int(argv[1]), float(argv[2]), argv[3] == "1"
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.umask(0o077)
    home = Path(tempfile.mkdtemp(prefix="hcs-demo-home-"))
    try:
        asyncio.run(run(folder, count, speed, load, home))
    finally:
        end_descendants()
        for name in ("demo.yaml", "key", "known_hosts"):
            with contextlib.suppress(OSError):
                (folder / name).unlink()
        shutil.rmtree(home, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
