"""The headless commands as a script runs them: the real program, OpenSSH's sshd, real processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.host.sshd import Sshd, running_sshd
from tests.ports import free_port
from tests.report.keeping import kept

ROOT = Path(__file__).parents[2]


@dataclass
class Bench:
    """A profile of simulated servers behind sshd, and the program pointed at it."""

    folder: Path
    profile: Path

    def run(self, command: str, *words: str, seconds: float = 90.0) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "HCS_HOME": str(self.folder / "side"), "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
        line = [sys.executable, "-m", "tui", command, str(self.profile), *words]
        return subprocess.run(
            line, capture_output=True, text=True, errors="replace", timeout=seconds, env=environ, cwd=self.folder
        )

    def json_lines(self, command: str, *words: str) -> tuple[int, list[dict[str, Any]]]:
        done = self.run(command, *words, "--json")
        assert "Traceback" not in done.stderr, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        kept(server for line in lines for server in line.get("servers", ()))
        return done.returncode, lines

    def status(self) -> dict[str, dict[str, Any]]:
        done = self.run("status", "--json")
        return {server["name"]: dict(server) for server in kept(json.loads(done.stdout)["servers"])}


def write_profile(folder: Path, ssh: dict[str, str], scenarios: dict[str, str]) -> Path:
    """``scenarios``: server → scenario."""
    servers = {
        name: {
            "port": free_port(),
            "log": f"logs/{name}.log",
            "cwd": str(folder),
            "command": f"{sys.executable} -m tui.demo.server --scenario {scenario} --speed 40 --port {{port}}".split(),
        }
        for name, scenario in scenarios.items()
    }
    host = {"python": sys.executable, **ssh, "state_dir": str(folder / "state")}
    defaults = {"host": "box", "env": {"PYTHONPATH": str(ROOT)}, "stop_grace": "5s", "ready_timeout": "60s"}
    path = folder / "profile.yaml"
    path.write_text(json.dumps({"name": "e2e", "hosts": {"box": host}, "defaults": defaults, "servers": servers}))
    return path


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd") / "sshd") as running:
        yield running


@pytest.fixture
def bench(tmp_path: Path, sshd: Sshd) -> Iterator[Bench]:
    ssh = {"ssh": sshd.address, "identity": sshd.identity, "known_hosts": sshd.known_hosts}
    made = Bench(tmp_path, write_profile(tmp_path, ssh, {"good": "hicache", "bad": "host-memory"}))
    yield made
    left = made.run("down", "--grace", "0")
    assert left.returncode == 0, left.stderr


def test_up_status_logs_relaunch_down(bench: Bench) -> None:
    code, events = bench.json_lines("up", "good")
    assert code == 0, events
    assert [e["event"] for e in events if e["server"] == "good"][-1] == "ready"
    assert events[-1]["event"] == "summary" and events[-1]["servers"][0]["phase"] == "ready"

    good = bench.status()["good"]
    assert good["phase"] == "ready" and good["pid"] and good["run"]
    assert {(p["kind"], p["gb"], p["unit"]) for p in good["pools"] if p["place"] == "host"} == {
        ("KV", 150.0, "GB"),
        ("Mamba", 150.1, "GB"),
    }
    assert (bench.folder / "logs" / "good.log").is_symlink()

    log = bench.run("logs", "good", "-n", "1000")
    assert log.returncode == 0 and "ready to roll" in log.stdout, log.stderr
    assert all(line.startswith("connecting to ") for line in log.stderr.splitlines()), log.stderr  # a loaded machine
    assert len(bench.run("logs", "good", "-n", "2").stdout.splitlines()) == 2
    assert bench.run("logs", "good", "--run", good["run"]).stdout.startswith(log.stdout[:200])
    unknown = bench.run("logs", "good", "--run", "nosuch")
    assert unknown.returncode == 2 and good["run"] in unknown.stderr

    code, events = bench.json_lines("up", "good")
    assert code == 0 and any(e["event"] == "already" for e in events)

    code, events = bench.json_lines("relaunch", "good")
    assert code == 0, events
    assert [e["event"] for e in events[:2]] == ["stopping", "launched"] and events[1]["ended"]["left"] == []
    assert bench.status()["good"]["run"] != good["run"]

    code, events = bench.json_lines("down")
    assert code == 0 and all(e["left"] == [] for e in events if e["event"] == "down" and "found" in e), events
    assert bench.status()["good"]["phase"] == "stopped"


def test_a_failed_server_is_exit_1_with_its_reason(bench: Bench) -> None:
    done = bench.run("up", "bad")
    assert done.returncode == 1
    assert "Not enough host memory available" in done.stderr and "--hicache-size 98" in done.stderr
    bad = bench.status()["bad"]
    assert bad["phase"] == "failed" and bad["failure"]["kind"] == "oom_host_hicache"
    assert bad["failure"]["line_number"] > 0 and bad["failure"]["advice"]


def test_the_deadline_is_exit_3(bench: Bench) -> None:
    text = json.loads(bench.profile.read_text())
    text["servers"]["good"]["command"][4] = "hang"
    bench.profile.write_text(json.dumps(text))
    assert bench.run("up", "good", "--timeout", "3").returncode == 3
    assert bench.status()["good"]["phase"] == "starting"


def bad_hosts(tmp_path: Path, sshd: Sshd) -> dict[str, tuple[dict[str, str], str]]:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    empty = tmp_path / "empty_known_hosts"
    empty.write_text("")
    changed = tmp_path / "changed"
    changed.write_text(Path(sshd.known_hosts).read_text())
    key = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    changed.write_text(f"[127.0.0.1]:{sshd.port} {public}\n")
    good = {"ssh": sshd.address, "identity": sshd.identity, "known_hosts": sshd.known_hosts}
    return {
        "refused port": ({**good, "ssh": f"{sshd.user}@127.0.0.1:{port}"}, "no SSH server"),
        "unknown host": ({**good, "ssh": "nobody@no-such-host.invalid"}, "no-such-host.invalid"),
        "unknown key": ({**good, "known_hosts": str(empty)}, "SHA256:"),
        "changed key": ({**good, "known_hosts": str(changed)}, "CHANGED"),
        "wrong login": ({**good, "identity": str(key)}, "refused"),
        "no Python": ({**good, "python": "/nowhere/python3"}, "Python"),
    }


@pytest.mark.parametrize(
    "case", ["refused port", "unknown host", "unknown key", "changed key", "wrong login", "no Python"]
)
def test_a_host_that_cannot_be_used_is_exit_4_and_one_message(tmp_path: Path, sshd: Sshd, case: str) -> None:
    ssh, words = bad_hosts(tmp_path, sshd)[case]
    bench = Bench(tmp_path, write_profile(tmp_path, ssh, {"good": "plain"}))
    for command in ("up", "status", "down", "logs"):
        done = bench.run(command, *(["good"] if command == "logs" else []))
        assert done.returncode == 4, (command, done.stderr)
        assert words.lower() in done.stderr.lower(), (command, done.stderr)
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cwd": "/nowhere/at/all"}, "/nowhere/at/all"),
        ({"command": ["/nowhere/python", "-m", "x"]}, "/nowhere/python"),
        ({"log": "/proc/nope/server.log"}, "/proc/nope"),
    ],
)
def test_a_refused_launch_is_exit_1_with_one_clear_message(bench: Bench, change: dict[str, Any], words: str) -> None:
    text = json.loads(bench.profile.read_text())
    text["servers"]["good"].update(change)
    bench.profile.write_text(json.dumps(text))
    done = bench.run("up", "good")
    assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_log_of_random_bytes_harms_nobody(bench: Bench) -> None:
    text = json.loads(bench.profile.read_text())
    text["servers"]["good"]["command"] = ["/bin/sh", "-c", "head -c 3000000 /dev/urandom; exit 3"]
    bench.profile.write_text(json.dumps(text))
    done = bench.run("up", "good")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    good = bench.status()["good"]
    assert good["phase"] == "failed" and good["exit"]["status"] == 3
    assert bench.run("logs", "good", "-n", "5").returncode == 0


def test_an_interrupt_is_130_and_leaves_the_server_running(bench: Bench) -> None:
    environ = {**os.environ, "HCS_HOME": str(bench.folder / "side"), "PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-m", "tui", "up", str(bench.profile), "good", "--json", "--stay"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environ) as program:
        assert program.stdout
        for event in map(json.loads, program.stdout):
            if event["event"] == "summary":
                program.send_signal(signal.SIGINT)
                break
        assert program.wait(30) == 130
    assert bench.status()["good"]["phase"] == "ready"


def test_a_wrong_change_ends_nothing(bench: Bench) -> None:
    assert bench.run("up", "good").returncode == 0
    run = bench.status()["good"]["run"]
    for change in ("hicache-size", "=3", "port=1"):
        assert bench.run("relaunch", "good", "--set", change).returncode == 2
    assert bench.status()["good"]["run"] == run


def test_a_failed_server_is_cured_by_its_own_advice(bench: Bench) -> None:
    assert bench.run("up", "bad").returncode == 1
    done = bench.run("relaunch", "bad", "--set", "hicache-size=98")
    assert done.returncode == 0, done.stderr
    bad = bench.status()["bad"]
    assert bad["phase"] == "ready" and {p["gb"] for p in bad["pools"] if p["place"] == "host"} == {98.0, 98.06}
    again = bench.run("status")
    assert "--hicache-size 98" in again.stdout, "that it runs with other flags than the profile's is told"


def test_status_knows_what_up_knew_by_http(tmp_path: Path) -> None:
    (tmp_path / "model_info").write_text("{}")
    port = free_port()
    server = {"port": port, "cwd": str(tmp_path), "ready_by": "http", "host": "local"}
    server["command"] = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "{port}"]
    profile = tmp_path / "web.yaml"
    profile.write_text(json.dumps({"name": "web", "servers": {"web": server}}))
    bench = Bench(tmp_path, profile)
    try:
        assert bench.run("up").returncode == 0
        assert bench.status()["web"]["phase"] == "ready"
    finally:
        assert bench.run("down", "--grace", "0").returncode == 0


def test_a_theme_that_is_none_is_told(bench: Bench) -> None:
    done = bench.run("snapshot", "--out", "x.svg", "--theme", "nope")
    assert done.returncode == 2 and "dark, light" in done.stderr


def test_no_number_of_seconds(bench: Bench) -> None:
    for words in (("up", "--timeout", "nan"), ("down", "--grace", "inf")):
        done = bench.run(*words)
        assert done.returncode == 2 and "no number of seconds" in done.stderr


def test_a_side_that_cannot_be_written_still_works(bench: Bench) -> None:
    (bench.folder / "side").write_text("a file where the spool's folder should be")
    done = bench.run("up", "good")
    assert done.returncode == 0 and "not kept on this side" in done.stderr, done.stderr


def test_a_stop_by_somebody_else_is_no_failure(bench: Bench) -> None:
    environ = {**os.environ, "HCS_HOME": str(bench.folder / "other side"), "PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-m", "tui", "up", str(bench.profile), "good", "--json", "--stay"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environ) as program:
        assert program.stdout
        told = []
        for event in map(json.loads, program.stdout):
            told.append(event["event"])
            if event["event"] == "summary":
                assert bench.run("down", "good").returncode == 0
            if event["event"] in ("stopped", "failed"):
                break
        program.send_signal(signal.SIGINT)
        program.wait(30)
    assert told[-1] == "stopped", told


def test_of_two_launches_at_once_one_wins_and_both_wait(bench: Bench) -> None:
    environ = {**os.environ, "HCS_HOME": str(bench.folder / "other side"), "PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-m", "tui", "up", str(bench.profile), "good", "--json"]
    both = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environ) for _ in range(2)]
    texts = [program.communicate(timeout=60)[0] for program in both]
    assert [program.returncode for program in both] == [0, 0], texts
    runs = {json.loads(text.splitlines()[-1])["servers"][0]["run"] for text in texts}
    assert len(runs) == 1
