"""Every test that the fault table of tests/README.md names exists."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
NAMED = re.findall(r"`(\w+)/(\w+)::(\w+)`", (TESTS / "README.md").read_text())


def test_the_table_names_tests_that_exist() -> None:
    assert len(NAMED) > 20
    missing = [
        f"{folder}/{file}::{name}"
        for folder, file, name in NAMED
        if not re.search(rf"def test_{name}\(", (TESTS / folder / f"test_{file}.py").read_text())
    ]
    assert not missing
