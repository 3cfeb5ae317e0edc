"""``discover`` and ``forward`` as scripts see them: real processes, a real sshd."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from tests.cli.test_frame import MAIN, ROOT, hcs_tui
from tests.cli.test_waiting import heard
from tests.host.sshd import Sshd
from tests.host.strangers import Stranger, started
from tests.ports import free_port
from tests.waiting import DEADLINE
from tui.profile.load import load
from tui.report.schema import report_schema


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Stranger]:
    with started(tmp_path, "--api-key", "hunter2", "--tp", "2", env={"CUDA_VISIBLE_DEVICES": "4,5"}) as one:
        yield one


@pytest.fixture
def box(sshd: Sshd, tmp_path: Path) -> tuple[Sshd, dict[str, str]]:
    """A host called ``box`` in the SSH config of a home of its own."""
    config = tmp_path / "home" / ".ssh" / "config"
    config.parent.mkdir(parents=True, mode=0o700)
    config.write_text(
        f"Host box\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {sshd.user}\n"
        f"  IdentityFile {sshd.identity}\n  UserKnownHostsFile {sshd.known_hosts}\n"
    )
    return sshd, {"HOME": str(tmp_path / "home"), "HCS_HOME": str(tmp_path / "hcs")}


def home(tmp_path: Path) -> dict[str, str]:
    return {"HCS_HOME": str(tmp_path / "hcs")}


def test_text_and_json(stranger: Stranger, tmp_path: Path) -> None:
    ran = hcs_tui("discover", "local", env=home(tmp_path))
    assert ran.code == 0, ran.err
    [row] = [line.split() for line in ran.out.splitlines() if line.startswith(f"local:{stranger.port} ")]
    assert row[0] == f"local:{stranger.port}" and row[-2:] == ["4,5", "/models/tiny"]
    ran = hcs_tui("discover", "local", "--json", env=home(tmp_path))
    assert ran.code == 0 and "hunter2" not in ran.out
    [one] = [one for one in json.loads(ran.out)["servers"] if one["pid"] == stranger.pid]
    assert (one["port"], one["gpus"], one["log"]) == (stranger.port, [4, 5], str(stranger.log))
    assert one["owner"] and "--api-key" in one["command"] and one["container"] is None
    jsonschema.validate(one, {**report_schema(), "additionalProperties": True})


def test_over_ssh_and_an_unreachable_host(stranger: Stranger, box: tuple[Sshd, dict[str, str]]) -> None:
    server, env = box
    ran = hcs_tui("discover", "box", "--json", env=env)
    assert ran.code == 0, ran.err
    assert f"box:{stranger.port}" in {one["name"] for one in json.loads(ran.out)["servers"]}
    ran = hcs_tui("discover", "box", "nowhere.invalid", "--json", env=env)
    assert ran.code == 4 and "nowhere.invalid" in ran.err
    assert f"box:{stranger.port}" in {one["name"] for one in json.loads(ran.out)["servers"]}
    assert server.process.poll() is None


def test_a_text_that_is_no_host() -> None:
    ran = hcs_tui("discover", "-x y")
    assert ran.code == 2


def test_a_profile_of_what_was_found(stranger: Stranger, tmp_path: Path) -> None:
    file = tmp_path / "found.yaml"
    ran = hcs_tui("discover", "local", "--write-profile", str(file), env=home(tmp_path))
    assert ran.code == 0, ran.err
    [server] = [server for server in load(file).servers if server.port == stranger.port]
    assert (server.gpus, server.model, server.log) == ((4, 5), "/models/tiny", str(stranger.log))
    assert server.secret_names() == ("API_KEY",) and server.cwd == str(tmp_path) and server.args["tp"] == 2
    before = file.read_text()
    ran = hcs_tui("discover", "local", "--write-profile", str(file), env=home(tmp_path))
    assert ran.code == 2 and "exists already" in ran.err and file.read_text() == before


def profile(folder: Path, port: int, ssh: str) -> str:
    path = folder / "fw.yaml"
    path.write_text(
        f"name: fw\nhosts: {{there: {{ssh: {ssh}}}}}\n"
        f"servers: {{a: {{host: there, port: {port}, args: {{model-path: /m}}}}}}\n"
    )
    return str(path)


def test_forward_until_interrupted(stranger: Stranger, box: tuple[Sshd, dict[str, str]], tmp_path: Path) -> None:
    server, env = box
    local = free_port()
    file = profile(tmp_path, stranger.port, "box")
    command = [sys.executable, "-c", MAIN, "forward", file, "a", "--local", str(local)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **env}, cwd=ROOT
    )
    try:
        assert process.stdout and process.stderr
        url = process.stdout.readline().strip()
        assert url == f"http://127.0.0.1:{local}"
        heard(process, "every user of this machine")
        heard(process, f"a: does not run: port {stranger.port} is taken by pid {stranger.pid}")
        assert _get(url) == f"hello from {stranger.pid}"
        server.kill_sessions()
        heard(process, "there: ")
        heard(process, "the port is open again")
        assert _get(url) == f"hello from {stranger.pid}"
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE) == 130
    finally:
        process.kill()
        process.communicate()


def test_a_forward_to_this_machine_never_leads_to_itself(box: tuple[Sshd, dict[str, str]], tmp_path: Path) -> None:
    """The host is this machine, and its server does not run: its port is free here too."""
    _, env = box
    port = free_port()
    file = profile(tmp_path, port, "box")
    ran = hcs_tui("forward", file, "a", "--local", str(port), env=env)
    assert ran.code == 2 and f"this machine, where port {port} is the server's own" in ran.err
    command = [sys.executable, "-c", MAIN, "forward", file, "a"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **env}, cwd=ROOT
    )
    try:
        assert process.stdout
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:") and url != f"http://127.0.0.1:{port}"
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE) == 130
    finally:
        process.kill()
        process.communicate()


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=DEADLINE) as answer:
        return str(answer.read().decode())


def test_what_forward_refuses(tmp_path: Path) -> None:
    ran = hcs_tui("forward", profile(tmp_path, 30000, "local"), "a")
    assert (ran.code, ran.out) == (0, "http://127.0.0.1:30000\n") and "already" in ran.err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ran = hcs_tui("forward", profile(tmp_path, 30000, "nowhere.invalid"), "a", "--local", port)
    assert ran.code == 2 and f"port {port} of this machine cannot be used" in ran.err
    assert hcs_tui("forward", profile(tmp_path, 30000, "nowhere.invalid"), "a").code == 4
    assert hcs_tui("forward", profile(tmp_path, 30000, "local"), "b").code == 2
