"""Whole logs of real runs of seven releases on CPUs, with what a person reads in each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tui.sglang import verdict
from tui.sglang.events import LogRead
from tui.sglang.facts import read
from tui.sglang.model import FailureKind, Phase, ServerInfo, Stage
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

REAL = Path(__file__).parents[1] / "data" / "real"
KV = ("device", "KV", 0.0, "GiB", 4096, None)


@dataclass(frozen=True)
class Told:
    """What stands in a log. ``pools``: place, kind, size, unit, tokens, slots; ``why``: kind and line of a failure."""

    lines: int
    phase: Phase = Phase.STOPPED
    stage: Stage = Stage.READY
    tokens: int | None = 4096
    running: int | None = 2048
    generate: float | None = None  # of the last decode line
    pools: tuple[tuple[str, str, float, str, int | None, int | None], ...] = (KV,)
    why: tuple[FailureKind, int] | None = None


def failed(lines: int, stage: Stage, kind: FailureKind, line: int, *, loaded: bool = False) -> Told:
    told = Told(lines, Phase.FAILED, stage, why=(kind, line))
    return told if loaded else Told(lines, Phase.FAILED, stage, None, None, None, (), (kind, line))


K, S = FailureKind, Stage
LOGS = {
    "0.4.9.post6_llama": Told(176, generate=820.87),
    "0.5.1_llama": Told(187, generate=857.76),
    "0.5.3_llama": Told(178, generate=778.62),
    "0.5.9_llama": Told(241, generate=647.24),
    "0.5.12_llama": Told(231, generate=807.40),
    "0.5.20_llama": Told(255, generate=535.82),
    "0.5.23_end_int": Told(195, generate=1039.59),
    "0.5.23_end_termpg": Told(167, generate=949.25),
    # Killed from outside by SIGKILL. That its processes are gone Python's tracker of semaphores says, unless it was
    # killed with them: then the log just ends.
    "0.5.23_end_kill_parent": Told(165, Phase.LOST, generate=1119.87),
    "0.5.23_end_killpg": Told(169, Phase.READY, generate=223.84),
    "0.5.23_end_kill_detokenizer": Told(151, Phase.FAILED, generate=1497.55, why=(K.CHILD_DIED, 140)),
    "0.5.23_end_scheduler_killed_during_start": failed(48, S.LAUNCHING, K.OS_OOM_KILLED, 48),
    "0.5.23_fail_bad_flag": failed(478, S.LAUNCHING, K.BAD_ARGUMENT, 478),
    "0.5.23_fail_bad_value": failed(478, S.LAUNCHING, K.BAD_ARGUMENT, 478),
    "0.5.23_fail_corrupt_weights": failed(96, S.LOADING_WEIGHTS, K.OTHER, 93),
    "0.5.23_fail_hicache_no_cuda": Told(
        149, Phase.FAILED, S.HOST_CACHE, pools=(KV, ("host", "KV", 1.0, "GB", 3906251, None)), why=(K.OTHER, 146)
    ),
    "0.5.23_fail_missing_model": failed(87, S.LAUNCHING, K.MODEL_NOT_FOUND, 87),
    "0.5.23_fail_no_device_flag": failed(37, S.LAUNCHING, K.OTHER, 37),
    "0.5.23_fail_port_busy": failed(51, S.WARMUP, K.PORT_IN_USE, 50, loaded=True),
    "0.5.23_fail_port_busy_http": failed(58, S.WARMUP, K.PORT_IN_USE, 50, loaded=True),
    "0.5.23_fail_scheduler_exception_at_warmup": Told(
        167,
        Phase.FAILED,
        S.WARMUP,
        pools=(KV, ("device", "Mamba", 7.09, "GiB", None, 521557)),
        why=(K.SCHEDULER_EXCEPTION, 162),
    ),
    "0.5.23_fail_unknown_arch": failed(76, S.DIST_INIT, K.OTHER, 73),
    "0.5.23_hybrid_hicache_metrics": Told(
        251,
        tokens=2048,
        running=8,
        generate=46.16,
        pools=(
            ("device", "KV", 0.0, "GiB", 2048, None),
            ("device", "Mamba", 0.0, "GiB", None, 24),
            ("host", "KV", 0.42, "GB", 3267568, None),
            ("host", "Mamba", 0.58, "GB", None, 39868),
        ),
    ),
    "0.5.23_hybrid_qwen3_5": Told(257, generate=47.95, pools=(KV, ("device", "Mamba", 6.98, "GiB", None, 513807))),
    "0.5.23_llama_basic": Told(321, generate=347.81),
    "0.5.23_llama_hicache_hits": Told(
        290,
        tokens=2048,
        running=1024,
        generate=43.21,
        pools=(("device", "KV", 0.0, "GiB", 2048, None), ("host", "KV", 1.0, "GB", 3906251, None)),
    ),
    "0.5.23_llama_hicache_metrics": Told(324, generate=274.78, pools=(KV, ("host", "KV", 1.0, "GB", 3906251, None))),
    "0.5.23_llama_quiet": Told(167, running=8, generate=1159.78),
    "0.5.23_minvenv_llama": Told(193, generate=611.12),
    "0.5.23_serve_cmd_idle_term": Told(231, generate=287.54),
    "0.5.23_tp2": Told(405, generate=253.44),
}


def test_every_log_is_here() -> None:
    assert sorted(LOGS) == sorted(path.name.removesuffix(".log") for path in REAL.glob("*.log"))


@pytest.mark.parametrize("name", LOGS)
def test_a_whole_log(name: str) -> None:
    expected, data = LOGS[name], (REAL / f"{name}.log").read_bytes()
    state = reduce(ServerState(ServerInfo(name, log=name)), LogRead(1.0, read([data])))
    log, failure = state.log, verdict.failure(state)
    told = Told(
        log.lines,
        verdict.phase(state),
        verdict.stage(state) or Stage.LAUNCHING,
        log.max_total_num_tokens,
        log.max_running_requests,
        verdict.throughput(state, 1.0).generate,
        tuple(sorted((p.place, p.kind, round(p.gb, 2), p.unit, p.tokens, p.slots) for p in log.pools)),
        (failure.kind, failure.line_number) if failure else None,
    )
    assert told == expected
    assert log.context_len == (4096 if expected.tokens else None)
    if failure is not None:
        assert failure.line == data.decode().split("\n")[failure.line_number - 1].rpartition("\r")[2]
        assert failure.explanation and failure.advice


def test_both_ranks_of_two_are_heard() -> None:
    log = read([(REAL / "0.5.23_tp2.log").read_bytes()])
    assert [pool.ranks for pool in log.pools] == [2]
    assert log.missing_ranks == ()


def test_who_goes_on_after_the_tracker_of_semaphores_is_not_gone() -> None:
    data = (REAL / "0.5.23_end_kill_parent.log").read_bytes()
    more = b'[2026-11-30 03:08:00] INFO:     127.0.0.1:5 - "POST /v1/completions HTTP/1.1" 200 OK\n'
    for log, phase in ((data, Phase.LOST), (data + more, Phase.READY)):
        state = reduce(ServerState(ServerInfo("x", log="x")), LogRead(1.0, read([log])))
        assert verdict.phase(state) is phase
