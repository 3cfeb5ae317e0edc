"""Hosts' questions on a real terminal, and without one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.sshd import Sshd
from tests.terminal import Terminal

PASSPHRASE = "correct horse"
COMMAND = [sys.executable, "-m", "tui"]


@pytest.fixture
def profile(sshd: Sshd, tmp_path: Path) -> Path:
    """A host whose key nobody knows, and our key encrypted."""
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-P", "", "-N", PASSPHRASE, "-f", sshd.identity], check=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    path = tmp_path / "fleet.yaml"
    path.write_text(
        f"name: fleet\nhosts: {{box: {{ssh: '{sshd.address}', identity: {sshd.identity},"
        f" known_hosts: {tmp_path}/known, state_dir: {tmp_path}/state}}}}\n"
        "servers: {a: {host: box, port: 40123, args: {model-path: /m}}}\n"
    )
    return path


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home"), "SSH_AUTH_SOCK": "", "XDG_STATE_HOME": str(tmp_path / "home")}


@pytest.fixture
def terminal(request: pytest.FixtureRequest, profile: Path, env: dict[str, str]) -> Iterator[Terminal]:
    running = Terminal([*COMMAND, *request.param, str(profile)], env)
    yield running
    running.close()


def over(terminal: Terminal) -> int | None:
    terminal.until(lambda: terminal.process.poll() is not None)
    return terminal.process.returncode


@pytest.mark.parametrize("terminal", [["status"], ["runs"]], indirect=True)
def test_asked_as_ssh_asks(terminal: Terminal, tmp_path: Path) -> None:
    terminal.shows("ED25519 SHA256:")
    terminal.shows("(yes/no)")
    terminal.press(b"yes\n")
    terminal.shows("Passphrase for ")
    terminal.press(b"wrong\n")
    terminal.shows("does not open")
    terminal.until(lambda: terminal.output.count(b"Passphrase for ") == 2)
    terminal.press(PASSPHRASE.encode() + b"\n")
    assert over(terminal) == 0
    assert PASSPHRASE.encode() not in terminal.output and b"wrong" not in terminal.output
    assert (tmp_path / "known").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("terminal", [["status"]], indirect=True)
def test_no_is_an_answer(terminal: Terminal, tmp_path: Path) -> None:
    terminal.shows("(yes/no)")
    terminal.press(b"no\n")
    assert over(terminal) == 4
    assert not (tmp_path / "known").exists()


@pytest.mark.parametrize("terminal", [["status"]], indirect=True)
def test_ctrl_c_at_a_passphrase_leaves_a_terminal_that_echoes(terminal: Terminal) -> None:
    terminal.shows("(yes/no)")
    terminal.press(b"yes\n")
    terminal.shows("Passphrase for ")
    assert not termios.tcgetattr(terminal.main)[3] & termios.ECHO
    terminal.process.send_signal(signal.SIGINT)
    assert over(terminal) == 130
    assert termios.tcgetattr(terminal.main)[3] & termios.ECHO


@pytest.mark.parametrize("command", ["status", "check", "runs", "up"])
def test_without_a_terminal_nobody_is_asked(profile: Path, env: dict[str, str], tmp_path: Path, command: str) -> None:
    done = subprocess.run(
        [*COMMAND, command, str(profile)], env={**os.environ, **env}, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 4
    said = done.stdout + done.stderr
    assert "ED25519 SHA256:" in said and re.search(r"ssh -p \d+\s+127\.0\.0\.1", said)
    assert not (tmp_path / "known").exists()
