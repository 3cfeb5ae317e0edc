"""Signals in every view and with each dialog open, and before anything was painted: the exit code tells which, and the
terminal is clean."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from tests.escapes import leaked
from tests.terminal import DEADLINE, SCREEN_ON, Terminal, is_clean
from tui.view.terminal import SIGNALS

VIEWS = {
    b"w": "WALL",
    b"c": "tokens per second",
    b"K": "Kill gpu0?",
    b"E": "with other flags",
    b"H": "Runs of gpu0",
    b"\x10": "Search for commands",
    b"\x13": "readable by you alone",
    b"/": "Enter finds",
    b"o": "Enter keeps",
}


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal([sys.executable, "-m", "tests.view.program", str(tmp_path)])
    yield made
    made.close()


def ends(terminal: Terminal, number: int) -> None:
    terminal.process.send_signal(number)
    terminal.ended()
    assert terminal.process.returncode == 128 + number, terminal.output[-2000:]
    assert b"Traceback" not in terminal.output and not leaked(terminal.output)
    is_clean(terminal.output)


@pytest.mark.parametrize(("keys", "number"), zip(VIEWS, cycle(SIGNALS), strict=False))
def test_in_every_view(terminal: Terminal, keys: bytes, number: int) -> None:
    terminal.shows("SERVERS")
    terminal.press(keys)
    terminal.shows(VIEWS[keys])
    ends(terminal, number)


@pytest.mark.parametrize("number", SIGNALS)
def test_before_the_first_paint(terminal: Terminal, number: int) -> None:
    """The first escape is there; the servers are not."""
    terminal.until(lambda: SCREEN_ON in terminal.output)
    ends(terminal, number)


def test_a_lost_terminal_with_a_dialog_open(terminal: Terminal) -> None:
    terminal.shows("SERVERS")
    terminal.press(b"K")
    terminal.shows("Kill gpu0?")
    os.close(terminal.main)
    assert terminal.process.wait(DEADLINE) == 129
