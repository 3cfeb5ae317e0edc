"""When a server is launched again by itself: ``decide(policy, ends, limits)``. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tui.sglang import failures, verdict
from tui.sglang.model import Failure, FailureKind, Phase
from tui.sglang.state import ServerState

NEVER, ON_FAILURE, ALWAYS = "never", "on-failure", "always"
REPEATS = frozenset(
    {
        FailureKind.BAD_ARGUMENT,
        FailureKind.BAD_FLAG_COMBINATION,
        FailureKind.MODEL_NOT_FOUND,
        FailureKind.PORT_IN_USE,
        FailureKind.IMPORT_ERROR,
        FailureKind.OOM_GPU_STATIC,
        FailureKind.OOM_CUDA_GRAPH,
        FailureKind.OOM_HOST_HICACHE,
    }
)
"""Failures of a start-up that the same command meets again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How patiently it is tried; seconds. ``window`` counts only time in which the server was ready: start-ups may
    take longer than any window, and a server that never gets ready must still be given up."""

    first: float = 5.0
    factor: float = 2.0
    longest: float = 300.0
    restarts: int = 5
    window: float = 3600.0
    poll: float = 10.0  # between two looks at who restarts
    lingering: float = 90.0  # for a server that has failed to end by itself


@dataclass(frozen=True, slots=True)
class End:
    """How a run, or an attempt to launch one, ended. ``served``: seconds that it had been ready for."""

    reason: str
    kind: FailureKind | None = None
    served: float = 0.0
    failed: bool = True
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """Launch again after ``delay`` seconds; ``None``: not, and ``why`` says the reason, if it is worth saying.
    ``made``: restarts so far, of those that the limit counts."""

    delay: float | None
    why: str = ""
    made: int = 0


def decide(policy: str, ends: Sequence[End], limits: Limits) -> Decision:
    """What follows from the newest of ``ends``, oldest first, of one server since somebody launched it."""
    last = ends[-1]
    if policy == NEVER or last.asked or (policy == ON_FAILURE and not last.failed):
        return Decision(None)
    recent = counted(ends, limits.window)
    made = len(recent) - 1
    if last.failed and last.kind in REPEATS and not last.served:
        return Decision(None, f"not restarted, since it would fail again: {last.reason}", made)
    if made >= limits.restarts:
        return Decision(None, f"given up after {_times(limits.restarts)}: {_reasons(recent)}", made)
    return Decision(min(limits.longest, limits.first * limits.factor**made), last.reason, made)


def counted(ends: Sequence[End], window: float) -> Sequence[End]:
    """The newest ends, as far back as the runs after them were ready for no more than ``window`` together."""
    served = 0.0
    for back, end in enumerate(reversed(ends)):
        served += end.served
        if served > window:
            return ends[len(ends) - 1 - back :]
    return ends


def _times(count: int) -> str:
    return "1 restart" if count == 1 else f"{count} restarts"


def _reasons(ends: Sequence[End]) -> str:
    counts = Counter(end.reason for end in ends)
    return "; ".join(f"{count} × {reason}" if count > 1 else reason for reason, count in counts.items())


def end_of(state: ServerState, now: float) -> End:
    """The end of ``state``'s run, whose process is gone, or does nothing any more."""
    phase = verdict.phase(state)
    served = max(0.0, now - state.ready_at) if state.ready_at is not None else 0.0
    asked = state.stop_asked is not None
    if phase is Phase.LOST:
        why = state.vanished_why or "nobody saw how (a reboot?)"
        return End(f"gone, and {why}", None, served, True, asked)
    failure = verdict.failure(state)
    if phase is Phase.FAILED:
        return End(_words(failure) if failure else _exit(state), failure.kind if failure else None, served, True, asked)
    return End(f"ended by itself, {_exit(state)}", None, served, False, asked)


def end_of_refusal(failure: Failure) -> End:
    """An attempt that never became a process."""
    return End(_words(failure), failure.kind)


def _words(failure: Failure) -> str:
    return failures.short(failure).partition(" → ")[0]  # what to do about it stands beside the failure itself


def _exit(state: ServerState) -> str:
    end = state.exit
    return "unknown status" if end is None else end.signal or f"status {end.status}"
