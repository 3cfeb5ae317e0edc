"""Stages of every version: turns of a draft model, ranks, worker nodes, what an excerpt tells."""

from __future__ import annotations

import pytest

from tui.sglang.facts import LogFacts, read
from tui.sglang.model import Progress, Stage
from tui.sglang.stages import Stages


def told(*messages: str, start: str = "2026-02-01 00:05:") -> LogFacts:
    """Facts of messages, one second apart; ``TP0|text`` stands for the rank prefix ``TP0``."""
    lines = []
    for second, message in enumerate(messages):
        ranks, bar, text = message.rpartition("|")
        prefix = f"[{start}{second:02d}{' ' + ranks if bar else ''}] "
        lines.append(prefix + text + "\n")
    return read(["".join(lines).encode()])


BEGIN = ("Init torch distributed begin.", "Load weight begin. avail mem=78.41 GB")
ARGS = "server_args=ServerArgs(model_path='m', tp_size={tp}, nnodes=1, node_rank=0)"


@pytest.mark.parametrize(
    ("messages", "stage"),
    [
        (("Init torch distributed begin.",), Stage.DIST_INIT),
        (("Init parallel begin.", "Init parallel ends. elapsed=1.23 s"), Stage.DIST_INIT),
        (BEGIN, Stage.LOADING_WEIGHTS),
        ((*BEGIN, "Load weight end. type=Q, dtype=torch.bfloat16, avail mem=8.37 GB"), Stage.KV_CACHE),
        ((*BEGIN, "Mamba Cache is allocated. conv_state size: 0.03GB, ssm_state size: 2.74GB "), Stage.MAMBA_CACHE),
        ((*BEGIN, "KV Cache is allocated. K size: 2.82 GB, V size: 2.82 GB."), Stage.KV_CACHE),
        ((*BEGIN, "SWA KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1, KV size: 9.21 GB"), Stage.KV_CACHE),
        ((*BEGIN, "KV Cache skipped (no-op pool). Logical #tokens: 5, physical K/V size"), Stage.KV_CACHE),
        ((*BEGIN, "Memory pool end. avail mem=3.42 GB"), Stage.KV_CACHE),
        ((*BEGIN, "Capture cuda graph begin. This can take up to several minutes."), Stage.CUDA_GRAPH),
        ((*BEGIN, "Capture cpu graph begin. This can take up to several minutes. avail mem=2.98 GB"), Stage.CUDA_GRAPH),
        (
            (*BEGIN, "Capture target decode CUDA graph begin. backend=full, num_tokens_per_bs=1, bs=[1]"),
            Stage.CUDA_GRAPH,
        ),
        ((*BEGIN, "Capture piecewise CUDA graph end. Time elapsed: 1 s. mem usage=-0.01 GB."), Stage.CUDA_GRAPH),
        ((*BEGIN, "Capture draft extend cuda graph begin. avail mem=1 GB"), Stage.CUDA_GRAPH),
        ((*BEGIN, "Load weight end. Committed real weights after CUDA graph capture in 3.20 s"), Stage.CUDA_GRAPH),
        ((*BEGIN, "Allocating 40.00 GB host memory for hierarchical KV cache."), Stage.HOST_CACHE),
        ((*BEGIN, "Allocating kv hierarchical KV host pool: 34 tokens, 153.81 GB host memory."), Stage.HOST_CACHE),
        ((*BEGIN, "INFO:     Started server process [1]"), Stage.WARMUP),
        ((*BEGIN, "Start of pd disaggregation warmup ..."), Stage.WARMUP),
        ((*BEGIN, "INFO:     Uvicorn running on http://127.0.0.1:1 (Press CTRL+C to quit)"), Stage.WARMUP),
        ((*BEGIN, "The server is fired up and ready to roll!"), Stage.READY),
    ],
)
def test_the_stage_of_a_message(messages: tuple[str, ...], stage: Stage) -> None:
    assert told(*messages).stage is stage
    assert told(*(f"TP0|{message}" if "INFO" not in message else message for message in messages)).stage is stage


def test_ready_stands_without_a_prefix_too() -> None:
    rust = b"2026-02-01T00:05:03.123Z  INFO sglang_server: The server is fired up and ready to roll!\n"
    assert read([rust]).ready
    assert not read(
        [b"2025-03-08 22:50:27,532 - __main__ - WARNING - Please wait for sglang server to become ready...\n"]
    ).ready
    assert not told("user asked: The server is fired up and ready to roll!").ready


