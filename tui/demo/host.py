"""The demo's SSH host: ``DemoHost`` starts it as its own process, ``serve`` keeps one up until interrupted."""

from __future__ import annotations

import errno
import json
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

_START_SECONDS = 20.0
_STOP_SECONDS = 10.0
_ROOT = Path(__file__).resolve().parents[2]
FILES = ("demo.yaml", "key", "known_hosts")
MARK = ".hcs-demo"  # in a folder that the demo may write again


class DemoError(Exception):
    """The demo cannot start, in the user's words."""


@dataclass(frozen=True, slots=True)
class DemoPaths:
    """Where the demo's files are: mode 0600, valid as long as the host runs."""

    profile: Path
    key: Path
    known_hosts: Path


class DemoHost:
    """An SSH host on 127.0.0.1 with simulated servers, in a process of its own. Ends with this object, or process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, folder: Path, servers: int = 4, speed: float = 1.0, *, load: bool = True) -> DemoPaths:
        """Bring the host up and write its files to ``folder``. Raises ``DemoError``, or ``OSError`` of ``prepare``."""
        folder = prepare(folder)
        command = [sys.executable, "-m", "tui.demo.embedded", str(folder), str(servers), str(speed), str(int(load))]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        try:
            self._await_up()
        except BaseException:
            self.stop()
            raise
        return DemoPaths(*(folder / name for name in FILES))

    def _await_up(self) -> None:
        process = self._process
        assert process is not None and process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], _START_SECONDS)
        line = process.stdout.readline() if ready else b""
        if not line or "port" not in json.loads(line):
            raise DemoError("the demo's SSH host did not come up")

    def stop(self) -> None:
        """End the host and every server that was started on it. May be called twice."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()  # the end of its stdin is the host's sign to end
        deadline = time.monotonic() + _STOP_SECONDS
        for end in (None, process.terminate, process.kill):
            if end:
                end()
            try:
                process.wait(max(0.5, deadline - time.monotonic()))
                return
            except subprocess.TimeoutExpired:
                continue

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def prepare(folder: Path) -> Path:
    """Make ``folder`` (0700) or take it as it is. Raises ``OSError`` with the file's name when it cannot be used, and
    rather than overwrite files of somebody else."""
    folder = folder.absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    foreign = [folder / name for name in FILES if os.path.lexists(folder / name)]
    if foreign and not (folder / MARK).is_file():
        raise FileExistsError(errno.EEXIST, "was not written by a demo; choose another folder", str(foreign[0]))
    (folder / MARK).touch(mode=0o600)
    return folder


def serve(folder: Path, servers: int = 4, speed: float = 1.0) -> None:
    """Keep a host up until interrupted (SIGINT or SIGTERM), its files in ``folder`` for as long."""
    import signal

    def interrupted(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    # SIGINT too: a shell starts its background jobs with it ignored.
    former = {number: signal.signal(number, interrupted) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with DemoHost() as host:
            paths = host.start(folder, servers, speed)
            print(
                f"the demo's host is up; try: hcs-tui up {paths.profile}   (Ctrl-C ends it)",
                file=sys.stderr,
                flush=True,
            )
            assert host._process is not None
            host._process.wait()
            raise DemoError("the demo's SSH host ended by itself")
    except KeyboardInterrupt:
        return
    finally:
        for kept, handler in former.items():
            signal.signal(kept, handler)
