"""Prefill and decode lines as each release prints them, with what they say: worked out from the format strings of 20
releases (0.3.6 to 0.5.23), not from the code under test."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tui.sglang.facts import LogFacts, read
from tui.sglang.model import Sample

READY = "[2026-07-30 13:35:00] The server is fired up and ready to roll!"
NEW, OLD = "Prefill batch, #new-seq: 2, ", "Prefill batch. #new-seq: 2, "
TOKENS = "#new-token: 600, #cached-token: 200, "  # a quarter was cached
CASES: dict[str, tuple[str, Sample]] = {
    # One rate per decode line; the number of tokens stands apart from their share
    "0.3.6 decode": (
        "Decode batch. #running-req: 12, #token: 3400, token usage: 0.34, gen throughput (token/s): 512.25, "
        "#queue-req: 3",
        Sample(0, generate=512.25, running=12, queued=3, kv=0.34),
    ),
    "0.3.6 prefill, with its own cumulative hit rate": (
        f"{OLD}{TOKENS}cache hit rate: 61.50%, token usage: 0.12, #running-req: 4, #queue-req: 9",
        Sample(0, prefill=600.0, running=4, queued=9, kv=0.12, cache_hit=0.25),
    ),
    "0.4.3 decode with speculation": (
        "Decode batch. #running-req: 1, #token: 90, token usage: 0.01, accept len: 3.20, gen throughput (token/s): "
        "160.00, #queue-req: 0",
        Sample(0, generate=160.0, running=1, queued=0, kv=0.01, accept_len=3.2),
    ),
    "0.4.4 decode with the longest length": (
        "Decode batch. #running-req: 2, #token: 90, token usage: 0.02, gen throughput (token/s): 77.70, "
        "largest-len: 4096, #queue-req: 1, ",
        Sample(0, generate=77.7, running=2, queued=1, kv=0.02),
    ),
    "0.4.6.post5 prefill of a PD server": (
        f"{OLD}{TOKENS}token usage: 0.50, #running-req: 0, #unbootstrapped-req: 7, #queue-req: 5, "
        "#transferring-req: 6 ",
        Sample(0, prefill=600.0, running=0, queued=5, kv=0.5, cache_hit=0.25),
    ),
    "0.4.6.post5 decode of a PD server": (
        "Decode batch. #running-req: 31, #token: 777, token usage: 0.77, pre-allocated usage: 0.11, cuda graph: True, "
        "gen throughput (token/s): 1500.50, #queue-req: 0",
        Sample(0, generate=1500.5, running=31, queued=0, kv=0.77),
    ),
    "0.4.9.post6 prefill of a PD server has no running": (
        f"{OLD}{TOKENS}token usage: 0.50, #unbootstrapped-req: 7, #queue-req: 5, #transferring-req: 6, "
        "input throughput (token/s): 8000.25, ",
        Sample(0, prefill=8000.25, queued=5, kv=0.5, cache_hit=0.25),
    ),
    "0.4.9.post6 decode, sliding window": (
        "Decode batch. #running-req: 3, #full token: 100, full token usage: 0.10, #swa token: 60, swa token usage: "
        "0.60, cuda graph: False, gen throughput (token/s): 33.30, #queue-req: 0, ",
        Sample(0, generate=33.3, running=3, queued=0, kv=0.1, swa=0.6),
    ),
    "0.4.9.post6 decode of a PD server": (
        "Decode batch. #running-req: 3, #token: 100, token usage: 0.10, pre-allocated usage: 0.92, #retracted-req: 8, "
        "cuda graph: True, gen throughput (token/s): 33.30, #queue-req: 2, ",
        Sample(0, generate=33.3, running=3, queued=2, kv=0.1),
    ),
    "0.5.3 prefill": (
        f"{OLD}{TOKENS}token usage: 0.04, #running-req: 16, #queue-req: 2, ",
        Sample(0, prefill=600.0, running=16, queued=2, kv=0.04, cache_hit=0.25),
    ),
    "0.5.3 decode of a PD server on a CPU": (
        "Decode batch. #running-req: 3, #token: 100, token usage: 0.10, accept len: 2.00, pre-allocated usage: 0.92, "
        "#prealloc-req: 4, #transfer-req: 5, #retracted-req: 8, cpu graph: True, gen throughput (token/s): 33.30, "
        "#queue-req: 2, ",
        Sample(0, generate=33.3, running=3, queued=2, kv=0.1, accept_len=2.0),
    ),
    "0.5.4 decode counts its steps": (
        "Decode batch [4711], #running-req: 9, #full token: 100, full token usage: 0.10, mamba num: 12, mamba usage: "
        "0.25, cuda graph: True, gen throughput (token/s): 630.00, #queue-req: 0, ",
        Sample(0, generate=630.0, running=9, queued=0, kv=0.1, mamba=0.25),
    ),
    "0.5.5 prefill of a PD server": (
        f"{NEW}{TOKENS}full token usage: 0.20, mamba usage: 0.40, #running-req: 16, #queue-req: 2, #prealloc-req: 3, "
        "#inflight-req: 1, input throughput (token/s): 1234.50, ",
        Sample(0, prefill=1234.5, running=16, queued=2, kv=0.2, mamba=0.4, cache_hit=0.25),
    ),
    "0.5.6 decode with speculation": (
        "Decode batch, #running-req: 1, #token: 100, token usage: 0.00, accept len: 2.40, accept rate: 0.60, cuda "
        "graph: True, gen throughput (token/s): 240.00, #queue-req: 0, ",
        Sample(0, generate=240.0, running=1, queued=0, kv=0.0, accept_len=2.4, accept_rate=0.6),
    ),
    "0.5.9 prefill": (
        f"{NEW}{TOKENS}token usage: 0.04, #running-req: 16, #queue-req: 2, input throughput (token/s): 90.50, "
        "cuda graph: False",
        Sample(0, prefill=90.5, running=16, queued=2, kv=0.04, cache_hit=0.25),
    ),
    "0.5.10 prefill, sliding window and Mamba": (
        f"{NEW}{TOKENS}full token usage: 0.04, swa token usage: 0.08, mamba usage: 0.16, #running-req: 16, "
        "#queue-req: 2, cuda graph: False, input throughput (token/s): 90.50",
        Sample(0, prefill=90.5, running=16, queued=2, kv=0.04, swa=0.08, mamba=0.16, cache_hit=0.25),
    ),
    "0.5.10 decode with MFU": (
        "Decode batch, #running-req: 8, #full token: 1, full token usage: 0.04, #swa token: 2, swa token usage: 0.08, "
        "mamba num: 3, mamba usage: 0.16, cuda graph: True, gen throughput (token/s): 88.00, #queue-req: 1, "
        "est. decode TFLOPS/s (per GPU): 5.20, est. read BW (GB/s per GPU): 1900.10, est. write BW (GB/s per GPU): "
        "7.70",
        Sample(0, generate=88.0, running=8, queued=1, kv=0.04, swa=0.08, mamba=0.16),
    ),
    "0.5.11 prefill with tokens that wait": (
        f"{NEW}{TOKENS}token usage: 0.04, #running-req: 16, #queue-req: 2, #pending-token: 90000, cuda graph: False, "
        "input throughput (token/s): 90.50, est. prefill TFLOPS/s (per GPU): 55.50, fwd occupancy: 98.10%",
        Sample(0, prefill=90.5, running=16, queued=2, kv=0.04, cache_hit=0.25),
    ),
    "0.5.11 decode with HiSparse": (
        "Decode batch, #running-req: 2, #gpu token: 500, gpu token usage: 0.50, #cpu token: 70, cpu token usage: 0.07, "
        "cuda graph: True, gen throughput (token/s): 12.00, #queue-req: 0",
        Sample(0, generate=12.0, running=2, queued=0, kv=0.5),
    ),
    "0.5.12 prefill of a PD server": (
        f"{NEW}{TOKENS}token usage: 0.04, #running-req: 0, #queue-req: 2, #pending-token: 1, #bootstrap-req: 3, "
        "#inflight-req: 4, waiting-image-req: 0, cuda graph: False, input throughput (token/s): 90.50",
        Sample(0, prefill=90.5, running=0, queued=2, kv=0.04, cache_hit=0.25),
    ),
    "0.5.12 decode on an NPU": (
        "Decode batch, #running-req: 2, #token: 500, token usage: 0.50, waiting-image-req: 6, npu graph: True, "
        "gen throughput (token/s): 12.00, #queue-req: 0",
        Sample(0, generate=12.0, running=2, queued=0, kv=0.5),
    ),
    "0.5.17 decode with capped speculation": (
        "Decode batch, #running-req: 2, #token: 500, token usage: 0.50, accept len: 2.10, accept rate: 0.37, "
        "cap len: 3.90, block accept len: 9.90, cuda graph: True, gen throughput (token/s): 12.00, #queue-req: 0",
        Sample(0, generate=12.0, running=2, queued=0, kv=0.5, accept_len=2.1, accept_rate=0.37),
    ),
    "0.5.17 prefill of a PD server": (
        f"{NEW}{TOKENS}token usage: 0.04, #running-req: 0, #queue-req: 2, #pending-token: 1, #bootstrap-req: 3, "
        "#inflight-req: 4, #optimistic-req: 5, cuda graph: True, input throughput (token/s): 90.50",
        Sample(0, prefill=90.5, running=0, queued=2, kv=0.04, cache_hit=0.25),
    ),
    "0.5.21 prefill with replayed tokens": (
        f"{NEW}{TOKENS}token usage: 0.04, #running-req: 1, #queue-req: 2, #pending-token: 0, #replay-token: 64, "
        "cuda graph: True, input throughput (token/s): 90.50, fwd occupancy: nan%, fwd+idle occupancy: nan%",
        Sample(0, prefill=90.5, running=1, queued=2, kv=0.04, cache_hit=0.25),
    ),
    "0.5.23 decode of a PD server": (
        "Decode batch [99], #running-req: 2, #full token: 9, full token usage: 0.50, mamba num: 4, mamba usage: 0.75, "
        "accept len: 3.00, accept rate: 0.50, pre-allocated usage: 0.30, #prealloc-req: 1, #transfer-req: 2, "
        "#host-receive-req: 3, #retracted-req: 4, cuda graph: True, gen throughput (token/s): 1012.00, #queue-req: 5, "
        "fwd occupancy: 88.00%, fwd+idle occupancy: 99.00%",
        Sample(0, generate=1012.0, running=2, queued=5, kv=0.5, mamba=0.75, accept_len=3.0, accept_rate=0.5),
    ),
    "a fork that prints in another order": (
        "Decode batch, #queue-req: 5, gen throughput (token/s): 1012.00, swa token usage: 0.40, accept rate: 0.50, "
        "full token usage: 0.50, accept len: 3.00, #running-req: 2",
        Sample(0, generate=1012.0, running=2, queued=5, kv=0.5, swa=0.4, accept_len=3.0, accept_rate=0.5),
    ),
}


def told(*lines: str) -> LogFacts:
    return read([("\n".join(lines) + "\n").encode()])


@pytest.mark.parametrize("ready", [(READY,), ()], ids=["serving", "by itself"])
@pytest.mark.parametrize(("body", "expected"), CASES.values(), ids=CASES)
def test_every_field_of_a_line(body: str, expected: Sample, ready: tuple[str, ...]) -> None:
    latest = told(*ready, f"[2026-07-30 13:35:10] {body}").latest
    assert latest is not None
    wrong = {
        each.name: (getattr(latest, each.name), getattr(expected, each.name))
        for each in fields(Sample)
        if each.name != "at_local" and getattr(latest, each.name) != getattr(expected, each.name)
    }
    assert not wrong


def _prefill(ranks: str, new: int, cached: int, running: int = 4) -> str:
    return (
        f"[2026-07-30 13:35:10{ranks}] Prefill batch, #new-seq: 2, #new-token: {new}, #cached-token: {cached}, "
        f"token usage: 0.04, #running-req: {running}, #queue-req: 2, "
    )


def _decode(ranks: str, second: int, rate: float, running: int = 4) -> str:
    return (
        f"[2026-07-30 13:{35 + second // 60}:{second % 60:02d}{ranks}] Decode batch, #running-req: {running}, "
        f"#token: 9, token usage: 0.50, cuda graph: True, gen throughput (token/s): {rate:.2f}, #queue-req: 1"
    )


@pytest.mark.parametrize("ready", [(READY,), ()], ids=["serving", "by itself"])
@pytest.mark.parametrize(
    ("ranks", "replicas"),
    [
        ((" PP0 TP0", " PP1 TP0"), 1),  # every stage of a pipeline prints the same batch
        ((" TP0", " TP1", " TP2", " TP3"), 1),  # --enable-metrics-for-all-schedulers, up to 0.5.9
        ((" DP0 TP0", " DP0 TP1", " DP1 TP2", " DP1 TP3"), 2),
        ((" DP0 PP0 TP0 EP0", " DP1 PP0 TP1 EP1", " DP0 PP1 TP0 EP0", " DP1 PP1 TP1 EP1"), 2),
        ((" DP0 PP0 ATTN_CP0 MOE_DP0 TP0", " DP1 PP0 ATTN_CP0 MOE_DP1 TP1"), 2),
    ],
)
def test_sums_run_over_dp_ranks_alone(ranks: tuple[str, ...], replicas: int, ready: tuple[str, ...]) -> None:
    prefills = [_prefill(each, new, 100) for new in (300, 600) for each in ranks]
    latest = told(*ready, *prefills).latest
    assert latest is not None
    assert (latest.prefill, latest.running, latest.queued) == (900.0 * replicas, 4 * replicas, 2 * replicas)
    assert latest.cache_hit == 200 / 1100
    facts = told(*ready, *(_decode(each, second, 50.0) for second in (11, 12) for each in ranks))
    assert facts.latest is not None and facts.latest.generate == facts.last_generate == 50.0 * replicas
    assert (facts.latest.running, facts.latest.kv) == (4 * replicas, 0.5)
