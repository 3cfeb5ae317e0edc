"""What the facts of a ``ServerState`` mean together. Pure functions of a state (and of the time, where it matters)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tui.sglang import failures, memory
from tui.sglang.logfacts import LogFacts
from tui.sglang.model import Failure, ModelFacts, Phase, Sample, Stage, StageSpan
from tui.sglang.state import ServerState

STALE_AFTER = 10.0  # seconds
HTTP_INTERVAL = 10.0  # seconds between two questions for figures
# Python's tracker outlives all processes that share it, and speaks when they have not cleaned up: they were killed
_LAST_WORD = re.compile(r"resource_tracker: There appear to be \S{1,9} ")


@dataclass(frozen=True, slots=True)
class Throughput:
    """Tokens per second of the whole server. ``stale``: too old to be true now; then a live server's are 0."""

    generate: float | None = None
    prefill: float | None = None
    stale: bool = False


def saved(state: ServerState) -> bool:
    """Whether this is a log read from a file, with no process behind it."""
    return state.run is None and state.log.size > 0


def phase(state: ServerState) -> Phase:
    """Where the server's life stands."""
    if state.refused is not None:
        return Phase.FAILED
    if state.run is None:
        return _of_log(state) if saved(state) else Phase.ABSENT
    if state.exit is not None or state.vanished:
        return _ended(state)
    if state.log.fatal and state.stop_asked is None:
        return Phase.FAILED
    if state.stop_asked is not None or state.log.shutting_down or state.alive is False:
        return Phase.STOPPING
    return Phase.READY if is_ready(state) else Phase.STARTING


def _of_log(state: ServerState) -> Phase:
    """By the log alone, as it ends."""
    if state.log.fatal:
        return Phase.FAILED
    if state.log.shutting_down:
        return Phase.STOPPED
    if not state.log.ready:
        return Phase.STARTING
    return Phase.LOST if _LAST_WORD.search(state.log.last_line) else Phase.READY


def _ended(state: ServerState) -> Phase:
    """The process is gone."""
    if state.stop_asked is not None:
        return Phase.STOPPED
    if state.log.fatal or (state.exit is not None and state.exit.refused is not None):
        return Phase.FAILED
    if state.log.shutting_down:
        return Phase.STOPPED  # somebody else asked; up to 0.5.18 even a clean end is by SIGKILL
    if state.exit is None:
        return Phase.LOST
    return Phase.STOPPED if state.exit.status == 0 and state.exit.signal is None else Phase.FAILED


def lingers(state: ServerState) -> bool:
    """Whether the server has failed, by its log, while its process lives on."""
    return state.alive is True and state.exit is None and not state.vanished and phase(state) is Phase.FAILED


def leftover(state: ServerState) -> str | None:
    """Of a server that has failed while its process lives on: that it does."""
    if not lingers(state) or state.run is None:
        return None
    return f"failed, but pid {state.run.pid} lives on and may hold its port and memory"


def silent(log: LogFacts) -> bool:
    """Whether a log tells so little that readiness must be asked for: ``--log-level warning`` leaves progress bars and
    warnings alone, and a format of its own may leave nothing that is understood."""
    return not (log.ready or log.args or log.staged)


def is_ready(state: ServerState) -> bool:
    """Whether a live server takes requests: it says so, it lives, and the socket on its port is its own."""
    if state.alive is not True or (state.info.port is not None and state.listening != "own"):
        return False
    by = state.info.ready_by
    if by == "http":
        return state.http_ready is True
    if state.log.ready:
        return True
    if state.log.worker_node and state.info.port is not None:
        return True  # it listens once its schedulers are ready, and never prints the ready line
    return by == "auto" and state.http_ready is True and silent(state.log)


def port_taken(state: ServerState) -> str | None:
    """Of a server that does not run: who has its port."""
    if state.listening != "foreign" or state.listener is None or phase(state) is not Phase.ABSENT:
        return None
    return f"port {state.info.port} is taken by {state.listener}"


def unread(state: ServerState) -> str | None:
    """That the middle of a long log is still to be read: what only it tells is not known."""
    missing = state.log.missing
    return f"{missing / 1e6:.1f} MB in the middle of its log are still to be read" if missing else None


def stage(state: ServerState) -> Stage | None:
    """The stage of the start-up that the server stands in, or ended in; ``None`` where there is no run."""
    if saved(state):
        return state.log.stage or (Stage.LAUNCHING if state.log.lines or state.log.last_line else None)
    if state.run is None:
        return None
    now = phase(state)
    if now is Phase.READY:
        return Stage.READY
    if state.log.stage is Stage.READY and now is Phase.STARTING:
        return Stage.WARMUP  # the log says ready, but the socket is not there yet, or is not its own
    return state.log.stage or Stage.LAUNCHING


def stages(state: ServerState) -> tuple[StageSpan, ...]:
    """The stages so far. A live run's first is ``launching``, from the start of its process."""
    spans = state.log.stages
    run = state.run
    if run is None or run.utc_offset is None:
        return spans
    begun = run.started + run.utc_offset
    rest = tuple(_closed(span, state) for span in spans if span.stage is not Stage.LAUNCHING)
    first = next((span.start_local for span in rest if span.start_local is not None), None)
    seconds = None if first is None else max(0.0, round(first - begun, 3))
    return (StageSpan(Stage.LAUNCHING, begun, seconds), *rest)


