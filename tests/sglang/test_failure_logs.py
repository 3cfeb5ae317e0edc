"""Whole logs of every way to fail, and of none: phase, kind and the very line (``tests/data/failure_logs.txt``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sglang.startup import expand
from tui.sglang import verdict
from tui.sglang.events import LogRead
from tui.sglang.facts import read
from tui.sglang.model import ServerInfo
from tui.sglang.reduce import reduce
from tui.sglang.short import short
from tui.sglang.state import ServerState

FILE = Path(__file__).parent.parent / "data" / "failure_logs.txt"


def cases() -> Iterator[tuple[str, str, str, str]]:
    """Name, phase, kind (``-`` where nothing failed) and log of each case."""
    for block in FILE.read_text().split("\n=== ")[1:]:
        head, _, log = block.partition("\n")
        name, phase, kind = (part.strip() for part in head.split("|"))
        yield name, phase, kind, expand(log.rstrip("\n")) + "\n"


@pytest.mark.parametrize(("name", "phase", "kind", "log"), cases(), ids=[case[0] for case in cases()])
def test_log(name: str, phase: str, kind: str, log: str) -> None:
    expected = next((line[2:] for line in log.split("\n") if line.startswith(">>")), None)
    assert (expected is None) == (kind == "-"), "a failure has its line, and nothing else has"
    facts = read([re.sub(r"(?m)^>>", "", log).encode()])
    state = reduce(ServerState(ServerInfo("gpu0")), LogRead(0.0, facts))
    found = verdict.failure(state)
    assert verdict.phase(state).value == phase
    assert (found.kind.value if found else "-", found.line if found else None) == (kind, expected)
    if found is not None:
        assert found.explanation and found.advice and short(found)


def test_every_kind_has_a_log() -> None:
    from tui.sglang.model import FailureKind

    assert {kind for _, _, kind, _ in cases()} >= {kind.value for kind in FailureKind}
