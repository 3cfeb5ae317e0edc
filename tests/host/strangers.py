"""Servers that somebody else started: real process trees that look like SGLang's, outside of any run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.ports import free_port, listens
from tests.processes import below, in_session, kill_now
from tests.waiting import DEADLINE, until

# The main process listens, names its children like SGLang's, and prints a line to stderr; SIGTERM ends it all.
LAUNCH_SERVER = """
import ctypes, os, signal, socket, sys, time
def child(name, *more):
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(15, name.encode()[:15] + b"\\0", 0, 0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for one in more:
            child(one)
        time.sleep(600)
    return pid
port = int(sys.argv[sys.argv.index("--port") + 1]) if "--port" in sys.argv else 0
names = os.environ.get("NAMES", "sglang::scheduler_TP0 sglang::scheduler_TP1 sglang::detokenizer").split()
children = [child(*name.split(">")) for name in names]
def stop(*_):
    if "STUBBORN" in os.environ:
        return
    for pid in children:
        os.kill(pid, 9)
    os._exit(0)
signal.signal(signal.SIGTERM, stop)
if port:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
os.write(2, b"up %d\\n" % os.getpid())
while True:
    if port:
        peer, _ = listener.accept()
        peer.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\nhello from %d" % os.getpid())
        peer.close()
    else:
        time.sleep(600)
"""


@dataclass
class Stranger:
    """A started server and everything below it."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def pids(self) -> list[int]:
        return [self.pid, *below(self.pid)]


def package(folder: Path) -> Path:
    """A folder for PYTHONPATH in which ``python -m sglang.launch_server`` is the stand-in."""
    inside = folder / "pkg" / "sglang"
    inside.mkdir(parents=True, exist_ok=True)
    (inside / "__init__.py").touch()
    (inside / "launch_server.py").write_text(LAUNCH_SERVER)
    return inside.parent


@contextmanager
def started(
    folder: Path,
    *flags: str,
    port: int | None = None,
    output: int | IO[bytes] | None = None,
    argv: Sequence[str] | None = None,
    env: dict[str, str] | None = None,
) -> Iterator[Stranger]:
    """``python -m sglang.launch_server …`` as from a script; what is left of it at the end is killed."""
    port = free_port() if port is None else port
    log = folder / f"server-{port}.log"
    words = argv or [sys.executable, "-m", "sglang.launch_server", "--model-path", "/models/tiny", *flags]
    words = [*words, "--port", str(port)] if port else list(words)
    environment = {**os.environ, "PYTHONPATH": str(package(folder)), **(env or {})}
    with log.open("wb") as file:
        process = subprocess.Popen(
            words, stdout=output or file, stderr=output or file, cwd=folder, env=environment, start_new_session=True
        )
    stranger = Stranger(process, port, log)
    try:
        until(lambda: len(stranger.pids()) > 1 and (not port or listens(port)))
        yield stranger
    finally:
        for pid in [*stranger.pids(), *in_session(stranger.pid)]:
            kill_now(pid)
        process.wait(DEADLINE)
