"""Batch lines → live figures: fields in any order, DP ranks summed, idle time and probes left out."""

from __future__ import annotations

import pytest

from tui.sglang.facts import LogFacts, read
from tui.sglang.model import Sample
from tui.sglang.parser import LogParser
from tui.sglang.replicas import MOST

READY = "[2026-07-30 13:35:00] The server is fired up and ready to roll!"


def told(*lines: str, ready: bool = True) -> LogFacts:
    return read([("\n".join((READY, *lines) if ready else lines) + "\n").encode()])


def decode(second: int, rate: float, ranks: str = " TP0", running: int = 1, queued: int = 0) -> str:
    return (
        f"[2026-07-30 13:{35 + second // 60}:{second % 60:02d}{ranks}] Decode batch, #running-req: {running}, "
        f"#token: 9, token usage: 0.50, cuda graph: True, gen throughput (token/s): {rate:.2f}, #queue-req: {queued}"
    )


def prefill(second: int, new: int, cached: int = 0, running: int = 0) -> str:
    return (
        f"[2026-07-30 13:35:{second:02d} TP0] Prefill batch, #new-seq: 1, #new-token: {new}, #cached-token: {cached}, "
        f"token usage: 0.00, #running-req: {running}, #queue-req: 0"
    )


@pytest.mark.parametrize(
    ("body", "sample"),
    [
        (  # 0.3.6
            "Decode batch. #running-req: 3, #token: 9, token usage: 0.25, gen throughput (token/s): "
            "1.06, #queue-req: 2",
            Sample(0, generate=1.06, running=3, queued=2, kv=0.25),
        ),
        (  # 0.4.4
            "Decode batch. #running-req: 1, #token: 137, token usage: 0.25, accept len: 2.50, gen "
            "throughput (token/s): 9.06, "
            "largest-len: 12, #queue-req: 0, ",
            Sample(0, generate=9.06, running=1, queued=0, kv=0.25, accept_len=2.5),
        ),
        (  # 0.5.4, hybrid SWA
            "Decode batch [1234], #running-req: 1, #full token: 9, full token usage: 0.25, #swa token: 7, "
            "swa token usage: 0.75, cuda graph: True, gen throughput (token/s): 9.06, #queue-req: 0, ",
            Sample(0, generate=9.06, running=1, queued=0, kv=0.25, swa=0.75),
        ),
        (  # 0.5.2x, hybrid SSM
            "Decode batch, #running-req: 1, #full token: 257, full token usage: 0.00, mamba num: 3, mamba usage: 0.03, "
            "accept len: 2.83, accept rate: 0.61, cuda graph: True, gen throughput (token/s): 93.65, #queue-req: 0",
            Sample(0, generate=93.65, running=1, queued=0, kv=0.0, mamba=0.03, accept_len=2.83, accept_rate=0.61),
        ),
        (  # PD decode, other fields, another order
            "Decode batch, gen throughput (token/s): 93.65, #retracted-req: 0, pre-allocated usage: "
            "0.21, #queue-req: 4, "
            "est. read BW (GB/s per GPU): 12.5, fwd occupancy: nan%, #running-req: 2, token usage: 0.42",
            Sample(0, generate=93.65, running=2, queued=4, kv=0.42),
        ),
        (  # PD prefill
            "Prefill batch. #new-seq: 14, #new-token: 8192, #cached-token: 2048, token usage: 0.92, "
            "#unbootstrapped-req: 0, #queue-req: 101, #transferring-req: 984, input throughput (token/s): 95310.22 ",
            Sample(0, prefill=95310.22, queued=101, kv=0.92, cache_hit=0.2),
        ),
        (  # 0.5.4, without a rate: the tokens of the second
            "Prefill batch [17], #new-seq: 1, #new-token: 60, #cached-token: 40, token usage: 0.92, #running-req: 5, "
            "#queue-req: 1, ",
            Sample(0, prefill=60.0, running=5, queued=1, kv=0.92, cache_hit=0.4),
        ),
    ],
)
@pytest.mark.parametrize("ready", [True, False])
def test_fields_of_every_version(body: str, sample: Sample, ready: bool) -> None:
    latest = told(f"[2026-07-30 13:35:10 TP0] {body}", ready=ready).latest
    assert latest is not None
    assert latest == Sample(latest.at_local, *(getattr(sample, name) for name in list(Sample.__slots__)[1:]))


