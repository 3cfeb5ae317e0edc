"""``reduce(state, event) -> state`` and what depends on the time, ``marks(state, now)``. Both pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tui.sglang import verdict
from tui.sglang.events import (
    Event,
    Exited,
    HostBack,
    HostLost,
    HttpRead,
    Launched,
    LogRead,
    Noted,
    Refused,
    StopAsked,
    Vanished,
    Watched,
)
from tui.sglang.facts import LogFacts
from tui.sglang.model import Phase
from tui.sglang.state import ServerState

_NOTES = 10
_GROWTH = 64 << 20  # bytes of pinned memory that count as a sign of life


@dataclass(frozen=True, slots=True)
class Marks:
    """What stands beside the phase at one moment."""

    stalled: bool = False
    stall_reason: str = ""
    unreachable: bool = False
    stale: bool = False  # the throughput is not the present one


def reduce(state: ServerState, event: Event) -> ServerState:
    """The state after ``event``. Total and deterministic."""
    after = _step(state, event)
    if after.ready_at is None and verdict.phase(after) is Phase.READY:
        return replace(after, ready_at=event.at)
    return after


def _step(state: ServerState, event: Event) -> ServerState:
    match event:
        case LogRead(at, facts):
            return _log_read(state, at, facts)
        case Watched():
            return _watched(state, event)
        case Launched(at, run, previous):
            return ServerState(state.info, run=run, previous_stages=previous, seen_at=at, log_at=at, alive=None)
        case Refused(at, failure):
            return ServerState(state.info, refused=failure, seen_at=at, previous_stages=state.previous_stages)
        case HttpRead(at, ready, sample):
            return replace(
                state, http_ready=state.http_ready if ready is None else ready, http=sample or state.http, seen_at=at
            )
        case Exited(at, exit):
            return replace(state, exit=exit, alive=False, listening=None, seen_at=at)
        case Vanished(at):
            return replace(state, alive=False, listening=None, seen_at=at)
        case StopAsked(at):
            return replace(state, stop_asked=at)
        case HostLost(at, why):
            return replace(state, unreachable_since=state.unreachable_since or at, unreachable_why=why)
        case HostBack(at):
            return replace(state, unreachable_since=None, unreachable_why=None, seen_at=at)
        case Noted(_, note):
            return state if note in state.notes else replace(state, notes=(*state.notes, note)[-_NOTES:])


def _log_read(state: ServerState, at: float, facts: LogFacts) -> ServerState:
    if facts.size < state.log.size:
        return state  # an older look at the same log
    alive_line = facts.last_line != state.log.last_line or facts.lines > state.log.lines
    return replace(state, log=facts, log_at=at if alive_line else state.log_at, seen_at=at)


def _watched(state: ServerState, event: Watched) -> ServerState:
    memory = event.memory or state.memory
    pinned = memory.pinned if memory else 0
    grew = pinned > state.memory_peak + _GROWTH
    return replace(
        state,
        alive=state.alive if event.alive is None else event.alive,
        listening=state.listening if event.listening is None else event.listening,
        memory=memory,
        memory_peak=max(state.memory_peak, pinned) if grew or not state.memory_peak else state.memory_peak,
        log_at=event.at if grew and verdict.phase(state) is Phase.STARTING else state.log_at,
        seen_at=event.at,
    )


def marks(state: ServerState, now: float) -> Marks:
    """What stands beside the phase at ``now`` (Unix seconds)."""
    reason = _stall_reason(state, now)
    return Marks(bool(reason), reason, state.unreachable_since is not None, verdict.is_stale(state, now))


def _stall_reason(state: ServerState, now: float) -> str:
    """Why a server counts as stalled; empty when it does not."""
    if state.run is None or state.unreachable_since is not None or verdict.phase(state) is not Phase.STARTING:
        return ""
    if state.listening == "foreign":
        return f"port {state.info.port} belongs to another process"
    quiet = now - state.log_at if state.log_at is not None else 0.0
    if quiet > state.info.stall_after:
        waiting = f", waiting for {', '.join(state.log.missing_ranks)}" if state.log.missing_ranks else ""
        what = "no output at all" if state.log.size == 0 else "no new line and no growing memory"
        return f"{what} for {_age(quiet)}{waiting}"
    started = now - state.run.started
    if started > state.info.ready_timeout:
        return f"not ready after {_age(started)}, the deadline was {_age(state.info.ready_timeout)}"
    return ""


def _age(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m{whole % 60:02}s" if whole < 3600 else f"{whole // 3600}h{whole % 3600 // 60:02}"
