"""What a log has said so far that may explain a failure: ``Trace``, small and bounded: a few clues, each one line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from tui.sglang.clue import Clue, better

LINE_CAP = 16_384  # characters kept of a clue's line


class LogLine(Protocol):
    """The part of ``lines.Line`` that is read here."""

    @property
    def number(self) -> int: ...
    @property
    def raw(self) -> bytes: ...
    @property
    def message(self) -> str: ...
    @property
    def prefixed(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Trace:
    """What may explain a failure. ``best`` is settled; ``chain`` is the traceback that is being read."""

    best: Clue | None = None
    chain: Clue | None = None
    loose: Clue | None = None
    fatal: bool = False
    bare_end: int = 0  # ordinary lines that may still follow an uncaught exception before it counts as survived
    announced: int = 0  # number of the newest line that announced an exception which somebody caught
    announcement: str = ""
    ready: bool = False
    stopping: bool = False
    ended_itself: bool = False  # SGLang said that it kills its own processes
    mode: str = ""  # "" | "trace" | "tail"
    context: int = 0  # weight of an unexplained exception in this traceback
    bare: bool = False
    chained: str = ""  # "" | "during" | "cause": how the next traceback hangs on this one
    left: int = 0  # lines that the traceback, or its text, may still have
    frame: str = ""
    where: str = ""
    before_gib: float | None = None  # free GPU memory before the first load of weights, tightest rank
    after_gib: float | None = None  # and after the newest
    heartbeat: str = ""  # the time of the last sign of life, as the newest failed health check tells it
    heartbeat_stands: bool = False  # the one before told the same


EMPTY = Trace()


def spend(trace: Trace, lines: int) -> Trace:
    """A traceback whose end never comes is given up after a while."""
    return replace(trace, left=trace.left - lines) if trace.left > lines else settle(trace)


def settle(trace: Trace) -> Trace:
    """The chain is complete: keep it if it beats what is known."""
    return replace(trace, best=better(trace.best, trace.chain), chain=None, mode="", chained="", frame="", where="")


def settle_if_tail(trace: Trace) -> Trace:
    """The text of an exception is over, unless another traceback hangs on it."""
    return settle(trace) if trace.mode == "tail" and not trace.chained else trace


def raw_line(line: LogLine) -> str:
    """A line as it stands in the log, as far as a clue keeps it."""
    return line.raw[: LINE_CAP * 4].decode("utf-8", "replace")[:LINE_CAP]
