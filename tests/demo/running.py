"""A simulated server under test: a real process whose log is read from a pipe."""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.ports import free_port

SECONDS = 30.0  # a deadline, not a duration
FAST = "500"


class Running:
    """One server process; ``log`` is everything it printed so far."""

    def __init__(self, *argv: str, speed: str = FAST) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "tui.demo.server", "--port", str(self.port), "--speed", speed, *argv]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
        )
        self.log = ""

    def read_until(self, pattern: str) -> str:
        """Wait for a line that matches; fails when the log ends first, or after the deadline."""
        deadline = time.monotonic() + SECONDS
        while not re.search(pattern, self.log, re.MULTILINE):
            if not self._read(deadline):
                raise AssertionError(f"no {pattern!r} in\n{self.log[-3000:]}")
        return self.log

    def read_to_end(self) -> str:
        """Everything until all processes of the server are gone."""
        deadline = time.monotonic() + SECONDS
        while self._read(deadline):
            pass
        return self.log

    def _read(self, deadline: float) -> bool:
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise AssertionError(f"the log stands still:\n{self.log[-3000:]}")
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        self.log += data.decode()
        return bool(data)

    def ready(self) -> str:
        return self.read_until("ready to roll")

    def end(self) -> int:
        """The exit status, negative for a signal, once the log has ended."""
        self.read_to_end()
        return self.process.wait(SECONDS)

    def children(self) -> dict[str, int]:
        """Name → pid of the server's children."""
        pids = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return {Path(f"/proc/{pid}/comm").read_text().strip(): int(pid) for pid in pids}

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        status, body = self.ask("GET", path)
        assert status == 200, (path, status)
        return json.loads(body)


@contextmanager
def running(*argv: str, speed: str = FAST) -> Iterator[Running]:
    """A server for the length of the block; its children die with it."""
    server = Running(*argv, speed=speed)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait(SECONDS)
        assert server.process.stdout is not None
        server.process.stdout.close()
