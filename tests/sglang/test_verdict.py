"""Phases, failures and marks of live servers and of saved logs."""

from __future__ import annotations

from dataclasses import replace

import pytest

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
from tui.sglang.facts import read
from tui.sglang.model import Exit, Failure, FailureKind, MemoryReading, Phase, RunInfo, Sample, ServerInfo, Stage
from tui.sglang.reduce import marks, reduce
from tui.sglang.state import ServerState

T = 1_785_418_500.0  # 2026-07-30 13:35:00 UTC
INFO = ServerInfo("gpu0", "box", port=30000, stall_after=300.0, ready_timeout=900.0)
LAUNCHED = Launched(T, RunInfo("r", 7, T, ("sglang",), "/log", utc_offset=0))
ALIVE = Watched(T + 1, alive=True, listening="none")
OWN = Watched(T + 2, listening="own")


def log(text: str, at: float = T + 3) -> LogRead:
    return LogRead(at, read([f"[2026-07-30 13:35:03] {text}\n".encode()]))


READY = log("The server is fired up and ready to roll!")
LOADING = log("Load weight begin. avail mem=78.41 GB")
FATAL = LogRead(
    T + 3,
    read(
        [
            b"[2026-07-30 13:35:03 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
            b'  File "/x/scheduler.py", line 1, in run_scheduler_process\n'
            b"ValueError: Not enough host memory available. Requesting 40.00 GB but only have 34.13 GB free.\n\n"
            b"[2026-07-30 13:35:03] Received sigquit from a child process. It usually means the child failed.\n"
        ]
    ),
)
TERM = log("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")


def after(*events: Event, info: ServerInfo = INFO) -> ServerState:
    state = ServerState(info)
    for event in events:
        state = reduce(state, event)
    return state


@pytest.mark.parametrize(
    ("events", "phase"),
    [
        ((), Phase.ABSENT),
        ((Refused(T, Failure(FailureKind.PORT_IN_USE, "", 0, "taken")),), Phase.FAILED),
        ((LAUNCHED,), Phase.STARTING),
        ((LAUNCHED, ALIVE, LOADING), Phase.STARTING),
        ((LAUNCHED, ALIVE, READY), Phase.STARTING),
        ((LAUNCHED, ALIVE, READY, Watched(T, listening="foreign")), Phase.STARTING),
        ((LAUNCHED, OWN, READY), Phase.STARTING),
        ((LAUNCHED, ALIVE, OWN, READY), Phase.READY),
        ((LAUNCHED, ALIVE, OWN, READY, Watched(T + 9, listening=None)), Phase.READY),
        ((LAUNCHED, ALIVE, OWN, HttpRead(T, ready=True)), Phase.READY),
        ((LAUNCHED, ALIVE, OWN, LOADING, HttpRead(T, ready=True)), Phase.STARTING),
        ((LAUNCHED, ALIVE, OWN, READY, StopAsked(T)), Phase.STOPPING),
        ((LAUNCHED, ALIVE, OWN, TERM), Phase.STOPPING),
        ((LAUNCHED, ALIVE, FATAL), Phase.FAILED),
        ((LAUNCHED, ALIVE, FATAL, StopAsked(T), Exited(T, Exit(None, "SIGKILL"))), Phase.STOPPED),
        ((LAUNCHED, ALIVE, TERM, Exited(T, Exit(None, "SIGKILL"))), Phase.STOPPED),
        ((LAUNCHED, ALIVE, READY, Exited(T, Exit(0, None))), Phase.STOPPED),
        ((LAUNCHED, ALIVE, READY, Exited(T, Exit(1, None))), Phase.FAILED),
        ((LAUNCHED, ALIVE, READY, Exited(T, Exit(None, "SIGSEGV"))), Phase.FAILED),
        ((LAUNCHED, ALIVE, READY, Vanished(T)), Phase.LOST),
        ((LAUNCHED, ALIVE, FATAL, Vanished(T)), Phase.FAILED),
        ((LAUNCHED, StopAsked(T), Vanished(T)), Phase.STOPPED),
        ((LAUNCHED, ALIVE, OWN, READY, HostLost(T, "gone")), Phase.READY),
        ((LAUNCHED, FATAL, Launched(T + 9, RunInfo("s", 8, T + 9, (), "/log"))), Phase.STARTING),
        ((READY,), Phase.READY),
        ((LOADING,), Phase.STARTING),
        ((FATAL,), Phase.FAILED),
        ((TERM,), Phase.STOPPED),
    ],
)
def test_phases(events: tuple[Event, ...], phase: Phase) -> None:
    assert verdict.phase(after(*events)) is phase


