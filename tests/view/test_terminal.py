"""The real program on a real terminal: keys, signals, and a terminal that goes away."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEADLINE = 20.0
_SCREEN_ON, _SCREEN_OFF, _CURSOR_ON = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"


class Terminal:
    """A program on a pty whose output is collected."""

    def __init__(self, folder: Path) -> None:
        self.output = b""
        self.main, child = pty.openpty()
        os.set_blocking(self.main, False)
        subprocess.run(["stty", "rows", "30", "cols", "100"], stdin=child, check=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.view.program", str(folder)],
            stdin=child, stdout=child, stderr=child, cwd=ROOT, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
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
        self.until(lambda: self.process.poll() is not None and _SCREEN_OFF in self.output)

    def press(self, keys: bytes) -> None:
        os.write(self.main, keys)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    yield made
    if made.process.poll() is None:
        made.process.kill()
        made.process.wait()


def test_quit_leaves_the_terminal_clean_and_says_what_runs_on(terminal: Terminal) -> None:
    terminal.shows("SERVERS")
    terminal.press(b"q")
    terminal.ended()
    terminal.shows("running on")
    assert terminal.process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_leaves_the_terminal_clean(terminal: Terminal, number: signal.Signals) -> None:
    terminal.shows("SERVERS")
    terminal.process.send_signal(number)
    terminal.ended()
    assert terminal.process.returncode == 0
    assert terminal.output.rindex(_SCREEN_OFF) > terminal.output.index(_SCREEN_ON)
    assert _CURSOR_ON in terminal.output


def test_a_terminal_that_went_away_ends_it(terminal: Terminal) -> None:
    """The session's leader is the program, and the pty is not its controlling terminal: no SIGHUP comes."""
    terminal.shows("SERVERS")
    os.close(terminal.main)
    terminal.process.wait(DEADLINE)


def test_nothing_heavy_is_loaded_before_the_first_paint() -> None:
    code = "import sys, tui.view.app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"asyncssh", "pydantic", "plotext", "textual_plotext", "ruamel", "numpy", "click"}
    assert not heavy & set(loaded.stdout.split())
