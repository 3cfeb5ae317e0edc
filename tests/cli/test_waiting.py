"""Hosts that do not answer: every command says whom it waits for, and ends with exit code 4 and the reason."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.test_frame import ROOT, hcs_tui
from tests.host.sshd import Sshd, start_sshd
from tests.ports import free_port
from tests.waiting import until

PATIENCE = 90  # seconds for a program to end
# The program with less patience than people have. Its own module is named, as the file is run as one.
HASTY = """
from tui.cli import waiting
from tui.cli.main import main
from tui.host import wording
wording.LOGIN_SECONDS, waiting.QUIET_SECONDS, waiting.AGAIN_SECONDS = 3, 0.2, 1.0
main()
"""
DEAF_RESOLVER = f"""
import socket, time
real = socket.getaddrinfo
def resolve(*words, **named):
    if "some-host.test" in words and not named.get("flags"):  # what asks whether it is a number needs no resolver
        time.sleep({PATIENCE * 10})
    return real(*words, **named)
socket.getaddrinfo = resolve
"""
COMMANDS = {
    "status": ("status", "P"), "up": ("up", "P"), "down": ("down", "P"), "relaunch": ("relaunch", "P", "a"),
    "logs": ("logs", "P", "a"), "runs": ("runs", "P"), "check": ("check", "P"), "forward": ("forward", "P", "a"),
}  # fmt: skip
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('The server is fired up and ready to roll!', flush=True); time.sleep(600)"
)


def write(folder: Path, server: Sshd, address: str, servers: int = 2) -> Path:
    login = {"identity": server.identity, "known_hosts": server.known_hosts, "state_dir": str(folder / "state")}
    names = "abcdefgh"[:servers]
    text = {
        "name": "p", "hosts": {"box": {"ssh": address, "python": sys.executable, **login}},
        "defaults": {"host": "box", "command": [sys.executable, "-c", STUBBORN]},
        "servers": {name: {"port": free_port()} for name in names},
    }  # fmt: skip
    path = folder / "p.yaml"
    path.write_text(json.dumps(text))
    return path


def begun(path: Path, *words: str, code: str = HASTY) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HCS_HOME": str(path.parent / "home"), "SSH_AUTH_SOCK": ""}
    line = [sys.executable, "-c", code, *(str(path) if word == "P" else word for word in words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, env=env)


def heard(program: subprocess.Popen[str], words: str) -> list[str]:
    """The lines on stderr up to the one that holds ``words``; the program's end fails the test."""
    assert program.stderr
    lines: list[str] = []
    for line in program.stderr:
        lines.append(line)
        if words in line:
            return lines
    raise AssertionError(lines)


