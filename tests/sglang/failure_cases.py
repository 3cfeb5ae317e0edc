"""Ways in which SGLang fails, as logs: what an expert would say of each (``tests/data/failures.txt``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tui.sglang.model import FailureKind, Stage

FILE = Path(__file__).parent.parent / "data" / "failures.txt"


@dataclass(frozen=True)
class Case:
    """One log; the line that explains it begins with ``>>`` (taken off before it is read)."""

    name: str
    log: str
    kind: FailureKind | None
    stage: Stage | None
    flags: frozenset[str]


def cases() -> Iterator[Case]:
    """All cases of the file, in order."""
    for block in FILE.read_text().split("\n=== ")[1:]:
        head, _, log = block.partition("\n")
        name, kind, stage, flags = (part.strip() for part in head.split("|"))
        yield Case(
            name,
            log.rstrip("\n") + "\n",
            None if kind == "-" else FailureKind(kind),
            None if stage == "-" else Stage(stage),
            frozenset(flags.split()),
        )
