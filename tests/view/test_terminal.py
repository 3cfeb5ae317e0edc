"""The real program on a real terminal: keys, signals, and a terminal that goes away."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.geometry import Size

from tests.terminal import DEADLINE, ROOT, SCREEN_OFF, SCREEN_ON, Terminal, is_clean
from tests.waiting import eventually, until
from tui.view.terminal import SIGNALS, TerminalDriver

_CURSOR_ON = b"\x1b[?25h"


WITH_JOBS = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"


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


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_leaves_the_terminal_clean(terminal: Terminal, number: signal.Signals) -> None:
    terminal.shows("SERVERS")
    terminal.process.send_signal(number)
    terminal.ended()
    assert terminal.process.returncode == 128 + number
    is_clean(terminal.output)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_it_while_the_terminal_reads_nothing(terminal: Terminal, number: signal.Signals) -> None:
    """Keys make it draw until no write is taken any more; what it drew is thrown away, and the modes are off."""
    terminal.shows("SERVERS")

    def stuck() -> bool:
        terminal.press(b"w" if terminal.takes_more() else b"")
        return not terminal.takes_more()

    until(stuck)
    terminal.process.send_signal(number)
    assert terminal.process.wait(DEADLINE) == 128 + number
    terminal.until(lambda: SCREEN_OFF in terminal.output and _CURSOR_ON in terminal.output)
    is_clean(terminal.output)


def test_a_terminal_that_went_away_ends_it(terminal: Terminal) -> None:
    """The session's leader is the program, and the pty is not its controlling terminal: no SIGHUP comes."""
    terminal.shows("SERVERS")
    os.close(terminal.main)
    assert terminal.process.wait(DEADLINE) == 128 + signal.SIGHUP


def test_ctrl_z_gives_the_shell_back_and_fg_draws_again(tmp_path: Path) -> None:
    shell = Terminal(
        [sys.executable, "-c", WITH_JOBS, "bash", "--norc", "--noprofile", "--noediting", "-i"], {"PS1": "shell$ "}
    )
    try:
        shell.shows("shell$")
        shell.press(f"{sys.executable} -m tests.view.program {tmp_path}\r".encode())
        shell.shows("SERVERS")
        shell.press(b"\x1a")
        shell.shows("Stopped")
        is_clean(shell.output)
        shell.output = b""
        shell.press(b"stty -a | grep -o ' icanon'\r")  # a raw terminal would say -icanon
        shell.until(lambda: b" icanon\n" in shell.output.replace(b"\r", b""))
        shell.press(b"fg\r")
        shell.until(lambda: all(text.encode() in shell.output.rpartition(SCREEN_ON)[2] for text in _STANDING))
        shell.press(b"q")
        shell.shows("running on")
        shell.press(b"echo left=$?\r")
        shell.shows("left=0")
        is_clean(shell.output)
        shell.output = b""
        shell.press(b"stty -a | grep -o ' icanon'; exit\r")
        shell.until(lambda: b" icanon\n" in shell.output.replace(b"\r", b""))
    finally:
        shell.close()


@pytest.mark.parametrize("leave", ["key", "signal"])
def test_what_newer_terminals_offer_is_given_back(terminal: Terminal, leave: str) -> None:
    """Whole frames, the size told in the stream, and the mouse in pixels: a size of no pixels divides nothing."""
    terminal.shows("SERVERS")
    terminal.press(b"\x1b[?2026;2$y\x1b[?2048;2$y\x1b[48;30;100;0;0t")
    terminal.until(lambda: all(terminal.output.count(b"\x1b[?%dh" % mode) for mode in (2026, 2048, 1016)))
    terminal.press(b"\x1b[<0;5;5M\x1b[<0;5;5m")
    terminal.answers(b"?", "scroll · Esc closes")
    if leave == "key":
        terminal.press(b"\x1b[27uq")
    else:
        terminal.process.terminate()
    terminal.ended()
    assert terminal.process.returncode == (0 if leave == "key" else 143)
    for mode in (2026, 2048, 1016):
        assert terminal.output.rfind(b"\x1b[?%dl" % mode) > terminal.output.rfind(b"\x1b[?%dh" % mode)
    is_clean(terminal.output)


def test_where_nobody_could_bring_it_back_it_stays(terminal: Terminal) -> None:
    terminal.shows("SERVERS")
    terminal.press(b"\x1a")
    terminal.shows("no shell")
    terminal.press(b"q")
    terminal.ended()
    assert terminal.process.returncode == 0


