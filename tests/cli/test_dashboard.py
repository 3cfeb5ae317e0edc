"""``hcs-tui PROFILE`` on a real terminal: its servers are shown; a wrong one leaves nothing but its mistakes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.terminal import DEADLINE, ROOT, SCREEN_OFF, SCREEN_ON, Terminal

MAIN = "from tui.cli.main import main; main()"
Open = Callable[..., Terminal]


@pytest.fixture
def hcs_tui(tmp_path: Path) -> Iterator[Open]:
    opened: list[Terminal] = []

    def start(*words: str, **more: str) -> Terminal:
        env = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": str(tmp_path)}
        opened.append(Terminal([sys.executable, "-c", MAIN, *words], {**env, **more}))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def left(terminal: Terminal) -> bytes:
    """What stands on the terminal after the dashboard's screen was left."""
    return terminal.output.rpartition(SCREEN_OFF)[2] if SCREEN_OFF in terminal.output else b""


def test_the_servers_of_a_profile_and_its_warnings_at_the_end(hcs_tui: Open, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "hosts: {box: {ssh: 'nobody@127.0.0.1:1'}}\n"
        "defaults: {host: box, args: {model-path: /m, max-num-seqs: 1}}\n"
        "servers: {first-seen: {port: 30000}}\n"
    )
    terminal = hcs_tui(str(path))
    terminal.shows("first-seen")
    terminal.press(b"q")
    terminal.ended()
    assert terminal.process.returncode == 0
    terminal.until(lambda: b"warning: " in left(terminal))


def test_every_mistake_of_a_wrong_profile_is_left_and_nothing_else(hcs_tui: Open, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("servers:\n  a: {host: nowhere, port: 0}\n  b: 1\n")
    terminal = hcs_tui(str(path))
    terminal.ended()
    assert terminal.process.returncode == 2
    terminal.until(lambda: left(terminal).count(f"{path}:2: ".encode()) == 3)
    terminal.until(lambda: left(terminal).count(f"{path}:3: ".encode()) == 1)
    assert b"SERVERS" not in left(terminal) and b"Traceback" not in terminal.output


def test_a_file_that_is_not_there_opens_no_screen(hcs_tui: Open) -> None:
    terminal = hcs_tui("none.yaml")
    terminal.shows("none.yaml: no such file")
    assert terminal.process.wait(DEADLINE) == 2
    assert SCREEN_ON not in terminal.output


def test_without_a_profile_one_is_chosen_and_opened(hcs_tui: Open, tmp_path: Path) -> None:
    folder = tmp_path / "hcs-tui"
    folder.mkdir()
    (folder / "config.yaml").write_text("theme: light\n")
    (folder / "zebra.yaml").write_text(
        "# Striped\nhosts: {box: {ssh: 'nobody@127.0.0.1:1'}}\ndefaults: {host: box, args: {model-path: /m}}\n"
        "servers: {first-seen: {port: 30000}}\n"
    )
    (folder / "broken.yaml").write_text("servers:\n  a: {port: 0}\n")
    terminal = hcs_tui()
    terminal.shows("Which profile?")
    terminal.shows("Striped")
    terminal.shows("broken.yaml:2: servers.a: no host")
    terminal.press(b"zebra")
    terminal.shows("zebra.yaml")
    terminal.press(b"\r")
    terminal.shows("first-seen")
    terminal.press(b"q")
    terminal.ended()
    assert terminal.process.returncode == 0


def test_what_is_typed_before_the_picker_is_there_is_for_the_picker(hcs_tui: Open, tmp_path: Path) -> None:
    terminal = hcs_tui()
    terminal.press(b"zplain")
    terminal.shows("no profile matches “zplain”")
    terminal.press(b"\x1b[27u\x1b[27u")
    terminal.ended()
    assert terminal.process.returncode == 0


def test_leaving_the_picker_is_no_failure(hcs_tui: Open) -> None:
    terminal = hcs_tui()
    terminal.shows("Which profile?")
    terminal.press(b"\x1b")
    terminal.ended()
    assert terminal.process.returncode == 0


@pytest.mark.parametrize(
    "homes",
    [{"HOME": "/dev/null"}, {"HOME": "/nowhere/at/all"}, {"HCS_HOME": "/proc/x"},
     {f"XDG_{kind}_HOME": "/dev/full" for kind in ("CACHE", "STATE", "CONFIG")}],
    ids=str,
)  # fmt: skip
def test_without_a_folder_to_write_to_it_watches_all_the_same(
    hcs_tui: Open, tmp_path: Path, homes: dict[str, str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "hosts: {here: {ssh: local}}\nservers: {first-seen: {host: here, port: 30000, command: [/bin/true]}}\n"
    )
    terminal = hcs_tui(str(path), **homes)
    terminal.shows("first-seen")
    terminal.answers(b"h", "connected")
    terminal.press(b"\x1b[27uq")
    terminal.ended()
    assert terminal.process.returncode == 0 and b"Traceback" not in terminal.output


@pytest.mark.parametrize("words", [(), ("plain",)])
def test_broken_settings_are_one_line_and_open_no_screen(hcs_tui: Open, tmp_path: Path, words: tuple[str, ...]) -> None:
    path = tmp_path / "hcs-tui" / "config.yaml"
    path.parent.mkdir()
    path.write_text("theme: dark\nbel: false\n")
    terminal = hcs_tui(*words)
    terminal.shows(f"{path}:2: bel: unknown key; did you mean 'bell'?")
    assert terminal.process.wait(DEADLINE) == 2
    assert SCREEN_ON not in terminal.output and b"Traceback" not in terminal.output


def test_without_a_terminal_there_is_no_picker() -> None:
    told = subprocess.run([sys.executable, "-c", MAIN], stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE)
    assert told.returncode == 2 and told.stderr.count(b"\n") == 1 and b"needs a terminal" in told.stderr


NO_UTF8 = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("words", [["demo"], ["replay", "a.log"], [], ["a.yaml"]])
@pytest.mark.parametrize(("env", "said"), [({"TERM": "dumb"}, "TERM=dumb cannot"), (NO_UTF8, "needs a UTF-8 locale")])
def test_a_terminal_that_cannot_show_it_is_told_in_one_line(
    hcs_tui: Open, tmp_path: Path, words: list[str], env: dict[str, str], said: str
) -> None:
    (tmp_path / "a.log").write_text("Load weight begin. avail mem=9.00 GB\n")
    (tmp_path / "a.yaml").write_text(
        "hosts: {box: {ssh: 'nobody@127.0.0.1:1'}}\nservers: {a: {host: box, port: 30000, args: {model-path: /m}}}\n"
    )
    terminal = hcs_tui(*(str(tmp_path / word) if "." in word else word for word in words), **env)
    terminal.until(lambda: terminal.process.poll() is not None)
    assert terminal.process.returncode == 2
    terminal.until(lambda: terminal.output.endswith(b"\n"))
    assert said.encode() in terminal.output and terminal.output.count(b"\n") == 1 and b"\x1b" not in terminal.output


def test_ascii_alone_goes_to_a_terminal_of_any_encoding(hcs_tui: Open, tmp_path: Path) -> None:
    log = tmp_path / "saved.log"
    log.write_text("Load weight begin. avail mem=9.00 GB \N{BLACK STAR}\n")
    terminal = hcs_tui("replay", "--ascii", str(log), **NO_UTF8)
    terminal.shows("SERVERS")
    terminal.shows("Load weight")
    terminal.press(b"q")
    terminal.ended()
    assert terminal.process.returncode == 0 and terminal.output.isascii()
