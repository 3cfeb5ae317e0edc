"""All cases of the corpus: what an expert reads from a log, we read too."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tui.sglang import verdict
from tui.sglang.events import LogRead
from tui.sglang.facts import read
from tui.sglang.model import Phase, ServerInfo
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

CORPUS = Path(__file__).parent.parent / "data" / "corpus"
CASES = sorted(path.stem for path in CORPUS.glob("*.json"))
PHASES = {"ready": Phase.READY, "running": Phase.READY, "failed": Phase.FAILED, "stopped": Phase.STOPPED}


@cache
def state_of(name: str) -> ServerState:
    return reduce(ServerState(ServerInfo(name)), LogRead(0.0, read([(CORPUS / f"{name}.log").read_bytes()])))


def expected(name: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((CORPUS / f"{name}.json").read_text())["expected"]
    return answer


def test_all_cases_are_here() -> None:
    assert len(CASES) == 61


@pytest.mark.parametrize("name", CASES)
def test_phase(name: str) -> None:
    outcome = expected(name)["outcome"]
    phase = verdict.phase(state_of(name))
    if outcome in PHASES:
        assert phase is PHASES[outcome]
    else:
        assert phase is not Phase.FAILED


@pytest.mark.parametrize("name", CASES)
def test_stage(name: str) -> None:
    assert verdict.stage(state_of(name)) == expected(name)["stage_reached"]


@pytest.mark.parametrize("name", CASES)
def test_pools(name: str) -> None:
    answer, pools = expected(name), state_of(name).log.pools
    device = [p for p in pools if p.place == "device" and p.kind == "KV"]
    kv = answer["kv_cache"]
    assert bool(device) == (kv is not None)
    if kv:
        assert (device[0].tokens, device[0].parts.get("k"), device[0].parts.get("v")) == (
            kv["tokens"],
            kv["k_gb"],
            kv["v_gb"],
        )
    mamba = [p for p in pools if p.place == "device" and p.kind == "Mamba"]
    if answer["mamba_cache"]:
        told = answer["mamba_cache"]
        assert (mamba[0].slots, mamba[0].parts["conv"], mamba[0].parts["ssm"]) == (
            told["max_size"],
            told["conv_gb"],
            told["ssm_gb"],
        )
    else:
        assert not mamba
    assert [{"kind": p.kind, "gb": p.gb, "ranks": p.ranks} for p in pools if p.place == "host"] == answer["host_pools"]


@pytest.mark.parametrize("name", CASES)
def test_numbers(name: str) -> None:
    answer, state = expected(name), state_of(name)
    assert state.log.max_total_num_tokens == answer["max_total_num_tokens"]
    assert state.log.max_running_requests == answer["max_running_requests"]
    assert verdict.throughput(state, 0.0).generate == answer["last_gen_throughput"]
    accept_len = state.log.latest.accept_len if state.log.latest else None
    assert accept_len == answer["speculative_accept_len"]