def test_a_stage_is_reached_when_all_ranks_have_reached_it() -> None:
    facts = told(
        ARGS.format(tp=4),
        *(f"TP{rank}|Load weight begin. avail mem=1 GB" for rank in range(3)),
        "TP0|Load weight end. type=Q, avail mem=1 GB",
        "TP2|Load weight end. type=Q, avail mem=1 GB",
    )
    assert facts.stage is Stage.LOADING_WEIGHTS
    assert facts.missing_ranks == ("TP1", "TP3")


def test_ranks_in_every_order() -> None:
    facts = told(
        "DP0 PP0 ATTN_CP1 MOE_DP0 TP2 EP3|Load weight begin. avail mem=1 GB",
        "DP10 TP10 EP10|Load weight end. type=Q",
        "DP2 TP2 EP2|Load weight begin. avail mem=1 GB",
    )
    assert facts.stage is Stage.LOADING_WEIGHTS
    assert facts.missing_ranks == ("DP0 PP0 ATTN_CP1 MOE_DP0 TP2 EP3", "DP2 TP2 EP2")


@pytest.mark.parametrize("both_loads_first", [True, False])
def test_a_draft_model_goes_through_the_stages_again(both_loads_first: bool) -> None:
    load, end, pool = "Load weight begin. avail mem=9 GB", "Load weight end. type=Q", "Memory pool end. avail mem=1 GB"
    graph = "Capture target decode CUDA graph begin. backend=full"
    order = [load, end, load, end, pool, pool, graph] if both_loads_first else [load, end, pool, graph, load, end, pool]
    both = [f"TP{rank}|{message}" for message in order for rank in (0, 1)]
    for count in range(0, len(both) + 1, 2):
        assert told(*both[:count]).missing_ranks == ()
    behind = told(*both, "TP0|Capture target decode CUDA graph end. elapsed=1 s", f"TP0|{graph}")
    assert behind.missing_ranks == (() if both_loads_first else ("TP1",))
    assert {span.stage for span in told(*both).stages} == {Stage.LOADING_WEIGHTS, Stage.KV_CACHE, Stage.CUDA_GRAPH}


def test_draft_graphs_are_told_by_rank_0_alone_and_nobody_waits() -> None:
    pools = [f"TP{rank}|Memory pool end. avail mem=1 GB" for rank in (0, 1)]
    facts = told(*pools, "TP0|Capture draft cuda graph begin. avail mem=1 GB")
    assert (facts.stage, facts.missing_ranks) == (Stage.CUDA_GRAPH, ())
    on = [f"TP{rank}|Allocating 40.00 GB host memory for hierarchical KV cache." for rank in (0, 1)]
    assert told(*pools, "TP0|Capture draft cuda graph begin. avail mem=1 GB", *on).stage is Stage.HOST_CACHE


def test_seconds_come_from_the_logs_times() -> None:
    facts = told(
        "Init torch distributed begin.",
        "Load weight begin. avail mem=1 GB",
        "Load weight end. type=Q",
        "Mamba Cache is allocated. max_mamba_cache_size: 3, conv_state size: 0.03GB, ssm_state size: 2.74GB ",
        "KV Cache is allocated. #tokens: 1, KV size: 1.00 GB",
        "Capture cuda graph begin. This can take up to several minutes. avail mem=2.98 GB",
    )
    spans = {span.stage: span.seconds for span in facts.stages}
    assert spans == {
        Stage.DIST_INIT: 1.0,
        Stage.LOADING_WEIGHTS: 1.0,
        Stage.MAMBA_CACHE: 2.0,
        Stage.KV_CACHE: 1.0,
        Stage.CUDA_GRAPH: None,
    }
    assert facts.stages[-1].start_local == facts.last_local


def test_bars() -> None:
    shards = "\rLoading safetensors checkpoint shards:  50% Completed | 1/2 [04:38<04:38, 278.99s/it]"
    facts = read([(shards + "\r").encode()])
    assert (facts.stage, facts.progress) == (Stage.LOADING_WEIGHTS, Progress("shards", 1, 2))
    glued = "\rCapturing batches (bs=1 avail_mem=2.91 GB): 100%|██| 4/4 [00:00<00:00, 5.37it/s]"
    facts = read([f"{glued}[2026-02-01 00:05:03 TP0] Memory pool end. avail mem=1 GB\n".encode()])
    assert facts.stage is Stage.KV_CACHE
    assert facts.last_line.endswith("Memory pool end. avail mem=1 GB")
    plain = read([b"[2026-02-01 00:05:03] Capture cuda graph begin.\n\r  4%|4         | 1/23 [00:00<?, ?it/s]"])
    assert plain.progress == Progress("graphs", 1, 23)


