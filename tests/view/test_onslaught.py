"""The real program on a real terminal under bad input: nothing of it reaches the terminal, keys are answered, and it
ends clean."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.escapes import leaked
from tests.terminal import Terminal, is_clean
from tests.view.test_hostile import ALL, HOSTILE
from tui.view.actions import ACTS

MAIN = ("-c", "from tui.cli.main import main; main()")
PROGRAM = ("-m", "tests.view.program")
ESC = b"\x1b[27u"  # as kitty sends it: not the beginning of anything else
CODES = {
    "escape": ESC, "slash": b"/", "question_mark": b"?", "left_square_bracket": b"[", "right_square_bracket": b"]",
    "up": b"\x1b[A", "down": b"\x1b[B", "pageup": b"\x1b[5~", "pagedown": b"\x1b[6~", "home": b"\x1b[H",
    "end": b"\x1b[F", "tab": b"\t",
}  # fmt: skip
LEFT_OUT = {"quit", "suspend", "save_log", "command_palette"}  # they end it, or write files
KEYS = [CODES.get(key) or key.encode() for act in ACTS if act.id not in LEFT_OUT for key in act.keys.split(",")]
PASTE = b"\x1b[200~" + b"Ky\nRlB\x1b[31mKRlB" + b"\x1b" + b"KyRlBq" * 20 + b"\x1b[201~"
ODD = [
    b"\r", b" ", b"n", b"N", b"y", b"a", b"g", b"G", b"\x1bc", b"\x12", b"\x03", b"\x1b[Z", b"\x7f", b"\x1b",
    b"\x1b[1;5C", b"\xff", b"\xc3\xa9", b"\x1b[M !!", b"\x1b[M\xff\xff\xff", b"\x1b[99999999999;1u", b"\x1b[I",
    b"\x1b[O", b"\x1b[200~", b"\x1b[201~", PASTE,
]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["\x1b[2J", "\x1b]0;owned\x07", "\x1b]8;;http://x\x07", "\x08", "\u202e", "\x9b1m", "\r", "\0"]
)
def test_what_leaks_is_seen(text: str) -> None:
    assert leaked(f"\x1b[1;1Hbefore {text} after\r\n".encode())


class Watched(Terminal):
    """Whose output is looked through for what leaked."""

    def answers(self, keys: bytes, text: str) -> None:
        assert not leaked(self.output)
        super().answers(keys, text)


@contextmanager
def opened(*words: str, size: tuple[int, int] = (100, 30)) -> Iterator[Watched]:
    """The program; at its end it must answer keys and leave, clean and without a leak."""
    terminal = Watched([sys.executable, *words], {"LC_ALL": "C.UTF-8"}, size=size)
    try:
        terminal.shows("SERVERS")
        yield terminal
        terminal.press(ESC * 12)
        terminal.answers(b"?", "scroll · Esc closes")
        terminal.press(ESC + b"q")
        terminal.ended()
        assert terminal.process.returncode == 0, terminal.output[-2000:]
        is_clean(terminal.output)
        assert not leaked(terminal.output)
    finally:
        terminal.close()


def mouse(chance: random.Random) -> bytes:
    button = chance.choice((0, 2, 4, 16, 35, 64, 65, 66, 99, 200))
    return b"\x1b[<%d;%d;%d%c" % (button, chance.randint(-2, 130), chance.randint(-2, 40), chance.choice(b"mM"))


@pytest.mark.parametrize("seed", [1, 2])
def test_keys_hammered_in_a_flood(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with opened(*PROGRAM, str(tmp_path), "--flood") as terminal:
        for _ in range(24):
            burst = [chance.choice((*KEYS, *ODD)) if chance.random() < 0.9 else mouse(chance) for _ in range(10)]
            terminal.press(b"".join(burst))
        terminal.press(b"\x1b[201~")  # ends a paste that was begun


SIZES = [(1, 1), (500, 200), (3, 2), (1, 60), (200, 1), (20, 5), (300, 80), (2, 2), (60, 20)]


def test_resizes_in_a_flood(tmp_path: Path) -> None:
    with opened(*PROGRAM, str(tmp_path), "--flood") as terminal:
        for columns, rows in SIZES:
            terminal.resize(columns, rows)
            terminal.press(b"wz" + ESC + b"wc" + ESC + b"h" + ESC + b"K" + ESC + b"/x" + ESC + b"?" + ESC + b"j")
            terminal.until(lambda: bool(terminal.output))
        terminal.resize(100, 30)


def test_64_servers_on_a_small_terminal_in_a_flood(tmp_path: Path) -> None:
    with opened(*PROGRAM, str(tmp_path), "--servers", "64", "--flood", size=(60, 20)) as terminal:
        terminal.answers(b"jj" * 40, "gpu63")
        terminal.answers(b"wbsz" + ESC + b"1" * 9 + b"ogpu41\r", "gpu41")
        terminal.press(b"chBHA" + ESC * 6)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A log that is one of a server, and has everything in it that a terminal might obey."""
    chance = random.Random(5)
    path = tmp_path / "hostile.log"
    texts = [text.encode("utf-8", "surrogatepass") for text in (*HOSTILE, ALL)]
    with path.open("wb") as file:
        file.write(b"[2025-11-30 02:34:12] Load weight begin. avail mem=94.41 GB\n" * 2000)
        for n in range(3000):
            noise = chance.randbytes(chance.randint(0, 200))
            file.write(b"line %d " % n + b"".join(chance.choices(texts, k=3)) + noise + b"\n")
        file.write(b"\x1b]52;c;b3duZWQ=" + b"A" * 9000 + b"\x1b[" + b"1;" * 5000 + b"\n" + b"\x00" * 9000 + b"\n")
        file.write("\u202e".encode() * 5000 + b"\n" + b"\xff" * 20000 + b"\rlast\n\x1b[")
    return path


