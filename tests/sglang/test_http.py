"""HTTP answers of real servers, per version, and of nobody."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.sglang import http

REAL = Path(__file__).parent.parent / "data" / "real" / "http"
PATHS = ("/metrics", "/v1/loads", "/server_info", "/get_server_info", "/get_load", "/model_info", "/v1/models", "/x")


def body(name: str) -> bytes:
    return (REAL / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "generate", "running", "generated", "prefilled"),
    [
        ("0.4.9.post6_llama.metrics.after_load", 265.36240161736185, 1, 4284, 1933 - 625),
        ("0.5.1_llama.metrics.after_load", 577.5468601985505, 0, 4284, 1933 - 627),
        ("0.5.9_llama.metrics.after_load", 417.72013509043506, 1, 4288, 1312),
        ("0.5.20_llama.metrics.after_load", 0.0, 0, 4288, 1311),
        ("0.5.23_hybrid_hicache_metrics.metrics.after_load", 46.15955539845284, 0, 4411, 5015),
    ],
)
def test_metrics(name: str, generate: float, running: int, generated: float, prefilled: float) -> None:
    reading = http.read("/metrics", body(name), 10.0)
    assert reading is not None
    assert (reading.sample.generate, reading.sample.running) == (generate, running)
    assert (reading.generated, reading.prefilled) == (generated, prefilled)


def test_metrics_of_a_hybrid_model() -> None:
    reading = http.read("/metrics", body("0.5.23_hybrid_hicache_metrics.metrics.after_load"), 10.0)
    assert reading is not None
    assert (reading.sample.kv, reading.sample.mamba) == (0.1162109375, 0.125)
    assert reading.sample.accept_len is None
    assert reading.facts.max_total_num_tokens == 2048


def test_rates_are_differences_of_counters() -> None:
    before = http.read("/metrics", body("0.5.23_llama_hicache_metrics.metrics"), 10.0)
    after = body("0.5.23_llama_hicache_metrics.metrics.after_load")
    assert before is not None
    now = http.read("/metrics", after, 20.0)
    assert now is not None
    found = http.rate(before, now)
    assert found.generate == (4250 - 7) / 10
    assert found.prefill == (1312 - 26) / 10
    restarted = http.read("/metrics", body("0.5.23_llama_hicache_metrics.metrics"), 30.0)
    later = http.read("/metrics", after, 20.0)
    assert restarted is not None and later is not None
    assert http.rate(later, restarted).generate is None


def test_dp_ranks_are_summed_and_tp_ranks_are_not() -> None:
    labels = [f'{{dp_rank="{dp}",tp_rank="{tp}"}}' for dp in (0, 1) for tp in (0, 1)]
    lines = [f"sglang:gen_throughput{each} 100.5" for each in labels]
    lines += [f"sglang:num_running_reqs{each} 3" for each in labels]
    reading = http.read("/metrics", "\n".join(lines).encode(), 0.0)
    assert reading is not None
    assert (reading.sample.generate, reading.sample.running) == (201.0, 6)


def test_loads() -> None:
    reading = http.read("/v1/loads", body("0.5.23_hybrid_hicache_metrics.v1_loads.after_load"), 1.0)
    assert reading is not None
    assert (reading.sample.generate, reading.sample.queued, reading.sample.cache_hit) == (46.16, 0, 0.9832)
    assert (reading.facts.version, reading.facts.max_total_num_tokens) == ("0.5.23", 2048)
    two = {
        "aggregate": {"avg_throughput": 50},
        "loads": [{"gen_throughput": 40}, {"gen_throughput": 60, "token_usage": 0.5}],
    }
    reading = http.read("/v1/loads", json.dumps(two).encode(), 1.0)
    assert reading is not None
    assert (reading.sample.generate, reading.sample.kv, reading.sample.running) == (100, 0.5, None)


@pytest.mark.parametrize(
    ("name", "generate", "version"),
    [
        ("0.4.9.post6_llama.get_server_info", 0.0, "0.4.9.post6"),
        ("0.5.12_llama.server_info.after_load", 365.22448586964157, "0.5.12"),
        ("0.5.20_llama.server_info.after_load", 279.197992041488, "0.5.20"),
    ],
)
def test_server_info(name: str, generate: float, version: str) -> None:
    reading = http.read("/server_info", body(name), 1.0)
    assert reading is not None
    assert (reading.sample.generate, reading.facts.version) == (generate, version)
    assert reading.facts.max_total_num_tokens == 4096


def test_flat_server_info_of_0_4_4() -> None:
    answer = {"last_gen_throughput": 12.5, "avg_spec_accept_length": 2.5, "version": "0.4.4", "api_key": "sk-secret"}
    reading = http.read("/get_server_info", json.dumps(answer).encode(), 1.0)
    assert reading is not None
    assert (reading.sample.generate, reading.sample.accept_len) == (12.5, 2.5)
    assert "secret" not in repr(reading)


def test_get_load_counts_the_waiting_apart() -> None:
    answer = [
        {"dp_rank": 0, "num_reqs": 7, "num_waiting_reqs": 2},
        {"dp_rank": 1, "num_reqs": 4, "num_waiting_reqs": 0},
    ]
    reading = http.read("/get_load", json.dumps(answer).encode(), 1.0)
    assert reading is not None
    assert (reading.sample.running, reading.sample.queued) == (9, 2)
    assert http.read("/get_load", b'{"load": 12}', 1.0) is None


def test_model_facts() -> None:
    assert http.model_facts("/v1/models", body("0.5.23_llama_basic.v1_models")) == http.ModelFacts(
        "/data/models/tiny-llama", 4096
    )
    assert (
        http.model_facts("/get_model_info", body("0.4.9.post6_llama.get_model_info")).model == "/data/models/tiny-llama"
    )
    found = http.model_facts("/server_info", body("0.5.23_hybrid_hicache_metrics.server_info.after_load"))
    assert (found.max_running_requests, found.max_total_num_tokens, found.version) == (8, 2048, "0.5.23")


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/ready", 200, True),
        ("/ready", 503, False),
        ("/ready", 404, None),
        ("/model_info", 401, None),
        ("/health", 200, None),
    ],
)
def test_ready(path: str, status: int, said: bool | None) -> None:
    assert http.ready(path, status) is said


@given(
    st.sampled_from(PATHS),
    st.one_of(
        st.binary(max_size=400),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            "loads",
                            "internal_states",
                            "speculative",
                            "gen_throughput",
                            "num_reqs",
                            "data",
                            "id",
                            "version",
                            "max_total_num_tokens",
                        ]
                    ),
                    inner,
                    max_size=5,
                )
            ),
            max_leaves=12,
        ).map(lambda value: json.dumps(value).encode()),
    ),
)
def test_any_answer_gives_values_or_none(path: str, answer: bytes) -> None:
    reading = http.read(path, answer, 1.0)
    http.model_facts(path, answer)
    if reading is not None:
        for each in fields(reading.sample):
            value = getattr(reading.sample, each.name)
            assert value is None or value == value


@given(
    st.lists(
        st.one_of(
            st.text(max_size=40),
            st.sampled_from(
                ["sglang:gen_throughput", "sglang:realtime_tokens_total{mode=", 'sglang:token_usage{a="b"}']
            ).flatmap(lambda name: st.text(max_size=20).map(lambda rest: name + rest)),
        ),
        max_size=6,
    )
)
def test_any_metrics_text(lines: list[str]) -> None:
    http.read("/metrics", "\n".join(lines).encode("utf-8", "surrogatepass"), 1.0)
