"""What stands before, behind and around SGLang's lines changes nothing of what they say."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tui.sglang import verdict
from tui.sglang.events import LogRead
from tui.sglang.facts import read
from tui.sglang.model import ServerInfo
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
REAL = Path(__file__).parent.parent / "data" / "real"
CASES = (
    "004-mamba-kv-ready-tp2-qwen35-cpu-experts",
    "010-running-qwen36-no-rank-metrics-noise",
    "017-ready-nemotron3-mamba-usage",
    "024-stopped-sigterm-drain",
    "042-failed-nccl-system-error-tp8",
    "049-failed-not-enough-memory-spec-decoding",
    "055-failed-unbalanced-memory-other-process",
    "059-failed-kimi-k3-mamba-prefill-oom",
    "060-failed-req-slots-exhausted",
    "062-failed-capture-oom-deepep-gpu7",
    "070-failed-hicache-host-40-of-44",
    "071-unknown-hicache-igpudecode-prefix-tp4",
    "076-failed-unrecognized-enable-reasoning",
    "091-failed-watchdog-pyspy-missing",
)


def before(prefix: bytes) -> Callable[[bytes], bytes]:
    return lambda line: prefix + line


def docker_json(line: bytes) -> bytes:
    text = line.decode("utf-8", "replace") + "\n"
    return json.dumps({"log": text, "stream": "stderr", "time": "2026-02-01T00:05:03.977090836Z"}).encode()


def shipped_json(key: str) -> Callable[[bytes], bytes]:
    def wrap(line: bytes) -> bytes:
        record = {"@timestamp": "2026-02-01T00:05:03.977Z", "level": "info", key: line.decode("utf-8", "replace")}
        return json.dumps(record).encode()

    return wrap


WRAPPERS: dict[str, Callable[[bytes], bytes]] = {
    "Ray": before(b"(pid=2882, ip=10.0.0.25) "),
    "Ray worker": before(b"(RayWorker pid=2882) "),
    "Ray worker, address": before(b"\x1b[36m(SGLangEngine pid=2882, ip=10.0.0.25)\x1b[0m "),
    "CRI": before(b"2026-02-01T00:05:03.977090836Z stdout F "),
    "CRI with a zone": before(b"2026-02-01T00:05:03.977090836+01:00 stderr F "),
    "docker logs --timestamps": before(b"2026-02-01T00:05:03.977090836Z "),
    "docker json-file": docker_json,
    "docker compose": before(b"qwen35-4b-sglang  | "),
    "docker compose, coloured": before(b"\x1b[33msglang-1  | \x1b[0m"),
    "kubectl logs --prefix": before(b"[pod/sglang-0/server] "),
    "kubectl logs --prefix --timestamps": before(b"[pod/sglang-0/server] 2026-02-01T00:05:03.977090836Z "),
    "journald": before(b"Feb 01 00:05:03 gpu-node-1 sglang[2882]: "),
    "journald, iso": before(b"2026-02-01T00:05:03+0000 gpu-node-1 sglang[2882]: "),
    "syslog": before(b"Feb  1 00:05:03 gpu-node-1 python3[2882]: "),
    "JSON, message": shipped_json("message"),
    "JSON, msg": shipped_json("msg"),
    "JSON, journald": shipped_json("MESSAGE"),
    "logcli": before(b'2026-02-01T00:05:03Z {app="sglang", pod="sglang-0"} '),
    "JSON, fluent bit": shipped_json("log"),
    "srun --label": before(b"0: "),
    "torchrun": before(b"[default0]:"),
    "mpirun --tag-output": before(b"[1,0]<stderr>:"),
    "ts": before(b"[2026-02-01T00:05:03.123Z] "),
    "Windows ends": lambda line: line + b"\r",
    "an escape at the end": lambda line: line + b"\x1b[0m",
    "invalid UTF-8 at the end": lambda line: line + b" \xff\xfe" if b"batch" in line else line,
}


def told(data: bytes) -> dict[str, Any]:
    state = reduce(ServerState(ServerInfo("x")), LogRead(0.0, read([data])))
    failure = verdict.failure(state)
    log = state.log
    return {
        "phase": verdict.phase(state),
        "stage": verdict.stage(state),
        "failure": failure and failure.kind,
        "line": failure and failure.line_number,
        "pools": log.pools,
        "missing": log.missing_ranks,
        "numbers": (log.max_total_num_tokens, log.max_running_requests, log.context_len, log.retracted),
        "figures": log.latest,
        "series": tuple(log.series),
        "printed": log.last_generate,
        "args": dict(log.args),
        "ready": log.ready,
        "stopping": log.shutting_down,
        "lines": log.lines,
    }


@cache
def lines_of(name: str) -> tuple[bytes, ...]:
    data = (CORPUS / f"{name}.log").read_bytes()
    return tuple(data.removesuffix(b"\n").split(b"\n"))


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", CASES)
def test_a_wrapper_changes_nothing(name: str, wrapper: str) -> None:
    lines = lines_of(name)
    plain = told(b"\n".join(lines) + b"\n")
    wrapped = told(b"\n".join(WRAPPERS[wrapper](line) for line in lines) + b"\n")
    wrong = {key: (wrapped[key], plain[key]) for key in plain if wrapped[key] != plain[key]}
    assert not wrong


BEGIN = b"[2026-02-01 00:05:03 TP0] Load weight begin. avail mem=78.41 GB"
OTHER = b"[2026-02-01 00:05:03 TP1] Load weight begin. avail mem=77.41 GB"
READY = b"[2026-02-01 00:05:04] The server is fired up and ready to roll!"
DECODE = (
    b"[2026-02-01 00:05:%02d DP%d TP%d] Decode batch, #running-req: 2, #token: 9, token usage: 0.50, "
    b"gen throughput (token/s): 50.00, #queue-req: 0"
)


@pytest.mark.parametrize(
    "lines",
    [
        (BEGIN, OTHER),
        (BEGIN, OTHER, READY, DECODE % (8, 0, 0), DECODE % (8, 1, 1), DECODE % (9, 0, 0), DECODE % (9, 1, 1)),
        (READY, DECODE % (8, 0, 0), DECODE % (8, 1, 1), DECODE % (9, 0, 0)),
    ],
)
def test_glued_records_are_taken_apart(lines: tuple[bytes, ...]) -> None:
    apart = told(b"\n".join(lines) + b"\n")
    for place in range(len(lines) - 1):
        glued = told(b"\n".join((*lines[:place], lines[place] + lines[place + 1], *lines[place + 2 :])) + b"\n")
        assert {**glued, "lines": 0} == {**apart, "lines": 0}


def test_quoted_times_are_no_records() -> None:
    quoted = told(READY + b'\n[2026-02-01 00:05:09] Receive: "[2026-02-01 00:05:03 TP0] Load weight begin"\n')
    assert quoted["stage"] == "ready"
