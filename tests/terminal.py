"""A program on a terminal of its own, for tests of what a person sees."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEADLINE = 60.0  # seconds; only a test that fails takes as long
SCREEN_ON, SCREEN_OFF = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    """A program on a pty whose output is collected."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str] | None = None, *, size: tuple[int, int] = (100, 30)
    ) -> None:
        self.output = b""
        self.main, child = pty.openpty()
        self.name = os.ttyname(child)
        os.set_blocking(self.main, False)
        set_size(child, *size)
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
                    assert condition(), self.output[-2000:]

    def shows(self, text: str) -> None:
        self.until(lambda: text.encode() in self.output)

    def ended(self) -> None:
        self.until(lambda: self.process.poll() is not None and SCREEN_OFF in self.output)

    def press(self, keys: bytes) -> None:
        """Type keys; while the program is slow to read them, what it draws is read."""
        while keys:
            try:
                keys = keys[os.write(self.main, keys) :]
            except BlockingIOError:
                self.until(lambda: bool(select.select([], [self.main], [], 0)[1]))

    def answers(self, keys: bytes, text: str) -> None:
        """Press keys; what is painted from then on shows ``text``."""
        self.until(lambda: not select.select([self.main], [], [], 0)[0])
        self.output = b""
        self.press(keys)
        self.shows(text)

    def takes_more(self) -> bool:
        """Whether a program can write to it without waiting for somebody to read."""
        file = os.open(self.name, os.O_RDWR | os.O_NOCTTY)
        try:
            return bool(select.select([], [file], [], 0)[1])
        finally:
            os.close(file)

    def resize(self, columns: int, rows: int) -> None:
        set_size(self.main, columns, rows)
        self.process.send_signal(signal.SIGWINCH)

    def close(self) -> None:
        """End the program, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def set_size(file: int, columns: int, rows: int) -> None:
    fcntl.ioctl(file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def is_clean(output: bytes) -> None:
    """Whether each mode that was turned on was turned off after that."""
    for mode in (b"1049", b"1000", b"1003", b"1006", b"1015", b"1016", b"2004", b"1004", b"2048", b"2026"):
        on = output.rfind(b"\x1b[?" + mode + b"h")
        assert on < 0 or output.rfind(b"\x1b[?" + mode + b"l") > on, mode
    assert output.rindex(b"\x1b[?25h") > output.rfind(b"\x1b[?25l") and SCREEN_OFF in output
