"""What a simulated server answers, against the bodies of real servers of the same release."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.demo.running import running

HTTP = Path(__file__).parents[1] / "data" / "real" / "http"


def real(name: str) -> Any:
    return json.loads((HTTP / name).read_text())


@pytest.mark.parametrize("version", ["0.4.9.post6", "0.5.3", "0.5.9", "0.5.12", "0.5.20", "0.5.23"])
def test_bodies_have_the_keys_of_the_real_ones(version: str) -> None:
    stem = f"{version}_hybrid_qwen3_5" if version == "0.5.23" else f"{version}_llama"
    info = "model_info" if (HTTP / f"{stem}.model_info").exists() else "get_model_info"
    status = "server_info" if (HTTP / f"{stem}.server_info").exists() else "get_server_info"
    with running("--sglang-version", version, "--scenario", "plain") as server:
        server.ready()
        assert set(real(f"{stem}.{info}")) - {"embedding"} == set(server.get(f"/{info}"))
        assert set(real(f"{stem}.v1_models")["data"][0]) == set(server.get("/v1/models")["data"][0])
        ours, theirs = server.get(f"/{status}"), real(f"{stem}.{status}")
    assert set(ours) <= set(theirs)
    assert {key for key in set(theirs) - set(ours) if not key.startswith("_")} <= {
        "startup_time",
        "hicache_object_layout",
        "kv_events",
        "frontend",
        "launch_command",
    }
    inner, other = ours["internal_states"][0], theirs["internal_states"][0]
    assert set(inner["memory_usage"]) <= set(other["memory_usage"]) | {"cuda_graph"}
    assert {"last_gen_throughput", "memory_usage"} <= set(inner)


@pytest.mark.parametrize("name", ["0.5.20_llama.v1_loads", "0.5.23_hybrid_qwen3_5.v1_loads"])
def test_loads(name: str) -> None:
    with running("--sglang-version", name.split("_")[0], "--enable-metrics") as server:
        server.ready()
        ours = server.get("/v1/loads")
    assert set(ours["loads"][0]) <= set(real(name)["loads"][0])
    assert ours["loads"][0]["max_running_requests"] == 9


@pytest.mark.parametrize("version", ["0.4.9.post6", "0.5.12", "0.5.20", "0.5.23"])
def test_metrics_are_a_part_of_the_real_ones(version: str) -> None:
    stem = f"{version}_hybrid_hicache_metrics" if version == "0.5.23" else f"{version}_llama"
    theirs = set(re.findall(r"^sglang:\w+", (HTTP / f"{stem}.metrics.after_load").read_text(), re.MULTILINE))
    scenario = "hicache" if version == "0.5.23" else "plain"
    with running("--sglang-version", version, "--scenario", scenario, "--enable-metrics") as server:
        server.ready()
        status, body = server.ask("GET", "/metrics")
    ours = set(re.findall(r"^sglang:\w+", body.decode(), re.MULTILINE))
    assert status == 200
    assert len(ours) > 8
    assert ours <= theirs


def test_no_metrics_without_the_flag() -> None:
    with running() as server:
        server.ready()
        assert server.ask("GET", "/metrics")[0] == 404


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("/v1/completions", {"prompt": "a b c"}, lambda answer: answer["choices"][0]["text"]),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "hello"}]},
            lambda answer: answer["choices"][0]["message"]["content"],
        ),
    ],
)
def test_completions(path: str, body: dict[str, object], text: Any) -> None:
    with running() as server:
        server.ready()
        status, raw = server.ask("POST", path, body | {"max_tokens": 5})
        answer = json.loads(raw)
        server.read_until(re.escape(f'"POST {path} HTTP/1.1" 200 OK'))
    assert status == 200
    assert answer["usage"]["completion_tokens"] == 5
    assert len(text(answer).split()) == 5


def test_generate_takes_text_and_token_ids() -> None:
    with running() as server:
        server.ready()
        for body in ({"text": "hello"}, {"input_ids": [1, 2, 3]}):
            status, raw = server.ask("POST", "/generate", body | {"sampling_params": {"max_new_tokens": 3}})
            assert status == 200
            assert json.loads(raw)["meta_info"]["completion_tokens"] == 3


def test_a_stream_is_events_and_its_text_is_the_whole() -> None:
    with running() as server:
        server.ready()
        _, whole = server.ask("POST", "/v1/completions", {"prompt": "x", "max_tokens": 6})
        _, stream = server.ask("POST", "/v1/completions", {"prompt": "x", "max_tokens": 6, "stream": True})
    *events, last = [line.removeprefix("data: ") for line in stream.decode().split("\n\n") if line]
    assert last == "[DONE]"
    pieces = [json.loads(event) for event in events]
    assert "".join(piece["choices"][0]["text"] for piece in pieces) == json.loads(whole)["choices"][0]["text"]
    assert pieces[-1]["usage"]["completion_tokens"] == 6


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/completions", {}, 400),
        ("POST", "/v1/completions", {"prompt": "x", "max_tokens": 0}, 400),
        ("POST", "/v1/completions", [1], 400),
        ("GET", "/nope", None, 404),
        ("GET", "/ready", None, 404),  # not before 0.5.20
    ],
)
def test_mistakes_of_the_client(method: str, path: str, body: object, status: int) -> None:
    with running() as server:
        server.ready()
        assert server.ask(method, path, body)[0] == status
        assert server.ask("GET", "/model_info")[0] == 200


def test_health_generates_a_token_and_ready_does_not() -> None:
    with running("--sglang-version", "0.5.23") as server:
        server.ready()
        assert server.ask("GET", "/ready")[0] == 200
        assert "#new-token: 1," not in server.log
        assert server.ask("GET", "/health")[0] == 200
        server.read_until("#new-token: 1,")


def test_a_key_is_asked_for() -> None:
    with running("--api-key", "s3cret") as server:
        server.ready()
        assert server.ask("GET", "/v1/models")[0] == 401
        assert server.ask("GET", "/v1/models", Authorization="Bearer s3cret")[0] == 200
        assert server.ask("GET", "/health")[0] == 200


def test_deprecated_endpoints_warn_in_the_log() -> None:
    with running("--sglang-version", "0.5.12") as server:
        server.ready()
        server.get("/get_server_info")
        server.read_until("Endpoint '/get_server_info' is deprecated")
