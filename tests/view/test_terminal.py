"""The real program on a real terminal: keys, signals, and a terminal that goes away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal import DEADLINE, ROOT, SCREEN_OFF, SCREEN_ON, Terminal

_CURSOR_ON = b"\x1b[?25h"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal([sys.executable, "-m", "tests.view.program", str(tmp_path)])
    yield made
    made.close()


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
    assert terminal.output.rindex(SCREEN_OFF) > terminal.output.index(SCREEN_ON)
    assert _CURSOR_ON in terminal.output


def test_a_terminal_that_went_away_ends_it(terminal: Terminal) -> None:
    """The session's leader is the program, and the pty is not its controlling terminal: no SIGHUP comes."""
    terminal.shows("SERVERS")
    os.close(terminal.main)
    terminal.process.wait(DEADLINE)


def test_nothing_heavy_is_loaded_before_the_first_paint() -> None:
    code = "import sys, tui.fleet.opening, tui.view.app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"asyncssh", "pydantic", "plotext", "textual_plotext", "ruamel", "numpy", "click"}
    tables = {"tui.sglang.parser", "tui.sglang.failure_table", "tui.sglang.advice", "tui.profile.load"}
    assert not (heavy | tables) & set(loaded.stdout.split())
