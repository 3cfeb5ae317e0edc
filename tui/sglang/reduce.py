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
    Queued,
    Refused,
    RestartsTold,
    StopAsked,
    Vanished,
    Watched,
)
from tui.sglang.model import Phase
from tui.sglang.stall import stall
from tui.sglang.state import ServerState

NOTES = 20
_GROWTH = 64 * 1024 * 1024  # bytes of pinned memory that count as a sign of life


def reduce(state: ServerState, event: Event) -> ServerState:
    """The state after one event."""
    after = _reduce(state, event)
    if after.ready_at is None and verdict.phase(after) is Phase.READY and after.run is not None:
        return replace(after, ready_at=_ready_since(after, event.at))
    return after


def _reduce(state: ServerState, event: Event) -> ServerState:
    match event:
        case LogRead():
            return _log_read(state, event)
        case Watched():
            return _watched(state, event)
        case HttpRead():
            ready = state.http_ready if event.ready is None else event.ready
            http, facts = event.sample or state.http, event.facts or state.http_facts
            return replace(state, http_ready=ready, http=http, http_facts=facts, seen_at=event.at)
        case Launched():
            info, stages = event.info or state.info, event.previous_stages
            return ServerState(info, event.run, seen_at=event.at, previous_stages=stages, restarts=state.restarts)
        case Refused():
            return ServerState(state.info, refused=event.failure, seen_at=event.at, restarts=state.restarts)
        case Exited():
            ended = replace(state, exit=event.exit, alive=False, listening="none", vanished=False, seen_at=event.at)
            left = (event.exit.leftover,) if event.exit.leftover else ()
            return replace(ended, warnings=left, last_warnings=state.warnings or state.last_warnings)
        case Vanished():
            gone = replace(state, vanished=True, vanished_why=event.why, alive=False, listening="none")
            return replace(gone, warnings=(), last_warnings=state.warnings or state.last_warnings, seen_at=event.at)
        case StopAsked():
            return replace(state, stop_asked=state.stop_asked or event.at)
        case HostLost():
            since = state.unreachable_since or event.at
            return replace(state, unreachable_since=since, unreachable_why=event.why)
        case HostBack():
            return replace(state, unreachable_since=None, unreachable_why=None, seen_at=event.at)
        case Noted():
            notes = (*(note for note in state.notes if note != event.note), event.note)
            return replace(state, notes=notes[-NOTES:])
        case Queued():
            return replace(state, launch_at=event.due)
        case RestartsTold():
            return replace(state, restarts=event.restarts)


def _log_read(state: ServerState, event: LogRead) -> ServerState:
    log = state.log.merge(event.facts)
    lives = log.life > state.log.life
    return replace(state, log=log, log_at=event.at if lives else state.log_at, seen_at=event.at)


def _watched(state: ServerState, event: Watched) -> ServerState:
    alive = state.alive if event.alive is None else event.alive
    listening = event.listening or state.listening
    listener = event.listener if event.listening else state.listener
    warnings = state.warnings if event.warnings is None else event.warnings
    after = replace(state, alive=alive, listening=listening, listener=listener, warnings=warnings, seen_at=event.at)
    if event.memory is None:
        return after
    pinned = event.memory.pinned
    grew = pinned >= state.memory_peak + _GROWTH
    return replace(
        after,
        memory=event.memory,
        memory_peak=max(state.memory_peak, pinned) if grew or state.memory is None else state.memory_peak,
        grew_at=event.at if grew else state.grew_at,
    )


def _ready_since(state: ServerState, at: float) -> float:
    """When it became ready: of a run that was found ready, what its log says."""
    run, local = state.run, state.log.ready_local
    if run is not None and run.adopted and run.utc_offset is not None and local is not None:
        return min(at, local - run.utc_offset)
    return at


@dataclass(frozen=True, slots=True)
class Marks:
    """What stands beside the phase at one moment."""

    stalled: bool = False
    stall_reason: str = ""
    unreachable: bool = False
    stale: bool = False  # the rates are too old to be true


def marks(state: ServerState, now: float) -> Marks:
    """What the passing of time says of the server; ``now`` in Unix seconds."""
    unreachable = state.unreachable_since is not None
    reason = None if unreachable else stall(state, now)
    return Marks(reason is not None, reason or "", unreachable, verdict.throughput(state, now).stale)
