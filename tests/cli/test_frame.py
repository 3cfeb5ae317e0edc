"""The command line as scripts see it: real processes, exit codes, stdout and stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tui import __version__
from tui.cli.exits import PRECEDENCE, Exit
from tui.cli.terminal import terminal_problem

ROOT = Path(__file__).parents[2]
MAIN = "from tui.cli.main import main; main()"
PROFILE = """\
name: two
defaults: {host: local, args: {model-path: /m, api-key: !secret API_KEY}}
servers:
  a: {port: 30000, cwd: /w, setup: source env.sh}
  b: {port: 30001, command: [/bin/server, "{port}"]}
"""


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def hcs_tui(*args: str, stdin: str = "", env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> Ran:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *args],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        timeout=60,
    )
    assert "Traceback" not in done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def profile(tmp_path: Path) -> str:
    path = tmp_path / "two.yaml"
    path.write_text(PROFILE)
    return str(path)


def test_version_and_help() -> None:
    assert hcs_tui("--version") == Ran(0, f"hcs-tui {__version__}\n", "")
    for args in (["--help"], ["-h"]):
        ran = hcs_tui(*args)
        assert ran.code == 0 and "--read-only" in ran.out
        for name in ("demo", "up", "down", "relaunch", "status", "logs", "check", "import", "parse", "snapshot"):
            assert f"  {name} " in ran.out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["staus"], "did you mean 'status'?"),
        (["hicach"], "did you mean 'hicache'?"),
        (["check"], "Missing argument 'PROFILE'"),
        (["check", "none.yaml", "--offline"], "none.yaml: no such file"),
        (["check", "nowhere", "--offline"], "no profile has this name"),
        (["check", "plain", "--ofline"], "No such option"),
        (["check", "plain", "mtp", "--offline"], "plain has no server 'mtp'; valid: plain"),
        (["up", "tests", "--dry-run"], "tests: is a directory"),
        (["schema", "x"], "'x' is not one of 'profile', 'report'"),
        (["import", "nothing.sh"], "nothing.sh: no such file; to import a command line, put it in quotes"),
        (["import", "ls -l /"], "launches no SGLang server"),
        (["import", "tests"], "tests: is a directory"),
        (["plain"], "the dashboard needs a terminal"),
    ],
)
def test_wrong_usage_is_2_and_says_why(args: list[str], said: str) -> None:
    ran = hcs_tui(*args)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_check_lists_every_mistake(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("servers:\n  a: {host: nowhere, port: 0}\n  b: 1\n")
    ran = hcs_tui("check", str(path), "--offline")
    assert ran.code == 2
    assert [line.split(": ")[0] for line in ran.err.splitlines()] == [
        f"{path}:2",
        f"{path}:2",
        f"{path}:2",
        f"{path}:3",
    ]


def test_check_offline(profile: str) -> None:
    ran = hcs_tui("check", profile, "a", "--offline", "--json")
    assert ran.code == 0
    checks = json.loads(ran.out)["checks"]
    assert [(one["server"], one["check"], one["result"]) for one in checks] == [
        (None, "profile", "pass"),
        ("a", "secrets", "warn"),
        ("a", "command", "pass"),
    ]
    assert checks[1]["advice"] == "export API_KEY=…"
    text = hcs_tui("check", profile, "a", "--offline", env={"API_KEY": "sk-hush"})
    assert "pass  a            secrets: all are set\n" in text.out
    assert "sk-hush" not in text.out + text.err


def test_dry_run(profile: str) -> None:
    ran = hcs_tui("up", profile, "--dry-run", env={"API_KEY": "sk-hush"})
    assert ran == Ran(
        0,
        "# a on local, http://127.0.0.1:30000\n"
        "cd /w\n"
        "source env.sh\n"
        'cd /w && python3 -m sglang.launch_server --model-path /m --api-key "$API_KEY" --port 30000\n'
        "# b on local, http://127.0.0.1:30001\n"
        "/bin/server 30001\n",
        "",
    )
    lines = [json.loads(line) for line in hcs_tui("up", profile, "b", "--dry-run", "--json").out.splitlines()]
    assert [(line["server"], line["event"]) for line in lines] == [("b", "dry-run"), (None, "summary")]
    assert lines[0]["command"] == "/bin/server 30001"
    assert all("time" in line for line in lines)


def test_import_prints_a_profile_that_loads(tmp_path: Path) -> None:
    ran = hcs_tui("import", "CUDA_VISIBLE_DEVICES=1 python -m sglang.launch_server --model-path /m --api-key k")
    assert ran.code == 0
    assert ran.err == "note: !secret API_KEY: export API_KEY where you launch from\n"
    path = tmp_path / "imported.yaml"
    path.write_text(ran.out)
    assert "--model-path /m" in hcs_tui("up", str(path), "--dry-run").out
    script = tmp_path / "launch.sh"
    script.write_text("#!/bin/sh\nexec sglang serve /m\n")
    assert hcs_tui("import", str(script)).out == hcs_tui("import", "-", stdin=script.read_text()).out


@pytest.mark.parametrize("kind", ["profile", "report"])
def test_schema(kind: str) -> None:
    schema = json.loads(hcs_tui("schema", kind).out)
    assert schema["$schema"].startswith("https://json-schema.org/")


def test_a_closed_pipe_is_quiet() -> None:
    code = f"import sys; sys.argv[1:] = ['schema', 'report']\n{MAIN}"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=write, stderr=subprocess.PIPE, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (Exit.BROKEN_PIPE, b"")


def test_debug_shows_where() -> None:
    env = {**os.environ, "HCS_DEBUG": "1"}
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "check", "none.yaml", "--offline"], cwd=ROOT, env=env, capture_output=True
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (2, True)


@pytest.mark.parametrize("args", [["--help"], ["check", "--help"], ["check"], ["check", "plain", "--offline"]])
def test_what_needs_no_screen_and_no_host_loads_neither(args: list[str]) -> None:
    code = (
        f"import sys; sys.argv[1:] = {args!r}\nfrom tui.cli.main import run\nrun()\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'textual', 'asyncssh', 'rich'}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize("package", ["tui.sglang", "tui.profile", "tui.fleet", "tui.report"])
def test_the_core_loads_no_screen(package: str) -> None:
    code = f"""