def test_a_log_of_escapes(hostile: Path) -> None:
    with opened(*MAIN, "replay", str(hostile)) as terminal:
        terminal.shows("last")
        terminal.answers(b"/owned\r", "/owned")
        terminal.press(b"NNnnzWTTWfffffpv\x1b[1;2A\x1b[1;2AYv" + b"\x1b[5~" * 9 + b"\x1b[H" + b"\x1b[6~" * 9 + b"[[]]")
        terminal.press(ESC * 3 + b"iwn\r" + b"w" + ESC + b"c" + ESC + b"h" + ESC + b"y" + b"\x1b[F")
        terminal.answers(ESC * 3 + b"xzzz\r", "xzzz"[1:])


def test_a_line_of_100_mb(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    with path.open("wb") as file:
        file.write(b"[2025-11-30 02:34:12] Load weight begin. avail mem=94.41 GB\nthe line before\n")
        for _ in range(100):
            file.write(b"0123456789abcdef" * 65536)
        file.write(b"needle\nthe line behind\n")
    with opened(*MAIN, "replay", str(path)) as terminal:
        terminal.shows("the line behind")
        terminal.answers(b"\x1b[H", "the line before")
        terminal.answers(b"\x1b[F", "following")
        terminal.press(b"WfWfwwz" + b"\x1b[5~" * 5 + b"\x1b[6~" * 5 + b"v\x1b[AYv")
        terminal.answers(b"/before\r", "/before")
        terminal.answers(b"iline\r", "line")


def test_what_is_pasted_is_never_a_key(tmp_path: Path) -> None:
    with opened(*PROGRAM, str(tmp_path)) as terminal:
        terminal.press(PASTE)
        terminal.answers(b"?", "scroll · Esc closes")  # it has read all of it
        terminal.press(PASTE + ESC)
        for view in (b"w", b"c", b"h", b"z"):
            terminal.press(view + PASTE + ESC)
        terminal.answers(b"K" + PASTE, "Kill gpu0?")
        terminal.press(b"n/\x1b[200~need")
        terminal.press(b"le\x1b[20")
        terminal.answers(b"1~", "needle")
    assert (tmp_path / "acted").read_text() == ""