def test_a_second_launch_in_the_same_log_starts_anew() -> None:
    facts = told(ARGS.format(tp=1), "The server is fired up and ready to roll!", ARGS.format(tp=2), *BEGIN)
    assert (facts.ready, facts.stage) == (False, Stage.LOADING_WEIGHTS)
    assert facts.args["tp_size"] == "2"


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("(WorkerDict pid=2882, ip=10.0.0.25) [2026-02-01 00:05:03 TP1] {}", "TP1"),
        ("qwen35-4b-sglang  | [2026-02-01 00:05:03 TP1] {}", "TP1"),
        ("2026-02-01T00:05:03.977090836Z [2026-02-01 00:05:03 TP1] {}", "TP1"),
        ("2026-02-01T00:05:03.977090836+01:00 stdout F [2026-02-01 00:05:03.123 TP1] {}", "TP1"),
        ("2026-02-01T00:05:03.500Z pod INFO TP1] {}", "TP1"),
        ("Feb 1, 2026 @ 00:05:03.898    [2026-02-01 00:05:03 TP1] {}", "TP1"),
        ("\x1b[1;32m[2026-02-01 00:05:03 TP1]\x1b[0m {}", "TP1"),
        ('{{"log":"[2026-02-01 00:05:03 TP1] {}\\n","stream":"stderr","time":"2026-02-01T00:05:03.9Z"}}', "TP1"),
        ("[2026-02-01 00:05:03 DisaggregationMode.IGPUDECODE TP1] {}", "TP1"),
        ("2026-02-01 00:05:03,659 [INFO] sglang.srt.model_executor.model_runner: {}", ""),
        ("INFO 2026-02-01 00:05:03 model_runner.py:12] {}", ""),
        ("[02-01 00:05:03] {}", ""),
        ("{}", ""),
    ],
)
def test_wrappers(line: str, rank: str) -> None:
    host = "Allocating 150.00 GB host memory for hierarchical KV cache."
    facts = read([(line.format("Load weight begin. avail mem=1 GB") + "\n" + line.format(host) + "\n").encode()])
    assert facts.stage is Stage.HOST_CACHE
    assert [(pool.kind, pool.gb) for pool in facts.pools] == [("KV", 150.0)]
    serving = line.format(
        "Decode batch, #running-req: 3, #token: 9, token usage: 0.10, gen throughput (token/s): 7.50, #queue-req: 1"
    )
    facts = read([(serving + "\n").encode()])
    assert facts.ready and facts.last_generate == 7.5


def test_ranks_at_their_own_pace_take_no_time_each() -> None:
    ranks = [
        (f"TP{rank}", second, words)
        for rank in range(64)
        for second, words in ((0, "Load weight begin. avail mem=1 GB"), (2, "KV Cache is allocated. #tokens: 9"))
    ]
    log = "".join(f"[2026-02-01 00:05:{second:02} {rank}] {words}\n" for rank, second, words in ranks)
    spans = {span.stage: span.seconds for span in read([log.encode()]).stages}
    assert spans[Stage.LOADING_WEIGHTS] == 2.0  # and not twice that for each of the 64


def test_thousands_of_ranks_are_looked_at_by_place() -> None:
    stages = Stages()
    for rank in range(4000):
        stages.rank_reached(f"DP{rank}", Stage.LOADING_WEIGHTS, None)
    for rank in range(3999):
        stages.rank_reached(f"DP{rank}", Stage.KV_CACHE, None)
    assert (stages.stage, stages.missing, len(stages.stood)) == (Stage.LOADING_WEIGHTS, ("DP3999",), 2)
    stages.rank_reached("DP3999", Stage.KV_CACHE, None)
    assert (stages.stage, stages.missing, len(stages.stood)) == (Stage.KV_CACHE, (), 1)


def test_two_servers_in_one_log_are_said() -> None:
    dump = "[2026-07-30 13:{}:00] server_args=ServerArgs(model_path='m', host='::', port={}, tp_size=1)\n"
    load = "[2026-07-30 13:{}:05] Load weight begin. avail mem=60.92 GB\n"
    for second, said in ((30001, True), (30000, False)):
        log = dump.format(10, 30000) + load.format(10) + dump.format(36, second) + load.format(36)
        warnings = read([log.encode()]).warnings
        assert [w.startswith("two servers wrote into this log (ports 30000 and 30001)") for w in warnings] == [
            True
        ] * said
