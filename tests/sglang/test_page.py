"""The page for the next developer names what there is."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "tui/sglang/README.md"
QUOTED = re.findall(r"`([^`\n]+)`", PAGE.read_text())
MODULES = {path.stem for path in PAGE.parent.glob("*.py")}


def test_its_files_and_tests_are_there() -> None:
    files = [word for word in QUOTED if re.fullmatch(r"(?:tui|tests)/[\w./]+", word)]
    tests = [f"tests/sglang/{word}" for word in QUOTED if re.fullmatch(r"test_\w+\.py", word)]
    assert len(files) > 8 and len(tests) > 5
    assert [name for name in (*files, *tests) if not (ROOT / name).exists()] == []


def test_its_names_are_there() -> None:
    dotted = [word.split(".") for word in QUOTED if re.fullmatch(r"\w+\.[A-Z_a-z]+", word)]
    ours = [(module, name) for module, name in dotted if module in MODULES and name != "py"]
    assert len(ours) > 10
    assert [f"{m}.{n}" for m, n in ours if not hasattr(import_module(f"tui.sglang.{m}"), n)] == []
    tables = {word for word in QUOTED if re.fullmatch(r"_?[A-Z]+(?:_[A-Z]+)+|_[A-Z]+", word)}
    source = "\n".join(
        path.read_text() for path in (*PAGE.parent.glob("*.py"), ROOT / "tests/real_sglang/test_real.py")
    )
    assert len(tables) > 8
    assert [name for name in sorted(tables) if not re.search(rf"^{name}\b", source, re.MULTILINE)] == []


def test_it_is_one_page() -> None:
    assert len(PAGE.read_text().splitlines()) <= 120
