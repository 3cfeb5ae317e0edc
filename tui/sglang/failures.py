"""A failure beside its log: in the light of how the process ended, explained by its end alone, or in a few words.

What the log itself says is concluded in ``tui.sglang.diagnosis``. All are pure and total.
"""

from __future__ import annotations

from dataclasses import replace

from tui.sglang.logfacts import LogFacts
from tui.sglang.model import Exit, Failure, FailureKind
from tui.sglang.short import short

__all__ = ["from_exit", "short", "weigh"]


def from_exit(exit: Exit, facts: LogFacts) -> Failure:
    """Explains an end of which the log says nothing; the last line is all there is to show."""
    from tui.sglang.advice import advise  # seldom asked: not in the way of the first paint

    kind, explanation = _of_exit(exit)
    return Failure(kind, facts.last_line, facts.lines, explanation, advise(kind, facts.last_line, facts))


def weigh(failure: Failure, exit: Exit) -> Failure:
    """What the log says, in the light of how the process ended: whether the OOM killer was at work is counted by the
    kernel, and only guessed from an exit code -9."""
    if exit.oom_killed and failure.kind is FailureKind.CHILD_DIED:
        kind, explanation = FailureKind.OS_OOM_KILLED, "The kernel's OOM killer ended a process of the server."
    elif exit.oom_killed is False and failure.kind is FailureKind.OS_OOM_KILLED and "exit code" in failure.line.lower():
        kind, explanation = (
            FailureKind.CHILD_DIED,
            "A process of the server was ended by SIGKILL, and the kernel counted no OOM kill: somebody sent it.",
        )
    else:
        return failure
    return replace(failure, kind=kind, explanation=explanation)


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
