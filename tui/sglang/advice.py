"""What to do about a failure, with the numbers at hand. Pure functions."""

from __future__ import annotations

from tui.sglang.facts import LogFacts
from tui.sglang.model import Failure, FailureKind


def advise(kind: FailureKind, line: str, facts: LogFacts) -> tuple[str, ...]:
    """Advice for a failure of this kind, most useful first."""
    return ()


def short(failure: Failure) -> str:
    """The failure for one row of the board: a few words and what to do."""
    return failure.explanation
