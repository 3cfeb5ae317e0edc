"""What a drawing needs to know of a server at one moment, asked once: ``glance(state, now) -> Glance``. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tui.sglang import failures, pressure, reduce, verdict
from tui.sglang.model import Failure, Phase, Pool, Sample, Stage, StageSpan
from tui.sglang.state import ServerState

BYTES_PER_GB = 1e9
BYTES_PER_GIB = float(1 << 30)

STAGE_NAMES: dict[Stage, str] = {
    Stage.LAUNCHING: "launching",
    Stage.DIST_INIT: "dist init",
    Stage.LOADING_WEIGHTS: "weights",
    Stage.KV_CACHE: "KV cache",
    Stage.MAMBA_CACHE: "Mamba cache",
    Stage.CUDA_GRAPH: "CUDA graph",
    Stage.HOST_CACHE: "host cache",
    Stage.WARMUP: "warm-up",
    Stage.READY: "ready",
}

GLYPHS: dict[Phase, str] = {
    Phase.ABSENT: "○",
    Phase.STARTING: "◐",
    Phase.READY: "●",
    Phase.STOPPING: "◑",
    Phase.STOPPED: "◌",
    Phase.FAILED: "✖",
    Phase.LOST: "?",
}
"""One shape per phase, so that none is told by its colour alone."""


@dataclass(frozen=True, slots=True)
class Glance:
    """A server as it is drawn. Durations are seconds, rates tokens per second; unknown is ``None``."""

    state: ServerState
    now: float
    phase: Phase
    stage: Stage | None
    stages: tuple[StageSpan, ...]
    failure: Failure | None
    reason: str  # the failure in a few words
    stalled: bool
    stall_reason: str
    unreachable: bool
    generate: float | None
    prefill: float | None
    stale: bool
    sample: Sample | None  # the newest requests, usages and lengths
    warnings: tuple[str, ...] = ()  # what its host and its figures warn of now

    @property
    def name(self) -> str:
        return self.state.info.name

    @property
    def runs(self) -> bool:
        """Whether there is a server to end: one that starts, serves or is ending."""
        return self.phase in (Phase.STARTING, Phase.READY, Phase.STOPPING)

    @property
    def no_log(self) -> bool:
        """Whether this is a file that was to be a saved log and is none, as its note says."""
        state = self.state
        return state.run is None and state.info.host is None and not state.log.size and bool(state.notes)

    @property
    def local_now(self) -> float | None:
        """The host's wall clock now, where its offset is known; else the log's newest time."""
        run = self.state.run
        if run is not None and run.utc_offset is not None:
            return self.now + run.utc_offset
        return self.state.log.last_local

    @property
    def uptime(self) -> float | None:
        """Since it was ready; since its launch where that is not known."""
        run = self.state.run
        since = self.state.ready_at or (run.started if run else None)
        return None if since is None else max(0.0, self.now - since)

    @property
    def host_pools(self) -> tuple[Pool, ...]:
        return tuple(p for p in self.state.log.pools if p.place == "host")

    @property
    def host_gb(self) -> float:
        """Decimal GB of host memory that the pools of the log ask for, all ranks."""
        return sum(pool_gb(p) for p in self.host_pools)


def pool_gb(pool: Pool) -> float:
    """A pool's size over all its ranks in decimal GB."""
    return pool.gb * pool.ranks * (BYTES_PER_GIB / BYTES_PER_GB if pool.unit == "GiB" else 1.0)


def glance(state: ServerState, now: float) -> Glance:
    """Ask everything once."""
    failure = verdict.failure(state)
    marks = reduce.marks(state, now)
    rates = verdict.throughput(state, now)
    return Glance(
        state=state,
        now=now,
        phase=verdict.phase(state),
        stage=verdict.stage(state),
        stages=verdict.stages(state),
        failure=failure,
        reason=failures.short(failure) if failure else "",
        stalled=marks.stalled,
        stall_reason=marks.stall_reason or "",
        unreachable=marks.unreachable,
        generate=rates.generate,
        prefill=rates.prefill,
        stale=rates.stale,
        sample=verdict.figures(state),
        warnings=(*state.warnings, *(() if rates.stale else pressure.pressure(state.log.series))),
    )


def not_to_be_ended(glance: Glance, verb: str) -> str:
    """Why a found server cannot be ended, or launched again, from here; empty where it can."""
    stranger = glance.state.info.stranger
    if stranger is None:
        return ""
    if stranger.container:
        return f"{glance.name} runs in a container ({stranger.container}), which this program cannot end"
    if verb != "Kill":
        return f"{glance.name} was found running: it can be followed and ended here, not launched"
    return ""


def stage_age(glance: Glance) -> float | None:
    """Seconds that the present stage has lasted."""
    if glance.state.run is None:
        return None  # a saved log: there is no now
    last = glance.stages[-1] if glance.stages else None
    if last and last.seconds is None and last.start_local is not None and glance.local_now is not None:
        return max(0.0, glance.local_now - last.start_local)
    run = glance.state.run
    if glance.stage is Stage.LAUNCHING and run:
        return max(0.0, glance.now - run.started)
    return None


def log_age(glance: Glance) -> float | None:
    """Seconds since the server's last sign of life in its log; ``None`` where none was seen."""
    at = glance.state.log_at
    return None if at is None or glance.state.run is None else max(0.0, glance.now - at)


@dataclass(frozen=True, slots=True)
class Pinned:
    """How far a host pool has come: ``gb`` of ``of`` decimal GB, ``None`` while nobody can tell."""

    pool: Pool
    of: float
    gb: float | None


def pinning(glance: Glance) -> tuple[Pinned, ...]:
    """The host pools of a start-up and how much of each is pinned.

    A pool's line is printed before its memory is taken and the pools come one after the other, so all but the last
    are done; the last one has what the run holds beyond them.
    """
    pools = glance.host_pools
    done = [Pinned(p, pool_gb(p), pool_gb(p)) for p in pools[:-1]]
    if not pools:
        return ()
    of = pool_gb(pools[-1])
    memory = glance.state.memory
    if glance.stage in (Stage.WARMUP, Stage.READY):
        return (*done, Pinned(pools[-1], of, of))
    held = None if memory is None else memory.pinned / BYTES_PER_GB - sum(p.of for p in done)
    return (*done, Pinned(pools[-1], of, None if held is None else min(of, max(0.0, held))))
