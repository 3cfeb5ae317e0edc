"""``Clue``: one line that may explain a failure, and which of two explains more."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tui.sglang.failure_row import SYMPTOM
from tui.sglang.failure_table import CLUMSY
from tui.sglang.model import FailureKind


@dataclass(frozen=True, slots=True)
class Clue:
    """One line that may explain the failure. ``kind`` ``None``: the stage or the place of the error tells it."""

    line: str
    number: int
    text: str
    kind: FailureKind | None
    explanation: str | None  # None: an exception that no row of the table knows
    weight: int
    frame: str = ""  # the innermost source file of its traceback
    where: str = ""  # "load" | "host" | "graph" | "run" | "worker": which part of SGLang its traceback went through
    bare: bool = False  # an exception that nobody announced: the end of its process, or survived


def better(old: Clue | None, new: Clue | None) -> Clue | None:
    """The heavier clue, and of equals the earlier."""
    if old is None or new is None:
        return old or new
    return new if new.weight > old.weight else old


def of_chain(old: Clue, new: Clue, how: str) -> Clue:
    """Which of two chained exceptions explains more: the later, which usually repeats the earlier and says where,
    unless only the earlier is known, or the later is a slip of the code that handled the earlier."""
    if "previous error during capture" in new.text:
        return old
    if new.explanation is None and old.explanation is not None and old.weight > SYMPTOM:
        return old
    if (
        new.explanation is None
        and old.explanation is None
        and old.weight >= new.weight
        and how == "during"
        and CLUMSY.match(new.text)
    ):
        return old
    if new.weight < old.weight and old.weight > SYMPTOM:
        return old
    return replace(new, where=new.where or old.where) if new.where != "graph" and old.where == "graph" else new


def refines(chain: Clue, kind: FailureKind | None, weight: int) -> bool:
    """Whether a line of the text says more than the exception: the exception says nothing, or the same less
    exactly."""
    if chain.explanation is None or (weight > chain.weight and chain.text.rstrip().endswith(":")):
        return True
    if kind is chain.kind:
        return kind in (FailureKind.KERNEL_COMPILE, FailureKind.IMPORT_ERROR) and (
            weight > chain.weight or chain.text.rstrip().endswith(":")
        )
    return False
