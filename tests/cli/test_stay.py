"""``up --stay``: it restarts what fails, tells so, and ends well by SIGTERM while its servers run on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.rig import ROOT
from tests.ports import free_port


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    command = [sys.executable, "-m", "tui.demo.server", "--scenario", "plain", "--speed", "50", "--port", "{port}"]
    server = {"command": command, "port": free_port(), "restart": "on-failure", "env": {"PYTHONPATH": str(ROOT)}}
    host = {"ssh": "local", "python": sys.executable, "state_dir": str(tmp_path / "state"), "stagger": "1s"}
    text = {"name": "stay", "hosts": {"here": host}, "defaults": {"host": "here"}, "servers": {"gpu0": server}}
    path = tmp_path / "stay.yaml"
    path.write_text(json.dumps(text))
    yield path
    assert hcs_tui(path, "down", "--grace", "0").wait(60) == 0


def hcs_tui(path: Path, command: str, *words: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "HCS_HOME": str(path.parent / "side"), "PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-m", "tui", command, str(path), *words]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environ)


def status(path: Path) -> dict[str, Any]:
    text = hcs_tui(path, "status", "--json").communicate(timeout=60)[0]
    server: dict[str, Any] = json.loads(text)["servers"][0]
    return server


def until(program: subprocess.Popen[str], event: str) -> dict[str, Any]:
    """The next line that tells ``event``; the program's end fails the test."""
    assert program.stdout
    for line in program.stdout:
        told: dict[str, Any] = json.loads(line)
        if told["event"] == event:
            return told
    raise AssertionError(f"ended without {event!r}")


def test_it_restarts_and_ends_well_by_sigterm(path: Path) -> None:
    with hcs_tui(path, "up", "--stay", "--json") as program:
        assert until(program, "restarts")["here"] is True
        summary = until(program, "summary")
        first = summary["servers"][0]
        told = status(path)["restarts"]
        assert (told["policy"], told["here"]) == ("on-failure", False) and f"(pid {program.pid})" in told["by"]
        os.kill(first["pid"], signal.SIGKILL)
        restart = until(program, "restart")
        assert restart["attempt"] == 1 and 0 < restart["seconds"] <= 5.0 and restart["reason"]
        assert until(program, "restarted")["attempt"] == 1
        until(program, "ready")
        program.send_signal(signal.SIGTERM)
        assert program.wait(30) == 0
    after = status(path)
    assert after["phase"] == "ready" and after["run"] != first["run"]
    assert after["restarts"]["by"] == "", "nobody restarts any more, and it says so"


def test_a_dry_run_tells_the_policy(path: Path) -> None:
    text = hcs_tui(path, "up", "--dry-run").communicate(timeout=60)[0]
    assert "restart: on-failure, launches 1 s apart" in text
    told = json.loads(hcs_tui(path, "up", "--dry-run", "--json").communicate(timeout=60)[0].splitlines()[0])
    assert (told["restart"], told["stagger"]) == ("on-failure", 1.0)
