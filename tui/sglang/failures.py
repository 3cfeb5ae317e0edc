"""A failure beside its log: in the light of how the process ended, explained by its end alone, or in a few words.

What the log itself says is concluded in ``tui.sglang.diagnosis``. All are pure and total.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tui.sglang.kinds import LineKind, kind_of
from tui.sglang.logfacts import LogFacts
from tui.sglang.model import Exit, Failure, FailureKind
from tui.sglang.short import short

__all__ = ["advised", "from_exit", "short", "weigh"]

# Lines of a server that is well
_EVERYDAY = frozenset({
    LineKind.BATCH, LineKind.CACHE, LineKind.HTTP, LineKind.PROBE, LineKind.PROGRESS, LineKind.READY, LineKind.STAGE
})  # fmt: skip
# What is said when a process is gone, whatever ended it
_SYMPTOMS = frozenset({FailureKind.CHILD_DIED, FailureKind.NCCL, FailureKind.MULTI_NODE, FailureKind.OTHER})
_GUESSED = re.compile(r"(?i)exit ?code[:=]? *-9|exited with code 137|\bKilled\b|status=9")


def from_exit(exit: Exit, facts: LogFacts, full: str = "") -> Failure:
    """Explains an end of which the log says nothing. Its last line may still be an error that nobody knows here; one
    of its everyday is none. ``full``: that the disk of its log was, as its host last said."""
    from tui.sglang.advice import advise, silent  # seldom asked: not in the way of the first paint

    kind, explanation = _of_exit(exit)
    mute = not facts.last_line.strip() or kind_of(facts.last_line) in _EVERYDAY
    line, number = ("", 0) if mute else (facts.last_line, facts.lines)
    advice = silent(line) if kind is FailureKind.OTHER else advise(kind, line, facts)
    if full:
        explanation = f"{explanation} Its host had said: {full}."
        advice = ("Free space there, then launch it again: `df -h` names what is full.", *advice[1:])
    return Failure(kind, line, number, explanation, advice)


def weigh(failure: Failure, exit: Exit, facts: LogFacts) -> Failure:
    """What the log says, in the light of how the process ended: whether the OOM killer was at work is counted by the
    kernel, and only guessed from an exit code -9."""
    if exit.oom_killed and failure.kind in _SYMPTOMS:
        kind, explanation = FailureKind.OS_OOM_KILLED, "The kernel's OOM killer ended a process of the server."
    elif exit.oom_killed is False and failure.kind is FailureKind.OS_OOM_KILLED and _GUESSED.search(failure.line):
        kind, explanation = (
            FailureKind.CHILD_DIED,
            "A process of the server was ended by SIGKILL, and the kernel counted no OOM kill: somebody sent it.",
        )
    else:
        return failure
    from tui.sglang.advice import advise  # seldom asked

    return replace(failure, kind=kind, explanation=explanation, advice=advise(kind, failure.line, facts))


def advised(failure: Failure, facts: LogFacts, version: str | None) -> Failure:
    """The failure with advice for the version that is known better than by the log."""
    if version is None or version == facts.version or failure.line_number == 0:
        return failure
    from tui.sglang.advice import advise  # seldom asked

    return replace(failure, advice=advise(failure.kind, failure.line, facts, version))


def _of_exit(exit: Exit) -> tuple[FailureKind, str]:
    if exit.oom_killed:
        return (
            FailureKind.OS_OOM_KILLED,
            "The kernel's OOM killer ended the server: the counter of its control group rose. The log does not say so.",
        )
    if exit.signal == "SIGKILL" or exit.status == 137:
        unsure = "" if exit.oom_killed is None else " No OOM kill was counted."
        return (
            FailureKind.CHILD_DIED,
            f"The server ended by SIGKILL and its log gives no reason.{unsure} SGLang ends itself this way "
            "after an error; so do the OOM killer and `kill -9`.",
        )
    if exit.signal is not None:
        return FailureKind.CHILD_DIED, f"The server ended by {exit.signal} and its log gives no reason."
    if exit.status == 2:
        return (
            FailureKind.BAD_ARGUMENT,
            "The server ended with status 2, as it does when it refuses its command line, but its log does "
            "not say why.",
        )
    if exit.status is not None:
        return FailureKind.OTHER, f"The server ended with status {exit.status} and its log gives no reason."
    return FailureKind.OTHER, "The server is gone; nobody saw how it ended, and its log gives no reason."