def test_after_a_stop_that_nobody_announced_it_still_ends_clean(terminal: Terminal) -> None:
    terminal.shows("SERVERS")
    terminal.process.send_signal(signal.SIGSTOP)
    os.waitpid(terminal.process.pid, os.WUNTRACED)
    terminal.output = b""
    terminal.process.send_signal(signal.SIGCONT)
    terminal.until(lambda: b"SERVERS" in terminal.output.partition(SCREEN_OFF)[2].partition(SCREEN_ON)[2])
    terminal.press(b"q")
    terminal.shows("running on")
    terminal.ended()
    assert terminal.process.returncode == 0
    is_clean(terminal.output)


_STANDING = ("SERVERS", "┏", "┓", "┗", "┛", "╭", "╰")  # also what only the first paint draws
_COLOURS = re.compile(rb"[34]8;(?:2;(\d+);(\d+);(\d+)|5;\d+)")


@pytest.mark.parametrize(
    ("env", "kinds"),
    [
        ({}, {"24 bit"}),
        ({"NO_COLOR": "1"}, {"grey"}),
        ({"COLORTERM": ""}, {"256"}),
        ({"COLORTERM": "", "TERM": "xterm"}, set()),
    ],
)
def test_colours_are_those_that_the_terminal_has(tmp_path: Path, env: dict[str, str], kinds: set[str]) -> None:
    """What a terminal of 16 colours is sent are none of the others; NO_COLOR leaves greys."""
    terminal = Terminal([sys.executable, "-m", "tests.view.program", str(tmp_path)], env)
    try:
        terminal.shows("SERVERS")
        terminal.press(b"q")
        terminal.ended()
    finally:
        terminal.close()
    found = {rgb if rgb[0] else None for rgb in _COLOURS.findall(terminal.output)}
    seen = {"256" if rgb is None else "grey" if len(set(rgb)) == 1 else "24 bit" for rgb in found}
    assert seen - {"grey"} == kinds - {"grey"} and (seen or not kinds)


def test_nothing_heavy_is_loaded_before_the_first_paint() -> None:
    code = "import sys, tui.fleet.opening, tui.view.app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"asyncssh", "pydantic", "plotext", "textual_plotext", "ruamel", "numpy", "click"}
    tables = {"tui.sglang.parser", "tui.sglang.failure_table", "tui.sglang.advice", "tui.profile.load"}
    assert not (heavy | tables) & set(loaded.stdout.split())


@pytest.mark.parametrize("alt_c", [b"\x1bc", b"\x1b[99;3u"], ids=["legacy", "kitty"])
def test_alt_and_a_letter_is_a_key_while_a_line_is_typed(terminal: Terminal, alt_c: bytes) -> None:
    terminal.shows("SERVERS")
    terminal.answers(b"/queue", "[ ] case")
    terminal.answers(alt_c, "[x] case")
    terminal.answers(b"\r", "/queue case counts")


def test_the_first_frame_of_a_view_tells_what_is_known(terminal: Terminal) -> None:
    terminal.shows("SERVERS")
    for key, title in ((b"c", "KV cache in use"), (b"h", "HOSTS")):
        terminal.answers(key, title)
        assert b"00:00:00" not in terminal.output and b"no figures yet" not in terminal.output
        terminal.answers(b"\x1b[27u", "SERVERS")


async def test_the_newest_size_is_told_last() -> None:
    """Also when it changes while the one before is looked at."""

    class Driver(TerminalDriver):
        _in_band_window_resize = False

        def __init__(self) -> None:
            self.told: list[Size] = []
            self._app: Any = self  # its app here
            self._sizes = [(1, 1), (100, 30)]

        def _get_terminal_size(self) -> tuple[int, int]:
            size = self._sizes.pop(0)
            if self._sizes:
                os.kill(os.getpid(), signal.SIGWINCH)
            return size

        def post_message(self, event: events.Resize) -> None:
            self.told.append(event.size)

    driver = Driver()
    driver._hear_of_sizes()
    os.kill(os.getpid(), signal.SIGWINCH)
    await eventually(lambda: len(driver.told) == 2)
    assert driver.told == [(1, 1), (100, 30)]
    asyncio.get_running_loop().remove_signal_handler(signal.SIGWINCH)
