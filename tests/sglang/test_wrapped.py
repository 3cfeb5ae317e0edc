"""Records that a terminal broke into several lines are read as a whole."""

from __future__ import annotations

import pytest

from tests.sglang.startups import startups
from tui.sglang.facts import LogFacts, read

LONG = (
    "Mamba Cache is allocated. max_mamba_cache_size: 257, conv_state size: 0.46GB, ssm_state size: 13.04GB "
    "intermediate_ssm_state_cache size: 1.05GB intermediate_conv_window_cache size: 0.02GB ",
    "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 541816, K size: 3.88 GB, V size: 3.88 GB",
    "max_total_num_tokens=541816, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=76, "
    "context_len=262144, available_gpu_mem=17.90 GB",
    "Allocating 0.58 GB host memory for hierarchical Mamba cache (39868 state slots, layout=page_first_direct).",
    "Allocating kv hierarchical KV host pool: 3267568 tokens, 0.42 GB host memory.",
)


def told(log: str) -> LogFacts:
    return read([log.encode()])


def lines(width: int, prefix: str) -> str:
    """The records, broken at ``width``; the blank at a break is gone as a terminal's copy loses it."""
    broken = []
    for message in LONG:
        text = prefix + message
        broken += [text[at : at + width].rstrip() for at in range(0, len(text), width)]
    return "\n".join(broken) + "\n"


@pytest.mark.parametrize("width", range(60, 200))
def test_any_width(width: int) -> None:
    prefix = "[2026-02-01 00:05:03 TP0] "
    whole = told(lines(10_000, prefix))
    facts = told(lines(width, prefix))
    assert facts.pools == whole.pools
    assert [(pool.kind, pool.gb) for pool in facts.pools] == [
        ("Mamba", 14.57),
        ("KV", 7.76),
        ("Mamba", 0.58),
        ("KV", 0.42),
    ]
    assert (facts.max_running_requests, facts.context_len, facts.stage) == (76, 262144, whole.stage)


def test_arguments_over_many_lines() -> None:
    dump = "[2026-02-01 00:05:03] server_args=ServerArgs(model_path='/models/Qwen3-32B', mem_fraction_static=0.71, " + (
        "page_size=128, device='npu', tp_size=2, watchdog_timeout=300, random_seed=5, nnodes=1, node_rank=0, dp_size=1)"
    )
    for width in range(40, 150):
        log = "\n".join(dump[at : at + width] for at in range(0, len(dump), width))
        args = told(log + "\n[2026-02-01 00:05:04 TP0] Load weight begin. avail mem=60.92 GB\n").args
        assert (args["model_path"], args["tp_size"], args["dp_size"]) == ("/models/Qwen3-32B", "2", "1"), width


def test_what_follows_a_whole_record_is_not_taken_for_its_end() -> None:
    first = f"[2026-02-01 00:05:03] {LONG[0][: LONG[0].index('intermediate')]}\n"
    assert told(first + "/opt/torch.py:12: UserWarning: x\n" * 3).pools == told(first).pools
    for case in startups():
        if "wrapped" in case.name:
            continue
        noisy = "".join(f"{line}\nTriton is not installed\n" for line in case.lines)
        assert told(noisy).pools == read([case.log]).pools, case.name