def test_ready_by_http_and_by_log() -> None:
    by_http = replace(INFO, ready_by="http")
    assert verdict.phase(after(LAUNCHED, ALIVE, OWN, READY, info=by_http)) is Phase.STARTING
    assert verdict.phase(after(LAUNCHED, ALIVE, OWN, HttpRead(T, ready=True), info=by_http)) is Phase.READY
    by_log = replace(INFO, ready_by="log")
    assert verdict.phase(after(LAUNCHED, ALIVE, OWN, HttpRead(T, ready=True), info=by_log)) is Phase.STARTING


def test_a_worker_node_is_ready_when_it_listens() -> None:
    worker = log("server_args=ServerArgs(model_path='m', tp_size=16, nnodes=2, node_rank=1)")
    assert verdict.phase(after(LAUNCHED, ALIVE, worker)) is Phase.STARTING
    assert verdict.phase(after(LAUNCHED, ALIVE, worker, OWN)) is Phase.READY


def test_failures_are_those_of_the_log_else_of_the_end() -> None:
    found = verdict.failure(after(LAUNCHED, ALIVE, FATAL))
    assert found is not None and found.kind is FailureKind.OOM_HOST_HICACHE and found.line_number == 3
    killed = verdict.failure(after(LAUNCHED, ALIVE, LOADING, Exited(T, Exit(None, "SIGKILL", True))))
    assert killed is not None and killed.kind is FailureKind.OS_OOM_KILLED
    segfault = verdict.failure(after(LAUNCHED, ALIVE, LOADING, Exited(T, Exit(None, "SIGSEGV", False))))
    assert segfault is not None and segfault.kind is FailureKind.CHILD_DIED
    assert verdict.failure(after(LAUNCHED, ALIVE, OWN, READY)) is None
    assert verdict.failure(after(LAUNCHED, ALIVE, FATAL, StopAsked(T), Exited(T, Exit(0, None)))) is None


def test_stages_begin_with_the_launch() -> None:
    spans = verdict.stages(after(LAUNCHED, ALIVE, LOADING))
    assert [(span.stage, span.start_local, span.seconds) for span in spans] == [
        (Stage.LAUNCHING, T, 3.0),
        (Stage.LOADING_WEIGHTS, T + 3, None),
    ]
    ended = verdict.stages(after(LAUNCHED, ALIVE, LOADING, Exited(T, Exit(1, None, at=T + 63))))
    assert ended[-1].seconds == 60.0, "its last line with a time is its first"
    assert verdict.stage(after(LAUNCHED, ALIVE)) is Stage.LAUNCHING
    assert verdict.stage(after(LAUNCHED, ALIVE, READY)) is Stage.WARMUP
    assert verdict.stage(after()) is None


def test_a_silent_start_is_stalled_unless_memory_grows() -> None:
    start = (LAUNCHED, ALIVE, LOADING)
    assert not marks(after(*start), T + 300).stalled
    stalled = marks(after(*start), T + 304)
    assert stalled.stalled and "5 min 01 s" in stalled.stall_reason and "loading weights" in stalled.stall_reason
    grows = [Watched(T + 60 * n, memory=MemoryReading(n << 30, 1 << 40, 1 << 40)) for n in range(1, 6)]
    assert not marks(after(*start, *grows), T + 500).stalled
    assert marks(after(*start, *grows, Watched(T + 500, memory=MemoryReading(5 << 30, 0, 0))), T + 601).stalled
    assert (
        "not ready after 15 min"
        in marks(after(*start, *grows, log("Load weight " + "x" * 99, T + 890)), T + 901).stall_reason
    )
    lost = marks(after(*start, HostLost(T, "no route")), T + 999)
    assert (lost.stalled, lost.unreachable) == (False, True)
    assert not marks(after(*start, HostLost(T, "no route"), HostBack(T)), T + 1).unreachable


