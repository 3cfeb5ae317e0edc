"""A terminal that nobody reads, and a program that is stopped: logs go on coming from real servers, none is harmed, and
afterwards everything is there and answers."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator

import pytest

from tests.bench._rig import Rig, ready_servers
from tests.bench._writer import lines
from tests.terminal import DEADLINE, Terminal, is_clean
from tests.view.test_terminal import WITH_JOBS
from tests.waiting import until

MAIN = "from tui.cli.main import main; main()"
PIECE = b"\n".join(lines(200)) + b"\n"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Two servers behind an sshd, serving for the whole module."""
    with ready_servers(tmp_path_factory.mktemp("stuck"), 2) as made:
        yield made


@pytest.fixture
def dashboard(rig: Rig) -> Iterator[Terminal]:
    made = Terminal([sys.executable, "-c", MAIN, str(rig.profile)], {"HCS_HOME": str(rig.folder)}, size=(160, 45))
    yield made
    made.close()


def grow(rig: Rig, text: bytes) -> None:
    for log in rig.logs.values():
        with log.open("ab") as file:
            file.write(text)


def whole(rig: Rig) -> bool:
    """Whether this side has all that the servers wrote."""
    return all(rig.spool(server).stat().st_size == log.stat().st_size for server, log in rig.logs.items())


def serve_on(rig: Rig) -> None:
    """The servers listen as before."""
    for server in json.loads(rig.profile.read_text())["servers"].values():
        socket.create_connection(("127.0.0.1", server["port"]), 10).close()


def stick(terminal: Terminal, rig: Rig) -> None:
    """Let it draw the logs of all, and read nothing, until it cannot write any more; then let the logs grow on."""
    terminal.shows("2 ready")
    terminal.press(b"w")

    def full() -> bool:
        if terminal.takes_more():
            grow(rig, PIECE)
            return False
        return True

    until(full)
    for n in range(20):
        grow(rig, PIECE + f"number {n} that nobody read\n".encode())


def test_logs_go_on_while_the_terminal_reads_nothing(dashboard: Terminal, rig: Rig) -> None:
    stick(dashboard, rig)
    until(lambda: whole(rig))
    assert not dashboard.takes_more()
    dashboard.answers(b"z", "number 19 that nobody read")
    dashboard.answers(b"?", "scroll · Esc closes")
    dashboard.press(b"\x1b[27u")
    dashboard.answers(b"q", "running on")
    dashboard.ended()
    assert dashboard.process.returncode == 0 and all(rig.same(server) for server in rig.logs)
    is_clean(dashboard.output)
    serve_on(rig)


def test_it_is_ended_while_the_terminal_reads_nothing(dashboard: Terminal, rig: Rig) -> None:
    stick(dashboard, rig)
    dashboard.process.terminate()
    assert dashboard.process.wait(DEADLINE) == 128 + signal.SIGTERM
    dashboard.ended()
    is_clean(dashboard.output)
    serve_on(rig)


@pytest.mark.parametrize("link", ["lives", "is gone"])
def test_ctrl_z_loses_nothing(rig: Rig, link: str) -> None:
    """``is gone``: what a minute of silence does, and what a network does meanwhile: the agent has left."""
    command = f"HCS_HOME={rig.folder} {sys.executable} -c '{MAIN}' {rig.profile}\r"
    shell = Terminal(
        [sys.executable, "-c", WITH_JOBS, "bash", "--norc", "--noprofile", "--noediting", "-i"], {"PS1": "shell$ "}
    )
    try:
        shell.shows("shell$")
        shell.press(command.encode())
        shell.shows("2 ready")
        shell.press(b"\x1a")
        shell.shows("Stopped")
        grow(rig, PIECE + f"while it was stopped, the link {link}\n".encode())
        if link == "is gone":
            assert rig.sshd.kill_sessions()
        serve_on(rig)
        shell.answers(b"fg\r", "2 ready")
        until(lambda: whole(rig))
        shell.answers(b"z", f"while it was stopped, the link {link}")
        grow(rig, f"and after it, the link {link}\n".encode())
        shell.shows(f"and after it, the link {link}")
        shell.press(b"q")
        shell.shows("running on")
        shell.answers(b"echo left=$?\r", "left=0")
        assert all(rig.same(server) for server in rig.logs)
        serve_on(rig)
    finally:
        os.killpg(shell.process.pid, signal.SIGCONT)
        shell.close()