@contextmanager
def resetting() -> Iterator[int]:
    """A port whose connections are reset as soon as they are made."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                peer.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)


@contextmanager
def deaf(server: Sshd) -> Iterator[int]:
    """An sshd that takes connections and says nothing, like one behind a firewall that swallows all that follows."""
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        yield server.port
    finally:
        os.kill(server.process.pid, signal.SIGCONT)


def test_every_command_says_whom_it_waits_for_and_why_it_ends(sshd: Sshd, tmp_path: Path) -> None:
    with deaf(sshd) as port:
        for name, out, err in all_end(write(tmp_path, sshd, f"{sshd.user}@127.0.0.1:{port}"), *COMMANDS):
            assert "there was no login within" in out + err, (name, out, err)
            assert err.count("connecting to box") > 1, (name, err)  # and again


def test_a_host_that_resets_connections_is_named(sshd: Sshd, tmp_path: Path) -> None:
    with resetting() as port:
        for name, out, err in all_end(
            write(tmp_path, sshd, f"{sshd.user}@127.0.0.1:{port}"), "status", "check", "logs"
        ):
            assert "closed the connection before the login" in out + err, (name, out, err)


def all_end(path: Path, *names: str) -> Iterator[tuple[str, str, str]]:
    """Commands side by side, all of which must end with exit code 4: name, stdout, stderr of each."""
    programs = {name: begun(path, *COMMANDS[name]) for name in names}
    for name, program in programs.items():
        out, err = program.communicate(timeout=PATIENCE)
        assert program.returncode == 4 and "Traceback" not in err, (name, program.returncode, out, err)
        yield name, out, err


@pytest.mark.parametrize("interrupt", [False, True])
def test_a_resolver_that_does_not_answer_holds_up_no_end(sshd: Sshd, tmp_path: Path, interrupt: bool) -> None:
    path = write(tmp_path, sshd, "somebody@some-host.test")
    program = begun(path, "status", "P", "--timeout", "600" if interrupt else "1", code=DEAF_RESOLVER + HASTY)
    heard(program, "connecting to box")
    if interrupt:
        program.send_signal(signal.SIGINT)
    _, err = program.communicate(timeout=PATIENCE)
    assert program.returncode == (130 if interrupt else 4), err


def test_a_table_says_once_why_a_host_is_out_of_reach(sshd: Sshd, tmp_path: Path) -> None:
    path = write(tmp_path, sshd, f"{sshd.user}@127.0.0.1:{free_port()}", servers=8)
    ran = hcs_tui("status", str(path), env={"HCS_HOME": str(tmp_path / "home")})
    assert ran.code == 4
    assert ran.out.count("has no SSH server") == 1 and "box: host unreachable" in ran.out
    assert ran.err.count("has no SSH server") == 1


def test_down_says_that_its_host_was_lost_and_how_long_it_waits(sshd: Sshd, tmp_path: Path) -> None:
    path = write(tmp_path, sshd, sshd.address, servers=1)
    home = {"HCS_HOME": str(tmp_path / "home")}
    assert hcs_tui("up", str(path), "--timeout", "30", env=home).code in (0, 3)  # nothing listens: never ready
    down = begun(path, "down", "P", "--grace", "60", "--timeout", "3")
    try:
        until(lambda: list(tmp_path.glob("state/**/stop.json")))
        sshd.stop()
        _, err = down.communicate(timeout=PATIENCE)
        assert down.returncode == 4, err
        assert "Waiting for it to come back, 3.0s at most." in err
        assert "still out of reach after" in err and "of 3.0s" in err
        assert "did not come back within 3 s" in err
    finally:
        again = start_sshd(sshd.folder, port=sshd.port)
        assert hcs_tui("down", str(path), "--grace", "0", env=home).code == 0
        again.stop()


def test_logs_say_that_their_host_was_lost_and_that_it_is_back(sshd: Sshd, tmp_path: Path) -> None:
    path = write(tmp_path, sshd, sshd.address, servers=1)
    home = {"HCS_HOME": str(tmp_path / "home")}
    assert hcs_tui("up", str(path), "--timeout", "1", env=home).code == 3
    follow = begun(path, "logs", "P", "a", "-f")
    assert follow.stdout and follow.stderr
    assert "ready to roll" in follow.stdout.readline()
    sshd.kill_sessions()
    said = heard(follow, "box: is back")
    assert "Waiting for it to come back" in said[-2], said
    assert hcs_tui("down", str(path), "--grace", "0", env=home).code == 0
    _, err = follow.communicate(timeout=PATIENCE)
    assert follow.returncode == 0, err


def test_forward_says_that_nothing_answers_yet(sshd: Sshd, tmp_path: Path) -> None:
    text = json.loads(write(tmp_path, sshd, sshd.address, servers=1).read_text())
    serve = (
        "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1])));"
        "print('The server is fired up and ready to roll!', flush=True); time.sleep(600)"
    )
    text["servers"]["a"]["command"] = [sys.executable, "-c", serve, "{port}"]
    path = tmp_path / "p.yaml"
    path.write_text(json.dumps(text))
    home = {"HCS_HOME": str(tmp_path / "home")}
    forward = begun(path, "forward", "P", "a")
    assert forward.stdout and forward.stderr
    try:
        assert forward.stdout.readline().startswith("http://127.0.0.1:")
        assert "leads to a on box" in heard(forward, "a: does not run: its port is not open")[-2]
        assert hcs_tui("up", str(path), env=home).code == 0
        heard(forward, "a: is ready")
    finally:
        forward.send_signal(signal.SIGINT)
        forward.communicate(timeout=PATIENCE)
        assert hcs_tui("down", str(path), "--grace", "0", env=home).code == 0
    assert forward.returncode == 130