def test_dp_ranks_are_summed_and_pp_ranks_are_not() -> None:
    dp = told(*(decode(1, 100.0, f" DP{n} TP{n}", running=2, queued=1) for n in range(4)))
    assert dp.latest is not None
    assert (dp.last_generate, dp.latest.generate, dp.latest.running, dp.latest.queued) == (400.0, 400.0, 8, 4)
    assert dp.latest.kv == 0.5
    pp = told(*(decode(1, 100.0 + n, f" PP{n}") for n in range(4)))
    assert (pp.last_generate, pp.latest and pp.latest.generate) == (103.0, 103.0)


def test_a_dp_rank_that_went_idle_adds_nothing() -> None:
    facts = told(decode(0, 100.0, " DP0 TP0"), *(decode(second, 50.0, " DP1 TP1") for second in range(0, 50, 2)))
    assert facts.last_generate == 50.0
    assert facts.latest is not None and facts.latest.generate == 50.0


def test_the_first_rate_after_idleness_is_no_live_figure() -> None:
    busy = [decode(second, 80.0) for second in range(1, 5)]
    idle = told(*busy, decode(50, 1.06))
    assert (idle.last_generate, idle.latest and idle.latest.generate) == (1.06, None)
    again = told(*busy, decode(50, 1.06), decode(51, 81.0))
    assert (again.last_generate, again.latest and again.latest.generate) == (81.0, 81.0)
    same_second = told(*busy, decode(50, 1.06), decode(50, 82.0))
    assert same_second.latest is not None and same_second.latest.generate == 82.0


@pytest.mark.parametrize("cut", [True, False])
def test_the_first_rate_after_a_start_is_no_live_figure(cut: bool) -> None:
    start = [
        "[2026-07-30 13:34:58] INFO:     Application startup complete.",
        prefill(0, 7).replace("13:35:00", "13:34:59"),
        READY,
        prefill(0, 900, 4),
        prefill(0, 700, 4, running=2),
        decode(1, 0.03, running=4),
    ]

    def facts(*lines: str) -> LogFacts:
        chunks = [f"{line}\n".encode() for line in lines]
        parser = LogParser()
        for chunk in chunks if cut else [b"".join(chunks)]:
            parser.feed(chunk)
        return parser.facts()

    first = facts(*start)
    assert (first.ready, first.latest and first.latest.generate, first.last_generate) == (True, None, 0.03)
    second = facts(*start, decode(2, 88.0))
    assert second.latest is not None and second.latest.generate == 88.0
    excerpt = facts(READY, decode(1, 5.0))
    assert excerpt.latest is not None and excerpt.latest.generate == 5.0


def test_of_ranks_that_print_the_same_prefills_one_counts() -> None:
    lines = [prefill(1, 300).replace("TP0", f"PP{n} TP0") for n in (1, 0, 0, 1, 1)]
    facts = told(*lines)
    assert facts.latest is not None and facts.latest.prefill == 600.0


def test_one_sample_a_second() -> None:
    facts = told(prefill(1, 100, 100), prefill(1, 300, 100), decode(2, 10.0), decode(2, 20.0), decode(3, 30.0))
    assert [(s.prefill, s.generate, s.cache_hit) for s in facts.series] == [
        (400.0, None, 1 / 3),
        (None, 20.0, None),
        (None, 30.0, None),
    ]


