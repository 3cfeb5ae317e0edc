"""A server in every state that the dashboard can show, by a name for each."""

from __future__ import annotations

from dataclasses import replace

from tests.view.sources import GB, NOW, POOLS, failed, info, ready, run, spans, starting
from tui.sglang.facts import LogFacts
from tui.sglang.model import (
    Exit,
    Failure,
    FailureKind,
    Pool,
    Progress,
    Sample,
    ServerInfo,
    Stage,
    StageSpan,
    Stranger,
)
from tui.sglang.restarts import Restarts
from tui.sglang.state import ServerState

KILLED = Failure(
    FailureKind.OS_OOM_KILLED, "", 0, "The kernel killed it: the host ran out of memory.",
    ("Lower --hicache-size, or end another server of this host.",),
)  # fmt: skip
MANY_RANKS = (
    Pool("device", "KV", 1234.5, "GiB", {"k": 617.25, "v": 617.25}, tokens=12_345_678, ranks=64),
    Pool("host", "KV", 15_000.0, "GB", tokens=98_765_432, ranks=64, layout="page_first_direct"),
)
WINDOWED = (
    Pool("device", "KV", 4.0, "GiB", {"k": 2.0, "v": 2.0}, tokens=100_000, ranks=2),
    Pool("device", "SWA", 3.0, "GiB", {"k": 1.5, "v": 1.5}, tokens=80_000, ranks=2),
    Pool("device", "draft", 1.0, "GiB", tokens=100_000, ranks=2),
    Pool("host", "KV", 60.0, "GB", tokens=1_000_000, ranks=2),
)


def _begun(
    stage: Stage,
    stages: tuple[StageSpan, ...],
    pools: tuple[Pool, ...] = (),
    progress: Progress | None = None,
    missing: tuple[str, ...] = (),
) -> ServerState:
    """A start that stands in ``stage``."""
    state = starting("s", 0)
    log = replace(
        state.log, stage=stage, stages=stages, pools=pools, progress=progress, missing_ranks=missing,
        max_total_num_tokens=None, max_running_requests=None, context_len=None,
    )  # fmt: skip
    return replace(state, log=log, log_at=NOW - 1, run=run(NOW - (stages[0].start_local or NOW)), memory=None)


def _serving(sample: Sample | None = None, **figures: float | None) -> ServerState:
    state = ready("s", 0, 402.0)
    latest = replace(sample or state.log.latest or Sample(NOW), **figures)  # type: ignore[arg-type]  # real fields
    return replace(state, log=replace(state.log, latest=latest, series=(*state.log.series[:-1], latest)))


def _stuck() -> ServerState:
    state = starting("s", 0)
    assert state.memory is not None
    log = replace(state.log, stages=spans(7, 724.7, going=692.0), last_local=NOW - 660)
    held = replace(state.memory, pinned=170 * GB)
    return replace(state, run=run(724.7), log=log, log_at=NOW - 660, memory=held, grew_at=NOW - 500)


def _old() -> ServerState:
    """After a month, with figures as large as they come."""
    state = _serving(generate=1_234_567.0, running=123_456, queued=9_999_999, accept_len=12.345)
    log = replace(state.log, pools=MANY_RANKS, max_running_requests=123_456, max_total_num_tokens=12_345_678)
    return replace(state, log=log, run=run(30 * 86400), ready_at=NOW - 30 * 86400 + 200)


def _windowed() -> ServerState:
    state = _serving(mamba=None, swa=0.4)
    series = tuple(replace(sample, mamba=None) for sample in state.log.series)
    return replace(state, log=replace(state.log, pools=WINDOWED, series=series))


def _found(state: ServerState) -> ServerInfo:
    return replace(state.info, stranger=Stranger("alice", "python -m sglang.launch_server --model-path /m"))


def _restarts(state: ServerState, restarts: Restarts) -> ServerState:
    return replace(state, exit=Exit(1, None, False, NOW - 20), alive=False, restarts=restarts)


def all_states() -> dict[str, ServerState]:
    """What it is called → the state, whose server has that name."""
    live = ready("s", 0, 409.0, accept=2.71)
    policy = Restarts(policy="on-failure", by="ann@laptop 44", here=True, since=NOW - 9000, limit=5)
    states = {
        "absent": ServerState(info("s", 0)),
        "in turn": ServerState(info("s", 0), launch_at=NOW + 7),
        "port taken": ServerState(info("s", 0), listening="foreign", listener="pid 4242 (nginx)"),
        "silent": replace(_begun(Stage.LAUNCHING, spans(1, 7.0, going=7.0)), log=LogFacts(), log_at=None),
        "ranks missing": _begun(Stage.DIST_INIT, spans(2, 400.0, going=397.9), missing=("TP3", "TP5")),
        "weights": _begun(Stage.LOADING_WEIGHTS, spans(3, 19.9, going=16.0), progress=Progress("shards", 7, 14)),
        "graphs": _begun(Stage.CUDA_GRAPH, spans(6, 30.0, going=3.5), POOLS[:2], Progress("batch sizes", 21, 35)),
        "pinning": starting("s", 0),
        "stalled": _stuck(),
        "warm-up": _begun(Stage.WARMUP, spans(8, 200.0, going=6.3), POOLS),
        "ready": live,
        "full": replace(_serving(kv=0.99, mamba=1.0, queued=300), warnings=("only 1.2 of 100 GB left on /root",)),
        "old": _old(),
        "windowed": _windowed(),
        "found": replace(live, info=_found(live)),
        "unreachable": replace(live, unreachable_since=NOW - 75, unreachable_why="no answer within 10 s"),
        "stopping": replace(live, stop_asked=NOW - 4),
        "stopped": replace(live, alive=False, exit=Exit(0, None, False, NOW - 600), stop_asked=NOW - 610),
        "lost": replace(live, alive=None, vanished=True, listening=None),
        "failed": failed("s", 0),
        "killed": replace(
            live, alive=False, exit=Exit(None, "SIGKILL", True, NOW - 100, (1, 2, 3)),
            log=replace(live.log, failure=KILLED, fatal=True),
        ),
        "restarting": _restarts(
            failed("s", 0), replace(policy, count=1, pending=True, next_at=NOW + 12, why="failed: host memory")
        ),
        "given up": _restarts(failed("s", 0), replace(policy, count=5, why="given up after 5 restarts: it fails")),
    }  # fmt: skip
    return {name: replace(state, info=replace(state.info, name=name)) for name, state in states.items()}