def test_announced_silence_and_probes() -> None:
    compiling = log("Entering DeepGEMM JIT Pre-Compile session. It may take a long time (typically 10-20 mins) if you")
    patient = replace(INFO, ready_timeout=7200.0)
    assert not marks(after(LAUNCHED, ALIVE, compiling, info=patient), T + 1100).stalled
    assert marks(after(LAUNCHED, ALIVE, compiling, info=patient), T + 1300).stalled
    lines = (
        b"[2026-07-30 13:35:03] Load weight begin. avail mem=78.41 GB\n"
        b'[2026-07-30 13:39:03] INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 503 Service Unavailable\n'
    )
    assert marks(after(LAUNCHED, ALIVE, LOADING, LogRead(T + 299, read([lines]))), T + 304).stalled


def test_a_throughput_ages() -> None:
    line = "Decode batch, #running-req: 1, #token: 9, token usage: 0.50, gen throughput (token/s): 80.00, #queue-req: 0"
    state = after(LAUNCHED, ALIVE, OWN, log(line))
    assert verdict.throughput(state, T + 5) == verdict.Throughput(80.0, None)
    assert verdict.throughput(state, T + 14) == verdict.Throughput(0.0, 0.0, stale=True)
    assert marks(state, T + 14).stale
    saved = after(log(line))
    assert verdict.throughput(saved, T + 9999) == verdict.Throughput(80.0, None)


def test_events_accumulate_and_a_launch_forgets() -> None:
    state = after(
        LAUNCHED, ALIVE, OWN, READY, Noted(T, "a"), Noted(T, "b"), Noted(T, "a"), StopAsked(T + 5), StopAsked(T + 9)
    )
    assert (state.notes, state.stop_asked, state.ready_at) == (("b", "a"), T + 5, T + 3)
    again = reduce(state, Launched(T + 50, RunInfo("s", 8, T + 50, (), "/log"), (("loading_weights", 3.0),)))
    assert (again.notes, again.stop_asked, again.ready_at, again.log.lines) == ((), None, None, 0)
    assert again.previous_stages == (("loading_weights", 3.0),)
    assert reduce(state, LogRead(T + 60, LOADING.facts)).log == state.log or LOADING.facts.size > state.log.size


def test_a_run_found_ready_has_been_so_since_its_log_said() -> None:
    adopted = Launched(T + 500, replace(LAUNCHED.run, adopted=True))
    assert after(adopted, ALIVE, OWN, replace(READY, at=T + 500)).ready_at == T + 3


@pytest.mark.parametrize(("sglang", "planned"), [("0.5.12", 600.0), ("0.5.20", 300.0), (None, 600.0)])
def test_planned_host_memory_follows_the_version_that_is_known(sglang: str | None, planned: float) -> None:
    flags = "model_path='/m/Qwen3.6-27B', tp_size=2, enable_hierarchical_cache=True, hicache_size=150"
    args = f"server_args=ServerArgs({flags})"
    launched = replace(LAUNCHED, run=replace(LAUNCHED.run, sglang=sglang))
    info = replace(INFO, planned_host_gb=111.0)
    assert verdict.planned_host_gb(after(launched, ALIVE, info=info)) == 111.0
    assert verdict.planned_host_gb(after(launched, ALIVE, log(args), info=info)) == planned


def test_advice_follows_the_version_that_is_known() -> None:
    text = (
        b"[2026-07-30 13:35:01] server_args=ServerArgs(model_path='/m/Qwen3.6-27B', hicache_size=150)\n"
        b"[2026-07-30 13:35:03] Scheduler hit an exception: Traceback (most recent call last):\n"
        b'  File "/x/scheduler.py", line 1, in run_scheduler_process\n'
        b"ValueError: Not enough host memory available. Requesting 150.00 GB but only have 120.00 GB free.\n"
    )
    for sglang, size in (("0.5.12", 59), ("0.5.20", 119), (None, 59)):
        state = after(replace(LAUNCHED, run=replace(LAUNCHED.run, sglang=sglang)), ALIVE, LogRead(T + 3, read([text])))
        found = verdict.failure(state)
        assert found is not None and f"--hicache-size {size} or less fits" in found.advice[0]
        assert ("its log does not tell" in found.advice[0]) is (sglang is None)