import importlib, pkgutil, sys
package = importlib.import_module({package!r})
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
print(sorted({{name.split(".")[0] for name in sys.modules}} & {{"textual", "rich"}}))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_precedence_of_exit_codes() -> None:
    assert [int(code) for code in PRECEDENCE if code not in (Exit.INTERNAL, Exit.BROKEN_PIPE)] == [130, 2, 4, 1, 3, 0]
    assert Exit.worst([]) is Exit.OK
    assert Exit.worst([Exit.UNDECIDED, Exit.UNREACHABLE, Exit.FAILED]) is Exit.UNREACHABLE


class Stream:
    """A standard stream as far as the terminal's check looks at it."""

    def __init__(self, tty: bool = True, encoding: str = "utf-8") -> None:
        self.tty, self.encoding = tty, encoding

    def isatty(self) -> bool:
        return self.tty


@pytest.mark.parametrize(
    ("stdin", "stderr", "term", "said"),
    [
        (Stream(), Stream(), "xterm-256color", ""),
        (Stream(), Stream(encoding="UTF8"), "linux", ""),
        (Stream(tty=False), Stream(), "xterm", "needs a terminal"),
        (Stream(), Stream(tty=False), "xterm", "needs a terminal"),
        (None, Stream(), "xterm", "needs a terminal"),
        (Stream(), None, "xterm", "needs a terminal"),
        (Stream(), Stream(), "dumb", "TERM=dumb cannot show"),
        (Stream(), Stream(), "", "TERM= cannot show"),
        (Stream(), Stream(encoding="ascii"), "xterm", "needs a UTF-8 locale"),
        (Stream(), Stream(encoding="no-such"), "xterm", "needs a UTF-8 locale"),
    ],
)
def test_terminals(stdin: Stream | None, stderr: Stream | None, term: str, said: str) -> None:
    problem = terminal_problem(stdin, stderr, {"TERM": term})
    assert said in problem if said else problem == ""
    assert terminal_problem(stdin, stderr, {"TERM": term}, ascii=True) == ("" if "UTF-8" in said else problem)
