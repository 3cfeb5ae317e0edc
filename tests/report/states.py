"""A fleet by hand: one server per situation that a report has to tell."""

from __future__ import annotations

from dataclasses import replace

from tui.sglang.facts import LogFacts
from tui.sglang.model import (
    Exit,
    Failure,
    FailureKind,
    MemoryReading,
    Pool,
    RunInfo,
    Sample,
    ServerInfo,
    Stage,
    StageSpan,
)
from tui.sglang.state import ServerState

NOW = 1_780_000_000.0  # 2026-05-28T20:26:40Z
OFFSET = 7200
LOCAL = NOW + OFFSET
POOLS = (
    Pool("device", "KV", 9.02, "GiB", {"k": 4.51, "v": 4.51}, tokens=147_456),
    Pool("host", "KV", 150.0, "GB"),
    Pool("host", "Mamba", 150.1, "GB", slots=48, layout="layer_first"),
)
READY = LogFacts(
    lines=812,
    size=100_000,
    version="0.5.12",
    model="/models/Q",
    stage=Stage.READY,
    stages=(
        StageSpan(Stage.LOADING_WEIGHTS, LOCAL - 3000, 21.4),
        StageSpan(Stage.HOST_CACHE, LOCAL - 2978, 61.0),
        StageSpan(Stage.READY, LOCAL - 2900, None),
    ),
    pools=POOLS,
    max_total_num_tokens=147_456,
    max_running_requests=9,
    context_len=262_144,
    ready=True,
    latest=Sample(
        LOCAL - 1, generate=409.37, prefill=1200.0, running=48, queued=12, kv=0.81, mamba=0.62, accept_len=2.71
    ),
    speculative="EAGLE",
)
FAILURE = Failure(
    FailureKind.OOM_HOST_HICACHE,
    "ValueError: Not enough host memory available. Requesting 150.10 GB but only have 48.20 GB free. "
    "Please reduce the size of the hierarchical cache.",
    640,
    "150.10 GB of host memory asked for the Mamba pool after 150.00 GB for KV; 48.2 GB were left",
    ("--hicache-size 98 or less fits", "from SGLang 0.5.17 on the size is shared between the two pools"),
)


def server(number: int, log: LogFacts | None = None, *, alive: bool = True) -> ServerState:
    """``gpu<number>`` with a run that began 50 minutes before ``NOW``."""
    port = 30000 + number
    info = ServerInfo(
        f"gpu{number}", host="box", port=port, url=f"http://127.0.0.1:{port}", model="/models/Q", gpus=(number,)
    )
    run = RunInfo(f"run{number}", 4000 + number, NOW - 3003, ("python",), "/w/server.log", "boot", OFFSET)
    return ServerState(
        info, run=run, log=log or LogFacts(), alive=alive, listening="own" if alive else None, log_at=NOW
    )


def fleet() -> list[ServerState]:
    """Ready, starting, failed, absent, stopped, ready but unreachable."""
    starting = replace(
        server(2),
        listening="none",
        log=LogFacts(
            lines=90,
            size=9000,
            stage=Stage.HOST_CACHE,
            stages=(StageSpan(Stage.HOST_CACHE, LOCAL - 92, None),),
            pools=POOLS[1:],
            missing_ranks=("TP1",),
            last_line="Allocating 150.10 GB host memory for hierarchical Mamba cache (layout=layer_first).",
        ),
        memory=MemoryReading(92_000_000_000, 100_000_000_000, 503_000_000_000),
    )
    failed = replace(
        server(3, LogFacts(lines=700, size=7000, failure=FAILURE, fatal=True, stage=Stage.HOST_CACHE), alive=False),
        exit=Exit(None, "SIGKILL", False, NOW - 10),
    )
    absent = replace(server(4), run=None, alive=None, listening=None)
    stopped = replace(server(5, READY, alive=False), stop_asked=NOW - 60, exit=Exit(0, None, False, NOW - 50))
    away = replace(
        server(6, READY), ready_at=NOW - 2900, unreachable_since=NOW - 130, unreachable_why="connection lost",
        notes=("already runs with other flags: --hicache-size 98",),
    )  # fmt: skip
    return [replace(server(1, READY), ready_at=NOW - 2900), starting, failed, absent, stopped, away]