def test_the_kernel_count_of_oom_kills_decides_what_minus_nine_means() -> None:
    died = log("Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common")
    counted = verdict.failure(after(LAUNCHED, ALIVE, died, Exited(T, Exit(1, None, True))))
    denied = verdict.failure(after(LAUNCHED, ALIVE, died, Exited(T, Exit(1, None, False))))
    assert counted is not None and counted.kind is FailureKind.OS_OOM_KILLED and counted.line_number == 1
    assert denied is not None and denied.kind is FailureKind.CHILD_DIED and "no OOM kill" in denied.explanation


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Init torch distributed begin.", "in dist init; ranks wait for each other"),
        ("Load weight begin. avail mem=78.41 GB", "in loading weights; the disk or network"),
        (
            "Capture cuda graph begin. This can take up to several minutes. avail mem=9.74 GB",
            "in cuda graph; kernels are",
        ),
        (
            "Allocating 150.00 GB host memory for hierarchical KV cache.",
            "in host cache; memory is pinned, or a rank was",
        ),
        ("Registering 0 cuda graph addresses", "its error stays hidden"),
        ("[c10d] The client socket has failed to connect to [gpu7]:5000 (errno: 111).", "gpu7 does not answer"),
    ],
)
def test_a_silent_start_says_what_it_waits_for(line: str, words: str) -> None:
    state = after(LAUNCHED, ALIVE, log(line))
    assert not marks(state, T + 299).stalled
    assert words in marks(state, T + 400).stall_reason


def test_a_silent_stage_is_held_against_the_last_time() -> None:
    known = replace(LAUNCHED, previous_stages=(("loading_weights", 41.0),))
    assert "in loading weights (last time 41 s)" in marks(after(known, ALIVE, LOADING), T + 400).stall_reason


_FULL = "Decode batch, #running-req: 8, #token: 9, token usage: 0.99, gen throughput (token/s): 80.00, #queue-req: {}"


def test_a_server_that_prints_no_batch_while_requests_wait() -> None:
    ready = (LAUNCHED, ALIVE, OWN, READY)
    waits, idle = (after(*ready, log(_FULL.format(queued))) for queued in (12, 0))
    assert not marks(waits, T + 100).stalled and not marks(idle, T + 999).stalled
    assert "12 requests queue, and no batch was printed for 3 min 17 s" in marks(waits, T + 200).stall_reason
    # what the server itself answers counts more: it is idle, or works on requests that give no tokens
    assert not marks(reduce(waits, HttpRead(T + 195, sample=Sample(T + 195, running=0, queued=0))), T + 200).stalled
    busy = reduce(idle, HttpRead(T + 195, sample=Sample(T + 195, running=3, queued=0)))
    assert "3 requests run, and no batch" in marks(busy, T + 200).stall_reason
    assert not marks(busy, T + 300).stalled  # the answer is too old to tell of now


def test_a_heartbeat_that_stands_still() -> None:
    check = (
        "[2026-07-30 13:4{0}:03] Health check failed. Server couldn't get a response from detokenizer for last 20 "
        "seconds. tic start time: 13:39:43. last_heartbeat time: 13:39:{1}\n"
    )
    start = "[2026-07-30 13:35:03] The server is fired up and ready to roll!\n"

    def reason(*beats: int) -> str:
        text = start + "".join(check.format(n, beat) for n, beat in enumerate(beats))
        return marks(after(LAUNCHED, ALIVE, OWN, LogRead(T + 300, read([text.encode()]))), T + 301).stall_reason

    assert reason() == ""
    assert "hung, or busy" in reason(41) == reason(41, 42)
    assert "stands still since 13:39:42: it hangs" in reason(41, 42, 42)
