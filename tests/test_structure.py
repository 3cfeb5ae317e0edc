"""The shape of the code, where no linter looks: sizes, what a fresh interpreter loads, and tests that wait."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tui"
MODULES = sorted(PACKAGE.rglob("*.py"))
AGENT = sorted((PACKAGE / "host" / "agent").glob("*.py"))
LONGEST_MODULE = 400  # lines
SCREEN = {"textual", "rich"}
TESTS = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path.parent.name != "bench"]
SLEEPERS = {"waiting.py", "weather.py", "program.py"}  # waiting for what nothing tells, a slow network, a program


def loaded(code: str) -> set[str]:
    """The top-level packages that are loaded after ``code`` ran in a fresh interpreter."""
    script = f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}}, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_is_too_long(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= LONGEST_MODULE, f"{path.relative_to(ROOT)} has {lines} lines: split it"


@pytest.mark.parametrize("package", ["sglang", "profile", "fleet", "report"])
def test_the_core_loads_no_screen(package: str) -> None:
    modules = sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (PACKAGE / package).rglob("*.py")
        if path.name != "__init__.py"
    )
    assert modules
    code = "\n".join(f"import {name}" for name in [f"tui.{package}", *modules])
    assert not loaded(code) & SCREEN


@pytest.mark.parametrize(
    "command",
    [["--help"], ["--version"], ["up", "--help"], ["parse", "no-such-file"], ["check", "no-such.yaml"]],
    ids=" ".join,
)
def test_what_needs_no_screen_or_network_loads_none(command: list[str]) -> None:
    code = f"from tui.cli.main import main\nsys.argv = ['hcs-tui', *{command!r}]\ntry: main()\nexcept SystemExit: pass"
    assert not loaded(code) & {*SCREEN, "asyncssh", "plotext"}


@pytest.mark.parametrize("path", AGENT, ids=lambda path: path.name)
def test_the_agent_needs_only_the_standard_library(path: Path) -> None:
    """It is sent to hosts as it is: an import of ours or of a package would fail there."""
    for node in ast.walk(ast.parse(path.read_text(), feature_version=(3, 8))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [] if node.level else [node.module or ""]
        else:
            continue
        tops = {name.partition(".")[0] for name in names} - {"hcs_agent"}  # its own name on the host
        assert tops <= sys.stdlib_module_names, f"line {node.lineno} imports {sorted(tops - sys.stdlib_module_names)}"


def test_tests_wait_for_events_and_for_no_fixed_time() -> None:
    """A fixed time is too short on a loaded machine, and wasted on any other: see ``tests/waiting.py``. Programs that
    tests run may sleep; they are strings here. ``asyncio.sleep(0)`` only lets others run."""
    calls = [
        (f"{path.relative_to(ROOT)}:{node.lineno}", ast.unparse(node))
        for path in TESTS
        if path.name not in SLEEPERS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
    ]
    assert not [place for place, call in calls if re.match(r"((time|asyncio)\.)?sleep\((?!0\))", call)]
