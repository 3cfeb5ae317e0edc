"""Whether a server that lives goes on: no outcome is an outcome too. Pure functions of a state and the time.

``stall(state, now)`` says in words why a start, or a server that is ready, looks stuck; ``None`` while it does not.
"""

from __future__ import annotations

import re

from tui.sglang import verdict
from tui.sglang.logfacts import LogFacts
from tui.sglang.model import Phase, Sample, Stage
from tui.sglang.state import ServerState

JAMMED_AFTER = 120.0  # seconds without a batch line while requests are known to wait
FRESH = 30.0  # seconds for which an answer by HTTP tells of now

_ANNOUNCED = re.compile(r"typically \d{1,3}-(\d{1,3}) mins")  # a silence that SGLang announces

# What a start that is silent in a stage usually waits for
_WAITS = {
    Stage.LAUNCHING: "imports take a minute at most: a hub that cannot be reached is asked again and again",
    Stage.DIST_INIT: "ranks wait for each other: a node that is not started, its address, a firewall, or NCCL",
    Stage.LOADING_WEIGHTS: "the disk or network that holds the model is slow, or a rank died",
    Stage.CUDA_GRAPH: "kernels are compiled, on a first start for up to 20 minutes, or a rank hangs",
    Stage.HOST_CACHE: "memory is pinned, or a rank was killed: see `dmesg -T | grep -i oom`",
    Stage.WARMUP: "the first request compiles kernels, or a proxy (http_proxy) keeps it",
}
# Last words that say more than the stage
_TELLS = (
    (
        re.compile(r"Registering 0 cuda graph addresses"),
        "a capture ran out of GPU memory and its error stays hidden: lower --cuda-graph-max-bs",
    ),
    (
        re.compile(r"client socket has failed to connect to \[?(?P<who>[^\]\s]{1,60})"),
        "{who} does not answer: is that node started, is the port open?",
    ),
    (
        re.compile(r"Exception in thread .{0,60}forward_thread"),
        "the thread that computes has died, and this release does not notice",
    ),
)


def stall(state: ServerState, now: float) -> str | None:
    """Why the server looks stuck at ``now`` (Unix seconds), in words; ``None`` while it does not."""
    if state.run is None:
        return None
    phase = verdict.phase(state)
    if phase is Phase.READY:
        return _serving(state, now)
    return _starting(state, now) if phase is Phase.STARTING else None


def waits_for(state: ServerState) -> str:
    """What a start that stands where this one does usually waits for."""
    for pattern, words in _TELLS:
        found = pattern.search(state.log.last_line)
        if found is not None:
            return words.format(**found.groupdict())
    stage = verdict.stage(state)
    return _WAITS.get(stage, "") if stage is not None else ""


def unhealthy(log: LogFacts) -> str:
    """What a failed health check means: two that name the same last sign of life are a hang, else nobody can tell."""
    if log.heartbeat_stands:
        return f"its health check fails and its heartbeat stands still since {log.heartbeat}: it hangs"
    return "its health check fails and no batch was printed since: hung, or busy with one long request"


def _serving(state: ServerState, now: float) -> str | None:
    """A server that is ready, and answers nobody."""
    if state.log.unhealthy:
        return unhealthy(state.log)
    waiting = _waiting(state, now)
    silent = _since_batch(state, now)
    if waiting and silent is not None and silent > max(JAMMED_AFTER, 3 * verdict.interval(state)):
        return f"{waiting}, and no batch was printed for {span(silent)}: it hangs, unless they gave up"
    return None


def _waiting(state: ServerState, now: float) -> str:
    """The requests that are known to be in the server now: as it answers by HTTP, or those that queued at its last
    batch and cannot have left the queue without one."""
    http = state.http
    if http is not None and now - http.at_local <= FRESH:
        return _count(http)
    latest = state.log.latest
    return f"{latest.queued} requests queue" if latest is not None and latest.queued else ""


def _count(sample: Sample) -> str:
    told = ((sample.running, "run"), (sample.queued, "queue"))
    return ", ".join(f"{count} requests {verb}" for count, verb in told if count)


def _since_batch(state: ServerState, now: float) -> float | None:
    """Seconds since the last batch line; ``None`` where the log has none."""
    return None if state.log.latest is None else verdict.age(state, state.log.latest, now)


def _starting(state: ServerState, now: float) -> str | None:
    assert state.run is not None
    if state.listening == "foreign":
        return f"port {state.info.port} belongs to another process"
    silent = now - max(state.log_at or 0.0, state.grew_at or 0.0, state.run.started)
    announced = _ANNOUNCED.search(state.log.last_line)
    limit = max(state.info.stall_after, 60.0 * int(announced[1]) if announced else 0.0)
    if silent > limit:
        return f"no output and no memory growth for {span(silent)}{_where(state)}"
    age = now - state.run.started
    if age > state.info.ready_timeout:
        return f"not ready after {span(age)}{_where(state)}"
    return None


def _where(state: ServerState) -> str:
    """The stage, how long it took the last time, who is missing, and what it usually waits for."""
    stage = verdict.stage(state)
    words = f", in {stage.value.replace('_', ' ')}" if stage else ""
    before = dict(state.previous_stages).get(stage.value) if stage else None
    words += f" (last time {span(before)})" if before is not None else ""
    missing = state.log.missing_ranks
    if missing:
        more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
        words += f"; waiting for {', '.join(missing[:4])}{more}"
    why = waits_for(state)
    return f"{words}; {why}" if why else words


def span(seconds: float) -> str:
    """``5 min 01 s``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
