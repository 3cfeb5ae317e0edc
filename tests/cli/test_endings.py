"""How commands end when the world does not take what they say: full disks, odd names, SIGTERM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_frame import MAIN, ROOT, hcs_tui

LOG = "tests/data/corpus/001-ignore-import-error-only-tp8.log"
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")


@needs_full
@pytest.mark.parametrize("args", [["schema", "report"], ["--help"], ["parse", LOG], ["up", "plain", "--dry-run"]])
def test_a_full_disk_behind_stdout_is_told_in_one_line(args: list[str]) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *args], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert (done.returncode, done.stderr) == (2, "the output cannot be written: no space left on device\n")


@needs_full
@pytest.mark.parametrize("ending", ["svg", "txt", "json"])
def test_a_full_disk_behind_out_is_told_in_one_line(tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"full.{ending}"
    out.symlink_to(FULL)
    ran = hcs_tui("snapshot", LOG, "--out", str(out))
    assert (ran.code, ran.out, ran.err) == (2, "", f"--out {out}: cannot be written: no space left on device\n")


@pytest.mark.parametrize(
    "args",
    [
        ["check", "plain", "NAME", "--offline"],
        ["check", "NAME", "--offline"],
        ["NAME"],
        ["check", "--NAME", "plain"],
        ["schema", "NAME"],
        ["import", "NAME.sh"],
        ["parse", "NAME"],
        ["snapshot", "plain", "--out", "NAME"],
        ["replay", "NAME"],
        ["logs", "plain", "NAME"],
        ["runs", "compare", "plain:NAME", "plain:NAME"],
    ],
)
def test_a_name_cannot_move_the_cursor(args: list[str]) -> None:
    name = "a\nhcs-tui: all is well\x1b[2J\x9b1m\u202eb"
    ran = hcs_tui(*(word.replace("NAME", name) for word in args))
    assert ran.code == 2
    assert not any(line.startswith("hcs-tui: all is well") for line in ran.err.splitlines())
    assert all(char.isprintable() or char == "\n" for char in ran.err)


def test_names_in_a_profile_cannot_either(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text('name: p\nservers:\n  "a\\nb\\e[1m": {port: 1, "c\\nd": 2}\n')
    ran = hcs_tui("check", str(path), "--offline")
    assert ran.code == 2 and "servers.a\\nb" in ran.err
    assert all(line.startswith(f"{path}:") for line in ran.err.splitlines())


def test_sigterm_ends_the_demo_with_its_servers_and_its_folder(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), "HCS_HOME": str(tmp_path / "home")}
    demo = subprocess.Popen(
        [sys.executable, "-c", MAIN, "demo", "--headless", "60"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env, text=True,
    )  # fmt: skip
    assert demo.stderr is not None
    try:
        assert any("launched" in line or "launching" in line for line in demo.stderr)
        demo.send_signal(signal.SIGTERM)
        rest = demo.stderr.read()
        assert demo.wait(30) in (130, 143)
        assert "Traceback" not in rest
    finally:
        demo.kill()
        demo.wait()
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == []


def test_setup_lines_that_fail_are_told_by_status_as_by_up(tmp_path: Path) -> None:
    hosts = {"here": {"ssh": "local", "python": sys.executable, "state_dir": str(tmp_path / "state")}}
    server = {"host": "here", "command": ["/bin/true"], "port": 31999, "setup": "echo no module cuda\nexit 7"}
    path = tmp_path / "p.yaml"
    path.write_text(json.dumps({"name": "p", "hosts": hosts, "servers": {"a": server}}))
    env = {"HCS_HOME": str(tmp_path / "home")}
    launched = hcs_tui("up", str(path), env=env)
    later = hcs_tui("status", str(path), env=env)
    assert (launched.code, later.code) == (1, 0)
    assert "a: The setup lines failed with status 7: no module cuda\n" in later.out
    assert later.out == launched.out
