"""What the facts of a ``ServerState`` mean together. Pure functions of a state; nothing derived is kept."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tui.sglang import failures
from tui.sglang.model import Failure, FailureKind, Phase, Sample, Stage, StageSpan
from tui.sglang.state import ServerState


def saved(state: ServerState) -> bool:
    """Whether this is a saved log with no run behind it."""
    return state.run is None and state.log.size > 0


def phase(state: ServerState) -> Phase:
    """Where the server's life stands."""
    if saved(state):
        return _saved_phase(state)
    if state.refused is not None:
        return Phase.FAILED
    if state.run is None:
        return Phase.ABSENT
    if state.exit is not None:
        return _ended(state)
    if state.alive is False:
        return Phase.FAILED if state.log.failure and not state.stop_asked else Phase.LOST
    if state.stop_asked is not None:
        return Phase.STOPPING
    if state.log.fatal:
        return Phase.FAILED
    if state.log.shutting_down:
        return Phase.STOPPING
    return Phase.READY if is_ready(state) else Phase.STARTING


def _saved_phase(state: ServerState) -> Phase:
    log = state.log
    if log.fatal:
        return Phase.FAILED
    if log.shutting_down:
        return Phase.STOPPED
    return Phase.READY if log.ready else Phase.STARTING


def _ended(state: ServerState) -> Phase:
    assert state.exit is not None
    if state.stop_asked is not None:
        return Phase.STOPPED
    if state.log.shutting_down and not state.log.fatal:
        return Phase.STOPPED
    if state.exit.status == 0 and state.log.failure is None:
        return Phase.STOPPED
    return Phase.FAILED


def is_ready(state: ServerState) -> bool:
    """Ready: it says so, its process lives, and a socket of its own accepts on its port."""
    if not state.alive or state.listening != "own":
        return False
    if state.info.ready_by == "http":
        return state.http_ready is True
    if state.log.ready:
        return True
    return state.info.ready_by == "auto" and state.http_ready is True


def stage(state: ServerState) -> Stage | None:
    """The stage of the start-up that all ranks have reached; ``None`` where there is no run or nothing is known."""
    if state.run is None and not saved(state):
        return None
    if phase(state) is Phase.READY:
        return Stage.READY
    told = state.log.stage
    if told is Stage.READY and phase(state) is Phase.STARTING:
        return Stage.WARMUP  # the log says ready, but the socket is not there yet, or is not its own
    return told or (Stage.LAUNCHING if state.run is not None or saved(state) else None)


def stages(state: ServerState) -> tuple[StageSpan, ...]:
    """The stages so far. ``launching`` begins with the run and lasts until the log tells of another."""
    spans = state.log.stages
    run = state.run
    if run is None:
        return spans
    started = run.started + (run.utc_offset or 0)
    rest = tuple(span for span in spans if span.stage is not Stage.LAUNCHING)
    first = next((span.start_local for span in rest if span.start_local is not None), None)
    seconds = max(0.0, round(first - started, 1)) if first is not None else None
    return (StageSpan(Stage.LAUNCHING, started, seconds), *rest)


def failure(state: ServerState) -> Failure | None:
    """Why the server failed: what its log says first, else what its end says."""
    if phase(state) is not Phase.FAILED:
        return None
    if state.refused is not None:
        return state.refused
    if state.log.failure is not None:
        return state.log.failure
    if state.exit is not None:
        return failures.from_exit(state.exit, state.log)
    return Failure(FailureKind.OTHER, state.log.last_line, state.log.lines, "It failed, and its log does not say why.")


def figures(state: ServerState) -> Sample | None:
    """The newest live figures: of the log, or by HTTP where the log is silent."""
    return state.log.latest or state.http


def stale_after(state: ServerState) -> float:
    """Seconds without a batch line after which a throughput is no longer the present one: 10, or three intervals."""
    times = [sample.at_local for sample in state.log.series[-4:]]
    longest = max((b - a for a, b in pairwise(times)), default=0.0)
    return max(10.0, min(3 * longest, 60.0))


@dataclass(frozen=True, slots=True)
class Throughput:
    """Tokens per second, summed over DP ranks; ``None`` when unknown. ``stale``: not the present figures, it idles."""

    generate: float | None = None
    prefill: float | None = None
    stale: bool = False


def throughput(state: ServerState, now: float) -> Throughput:
    """How fast the server works at ``now``. A saved log has no now: its last figures."""
    sample = figures(state)
    if sample is None or not (saved(state) or phase(state) is Phase.READY):
        return Throughput()
    if saved(state):
        return Throughput(sample.generate, sample.prefill)
    generate = None if state.log.after_idle else sample.generate  # it would average over the idle time
    return Throughput(generate, sample.prefill, is_stale(state, now))


def is_stale(state: ServerState, now: float) -> bool:
    """Whether the newest batch line is older than three intervals, and at least 10 s."""
    sample = figures(state)
    if sample is None or saved(state):
        return False
    offset = state.run.utc_offset if state.run else None
    return now + (offset or 0) - sample.at_local > stale_after(state)
