"""A program on a terminal of its own, for tests of what a person sees."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEADLINE = 20.0  # seconds
SCREEN_ON, SCREEN_OFF = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    """A program on a pty whose output is collected."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self.output = b""
        self.main, child = pty.openpty()
        self.name = os.ttyname(child)
        os.set_blocking(self.main, False)
        subprocess.run(["stty", "rows", "30", "cols", "100"], stdin=child, check=True)
        self.process = subprocess.Popen(
            command,
            stdin=child, stdout=child, stderr=child, cwd=ROOT, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})},
        )  # fmt: skip
        os.close(child)

    def until(self, condition: Callable[[], bool]) -> None:
        """Read until ``condition`` holds; fails after the deadline."""
        end = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < end, self.output[-2000:]
            if select.select([self.main], [], [], 0.1)[0]:
                try:
                    self.output += os.read(self.main, 65536)
                except OSError:  # the other side is closed
                    self.process.wait(DEADLINE)

    def shows(self, text: str) -> None:
        self.until(lambda: text.encode() in self.output)

    def ended(self) -> None:
        self.until(lambda: self.process.poll() is not None and SCREEN_OFF in self.output)

    def press(self, keys: bytes) -> None:
        os.write(self.main, keys)

    def close(self) -> None:
        """End the program, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
