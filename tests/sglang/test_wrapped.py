"""Records that a terminal broke into several lines are read as a whole."""

from __future__ import annotations

import pytest

from tests.sglang.startups import startups
from tui.sglang.facts import Carry, LogFacts, facts, finish, read

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


BATCHES = (
    "[2026-02-01 00:06:00 TP0] Prefill batch, #new-seq: 2, #new-token: 600, #cached-token: 200, token usage: 0.04, "
    "#running-req: 16, #queue-req: 2, cuda graph: False, input throughput (token/s): 90.50",
    "[2026-02-01 00:06:03 TP0] Decode batch, #running-req: 12, #full token: 257, full token usage: 0.34, mamba num: 3, "
    "mamba usage: 0.03, accept len: 2.83, accept rate: 0.61, cuda graph: True, gen throughput (token/s): 93.65, "
    "#queue-req: 10",
    "[2026-02-01 00:06:04 TP0] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, "
    "#running-req: 0, #queue-req: 0, cuda graph: False, input throughput (token/s): 0.10",
    "[2026-02-01 00:06:05 TP0] Decode batch, #running-req: 13, #full token: 257, full token usage: 0.35, mamba num: 3, "
    "mamba usage: 0.04, accept len: 2.85, accept rate: 0.62, cuda graph: True, gen throughput (token/s): 1193.65, "
    "#queue-req: 11",
    '[2026-02-01 00:06:06] INFO:     127.0.0.1:5 - "POST /v1/completions HTTP/1.1" 200 OK',
)
READY = "[2026-02-01 00:05:59] The server is fired up and ready to roll!\n"


def at(width: int, lines: tuple[str, ...] = BATCHES, *, blanks: bool = False) -> bytes:
    pieces = [line[a : a + width] for line in lines for a in range(0, len(line), width)]
    return (READY + "\n".join(piece if blanks else piece.rstrip() for piece in pieces) + "\n").encode()


@pytest.mark.parametrize("blanks", [False, True])
@pytest.mark.parametrize("width", range(60, 234))
def test_batch_lines_of_any_width(width: int, blanks: bool) -> None:
    whole, again = read([at(999)]), read([at(width, BATCHES * 2, blanks=blanks)])
    assert whole.latest is not None and whole.latest.generate == 1193.65 and whole.latest.prefill == 90.5
    assert again.latest == whole.latest
    first = read([at(width, blanks=blanks)])
    like_a_whole_one = (
        BATCHES[0][:width].rstrip(" ,").endswith(("#queue-req: 2", "graph: False"))
    )  # of an older release
    if not like_a_whole_one:
        assert (first.latest, first.series) == (whole.latest, whole.series)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_chunk_borders_in_broken_batch_lines(width: int) -> None:
    data = at(width)
    whole = read([data])
    for size in (1, 7, 80, 81, 200, len(data) - 1):
        carry = Carry()
        for begin in range(0, len(data), size):
            carry = facts(data[begin : begin + size], carry)[1]
        assert finish(carry) == whole, size
    assert (
        whole.life == len(data) - sum(len(line) + 1 for line in at(width, BATCHES[2:3])[len(READY) :].split(b"\n")) + 1
    )


@pytest.mark.parametrize("after", ["Killed", "Segmentation fault (core dumped)", "RuntimeError: CUDA error: x"])
def test_what_follows_a_batch_line_that_was_cut_short_is_a_line(after: str) -> None:
    for cut in range(60, len(BATCHES[1])):
        log = told(f"{READY}{BATCHES[1][:cut]}\n{after}\n")
        assert log.last_line == after and log.latest is not None, cut