def test_probes_are_neither_life_nor_load() -> None:
    before = told(decode(1, 10.0))
    probes = (
        prefill(9, 1),
        '[2026-07-30 13:35:09] INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 200 OK',
        '[2026-07-30 13:35:09] INFO:     127.0.0.1:5 - "GET /metrics HTTP/1.1" 200 OK',
        '[2026-07-30 13:35:09] INFO:     127.0.0.1:5 - "GET /healthz HTTP/1.1" 404 Not Found',
        '[2026-07-30 13:35:09] INFO:     127.0.0.1:5 - "HEAD / HTTP/1.1" 404 Not Found',
        '[2026-07-30 13:35:09] INFO:     127.0.0.1:5 - "GET /v1/loads?include=core HTTP/1.1" 200 OK',
        "[2026-07-30 13:35:09] Endpoint '/get_server_info' is deprecated and will be removed in a future version.",
    )
    after = told(decode(1, 10.0), *probes)
    assert (after.life, after.last_line, after.series) == (before.life, before.last_line, before.series)
    assert after.lines == before.lines + len(probes)
    assert told(decode(1, 10.0), prefill(9, 2)).life > before.life


@pytest.mark.parametrize(
    ("flags", "probes"),
    [
        ("page_size=64", True),
        ("page_size=128", False),
        ("tp_size=1", False),
        ("page_size=64, ple_offload_backend=1", False),
    ],
)
@pytest.mark.parametrize("ready", [True, False])
def test_probes_are_whole_pages_up_to_0_5_19(flags: str, probes: bool, ready: bool) -> None:
    start = (f"[2026-07-30 13:34:00] server_args=ServerArgs(model_path='m', {flags})", *([READY] if ready else []))
    before, after = (told(*start, decode(1, 10.0, running=2), *more, ready=False) for more in ((), (prefill(9, 64),)))
    assert (after.life == before.life, after.series == before.series) == (probes, probes)
    assert told(*start, decode(1, 10.0, running=2), prefill(9, 64, running=1), ready=False).life > before.life
    assert told(*start, decode(1, 10.0, running=2), prefill(9, 1), ready=False).life == before.life


def test_a_warm_up_request_is_no_traffic() -> None:
    start = "[2026-07-30 13:35:00] INFO:     Application startup complete."
    warming = told(start, prefill(1, 7), ready=False)
    assert (warming.ready, warming.stage) == (False, "warmup")
    assert told(prefill(1, 7), ready=False).stage == "warmup"
    assert told(prefill(1, 700), ready=False).ready
    assert told(start, decode(1, 5.0), ready=False).ready is False  # --decode-log-interval 1
    assert told(start, decode(1, 5.0, running=9), ready=False).ready


def test_retractions_and_failing_health_checks() -> None:
    retract = (
        "[2026-07-30 13:35:09 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_tokens_gained: 5"
    )
    health = "[2026-07-30 13:35:09] Health check failed. Server couldn't get a response from detokenizer."
    facts = told(decode(1, 5.0), retract, retract, health)
    assert (facts.retracted, facts.unhealthy, facts.fatal, len(facts.warnings)) == (4, True, False, 2)
    assert not told(health, decode(1, 5.0)).unhealthy


@pytest.mark.parametrize("ready", [True, False])
def test_figures_that_cannot_be_read_are_missing(ready: bool) -> None:
    line = (
        "[2026-07-30 13:35:09 TP0] Prefill batch, #new-seq: 3, #new-token: {}, #cached-token: {}, token usage: {}, "
        "#running-req: {}, #queue-req: {}, input throughput (token/s): {}"
    )
    start = () if not ready else (READY,)
    odd = told(*start, line.format("?", "?", "nan", -1, -2, "nan"), ready=False).latest
    assert odd == Sample(odd.at_local) if odd is not None else False
    none = told(*start, line.format(0, 0, "0.00", 0, 0, "0.00"), ready=False).latest
    assert none is not None and (none.prefill, none.running, none.queued, none.kv) == (0.0, 0, 0, 0.0)


def test_of_more_replicas_than_are_summed_it_is_said() -> None:
    all_ = told(*(decode(1, 1.0, ranks=f" DP{rank}") for rank in range(MOST)))
    more = told(*(decode(1, 1.0, ranks=f" DP{rank}") for rank in range(MOST + 2)))
    assert all_.latest == more.latest and all_.latest is not None and all_.latest.generate == float(MOST)
    assert all_.warnings == () and more.warnings == (f"figures are of {MOST} DP ranks; the log names more",)