def _closed(span: StageSpan, state: ServerState) -> StageSpan:
    """The stage in which an ended run stood last, with the time until its last line; where the lines after the stage's
    first have no time, until its process ended."""
    begun, over = span.start_local, state.alive is False or state.log.fatal
    if not over or span.seconds is not None or begun is None or state.log.last_local is None:
        return span
    seconds = round(state.log.last_local - begun, 3)
    if seconds <= 0 and state.run and state.run.utc_offset is not None and state.exit and state.exit.at is not None:
        seconds = round(state.exit.at + state.run.utc_offset - begun, 3)
    return replace(span, seconds=seconds) if seconds > 0 else span


def failure(state: ServerState) -> Failure | None:
    """Why the server failed; of one that has not failed, what may explain why it does not go on."""
    if state.refused is not None:
        return state.refused
    now = phase(state)
    if now is Phase.FAILED:
        found = _explained(state)
    else:
        found = state.log.failure if now in (Phase.LOST, Phase.STARTING) else None
    return found and failures.advised(found, state.log, version(state))


def _explained(state: ServerState) -> Failure | None:
    found, end = state.log.failure, state.exit
    if end is None:
        return found
    if end.refused is not None:
        return end.refused
    if found is not None:
        return failures.weigh(found, end, state.log)
    full = next((words for words in state.last_warnings if words.startswith("no space left ")), "")
    return failures.from_exit(end, state.log, full)


def version(state: ServerState) -> str | None:
    """SGLang's: as the running server answered, as the launch found it installed, or as its log gives it away."""
    return state.http_facts.version or (state.run.sglang if state.run else None) or state.log.version


def model_facts(state: ServerState) -> ModelFacts:
    """Model, limits and version: of the profile and the log, or by HTTP where the log tells none."""
    log, http = state.log, state.http_facts
    return ModelFacts(
        state.info.model or log.model or http.model,
        log.context_len or http.context_len,
        log.max_total_num_tokens or http.max_total_num_tokens,
        log.max_running_requests or http.max_running_requests,
        version(state),
    )


def planned_host_gb(state: ServerState) -> float | None:
    """The decimal GB of host memory that the server's flags ask for, all ranks: of the flags that its log lists, by the
    version that is known, else as its profile had it."""
    hybrid = True if any(pool.kind == "Mamba" for pool in state.log.pools) else None
    planned = memory.plan(state.log.args, version(state), hybrid)
    return planned.total_gb if planned.enabled else state.info.planned_host_gb


def unrated(log: LogFacts) -> bool:
    """Whether a log tells of requests, but of no rate: answers of fewer than ``--decode-log-interval`` tokens print no
    decode line."""
    latest, ready = log.latest, log.ready_local
    return latest is not None and latest.generate is None and ready is not None and latest.at_local > ready


def figures(state: ServerState) -> Sample | None:
    """The newest figures: of the log, or by HTTP where the log tells none; so is a rate that it does not tell."""
    latest, http = state.log.latest, state.http
    if latest is None or http is None:
        return latest or http
    if not unrated(state.log) or http.at_local < latest.at_local - HTTP_INTERVAL:
        return latest
    return replace(latest, at_local=max(latest.at_local, http.at_local), generate=http.generate)


def throughput(state: ServerState, now: float) -> Throughput:
    """Tokens per second at ``now`` (Unix seconds); of a saved or ended log, as last printed."""
    latest = figures(state)
    if latest is None:
        return Throughput()
    if phase(state) not in (Phase.READY, Phase.STOPPING, Phase.STARTING) or state.run is None:
        return Throughput(state.log.last_generate, latest.prefill, stale=state.run is not None)
    old = age(state, latest, now)
    if old is None or old <= max(STALE_AFTER, 3 * interval(state)):
        return Throughput(latest.generate, _prefill(state, latest))
    return Throughput(0.0, 0.0, stale=True)


def is_stale(state: ServerState, now: float) -> bool:
    """Whether the newest figures are too old to be true now."""
    return throughput(state, now).stale


def _prefill(state: ServerState, latest: Sample) -> float | None:
    """The newest prefill rate, 0 once the newest prefill is long over."""
    told = next((s for s in reversed(state.log.series) if s.prefill is not None), None)
    if told is None:
        return latest.prefill
    return told.prefill if latest.at_local - told.at_local <= STALE_AFTER else 0.0


def age(state: ServerState, latest: Sample, now: float) -> float | None:
    """Seconds since the figures were printed."""
    if state.log.latest is None:
        return now + ((state.run.utc_offset or 0) if state.run else 0) - latest.at_local
    if state.run is not None and state.run.utc_offset is not None and latest.at_local > 0:
        return now + state.run.utc_offset - latest.at_local
    return None if state.log_at is None else now - state.log_at


def interval(state: ServerState) -> float:
    """Seconds between the last two samples with a rate."""
    if state.log.latest is None or unrated(state.log):
        return HTTP_INTERVAL
    told = [s.at_local for s in state.log.series[-20:] if s.generate is not None]
    return told[-1] - told[-2] if len(told) > 1 and told[-1] - told[-2] < 60 else 0.0
