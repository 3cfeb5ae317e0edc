"""A wording of a failure as a value: ``Row``, where it may stand (``Place``), and how much it explains (weights)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Flag, auto

from tui.sglang.model import FailureKind


class Place(Flag):
    """Where a text may stand to mean what it says."""

    START = auto()  # at the start of a log message
    ENDS = auto()  # the exception that ends a traceback
    TAIL = auto()  # a later line of that exception's text
    LOOSE = auto()  # anywhere in an ordinary line; counts only beside an exception that explains nothing


CAUSE = 30  # explains the failure by itself
SECONDHAND = 22  # what the other ranks say when one has died; a cause only when nothing better is there
SYMPTOM = 15  # says that something died, not why
FAINT = 8  # says little, yet more than silence


@dataclass(frozen=True, slots=True)
class Row:
    """One wording. ``fatal``: the failure stands even while the process may still live."""

    pattern: re.Pattern[str]
    kind: FailureKind | None  # None: out of GPU memory, and the stage tells which kind
    explanation: str
    places: Place
    weight: int = CAUSE
    fatal: bool = False


def row(
    pattern: str,
    kind: FailureKind | None,
    explanation: str,
    places: Place = Place.ENDS,
    weight: int = CAUSE,
    fatal: bool = False,
) -> Row:
    """A row of the table from its pattern's text."""
    return Row(re.compile(pattern), kind, explanation, places, weight, fatal)


def match(text: str, rows: Sequence[Row]) -> Row | None:
    """The first row whose words are in ``text``."""
    return next((row for row in rows if row.pattern.search(text)), None)
