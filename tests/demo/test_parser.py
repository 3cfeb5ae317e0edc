"""The parser finds in simulated logs what it finds in real ones of the same release, and how each scenario ends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.demo.running import running
from tui.sglang.facts import LogFacts, read
from tui.sglang.model import FailureKind, Stage

REAL = Path(__file__).parents[1] / "data" / "real"
DENSE = ("0.4.9.post6", "0.5.1", "0.5.3", "0.5.9", "0.5.12", "0.5.20")
# What a dense model on a CPU does not go through.
ELSEWHERE = {Stage.CUDA_GRAPH, Stage.MAMBA_CACHE}


def real(name: str) -> LogFacts:
    return read([(REAL / f"{name}.log").read_bytes()])


def simulated(*argv: str) -> LogFacts:
    """The facts of a server that became ready and answered a request with decode lines."""
    with running(*argv, "--decode-log-interval", "8") as server:
        server.ready()
        assert server.ask("POST", "/v1/completions", {"prompt": "x" * 400, "max_tokens": 20})[0] == 200
        server.read_until("POST /v1/completions")
    return read([server.log.encode()])


def stages(facts: LogFacts) -> set[Stage]:
    return {span.stage for span in facts.stages}


def pools(facts: LogFacts) -> set[tuple[str, str, str]]:
    return {(pool.place, pool.kind, pool.unit) for pool in facts.pools}


@pytest.mark.parametrize("version", DENSE)
def test_the_stages_and_pools_of_a_real_log(version: str) -> None:
    ours, theirs = simulated("--scenario", "plain", "--sglang-version", version), real(f"{version}_llama")
    assert ours.ready and theirs.ready
    assert stages(ours) - ELSEWHERE == stages(theirs)
    assert {pool for pool in pools(ours) if pool[1] != "Mamba"} == pools(theirs)
    assert ours.latest is not None and theirs.latest is not None
    assert (ours.latest.running is None) == (theirs.latest.running is None)


def test_the_stages_and_pools_of_a_real_hybrid_log_with_hicache() -> None:
    ours = simulated("--scenario", "hicache", "--sglang-version", "0.5.23")
    theirs = real("0.5.23_hybrid_hicache_metrics")
    assert stages(ours) - {Stage.CUDA_GRAPH} == stages(theirs)
    assert pools(ours) == pools(theirs)
    assert ours.latest is not None and ours.latest.kv is not None and ours.latest.mamba is not None


def test_the_first_users_pools() -> None:
    facts = simulated("--scenario", "hicache", "--sglang-version", "0.5.12")
    host = {pool.kind: pool for pool in facts.pools if pool.place == "host"}
    assert (host["KV"].gb, host["Mamba"].gb) == (150.00, 150.10)
    assert host["Mamba"].layout == "layer_first"
    device = {pool.kind: pool for pool in facts.pools if pool.place == "device"}
    assert (device["KV"].tokens, device["Mamba"].slots) == (147_456, 48)
    assert facts.max_running_requests == 9
    assert facts.model is not None and "Qwen3.6-27B" in facts.model


@pytest.mark.parametrize("version", ["0.5.9", "0.5.12", "0.5.16", "0.5.23"])
def test_speculation_is_read(version: str) -> None:
    facts = simulated("--scenario", "mtp", "--sglang-version", version)
    assert facts.speculative == "EAGLE"
    assert facts.latest is not None and facts.latest.accept_len is not None
    assert len([pool for pool in facts.pools if pool.place == "device" and pool.tokens]) == 2  # target and draft


@pytest.mark.parametrize(
    ("scenario", "kind"),
    [
        ("host-memory", FailureKind.OOM_HOST_HICACHE),
        ("gpu-memory", FailureKind.OOM_GPU_STATIC),
        ("port-taken", FailureKind.PORT_IN_USE),
    ],
)
@pytest.mark.parametrize("version", ["0.5.12", "0.5.23"])
def test_failures_are_read(scenario: str, kind: FailureKind, version: str) -> None:
    with running("--scenario", scenario, "--sglang-version", version) as server:
        server.read_until("Received sigquit|Waiting for application shutdown")
        if scenario == "port-taken":
            server.read_until("Errno 98")
    facts = read([server.log.encode()])
    assert facts.failure is not None and facts.fatal
    assert facts.failure.kind == kind
    assert re.search("Not enough|Errno 98", facts.failure.line)
    assert not facts.ready


def test_a_hang_is_in_its_stage() -> None:
    with running("--scenario", "hang") as server:
        server.read_until("hierarchical Mamba cache.*\n")
    facts = read([server.log.encode()])
    assert facts.stage == Stage.HOST_CACHE
    assert facts.failure is None


def test_a_hang_while_ranks_meet() -> None:
    with running("--scenario", "hang-nccl") as server:
        server.read_until("Init torch distributed begin.*\n")
    assert read([server.log.encode()]).stage == Stage.DIST_INIT
