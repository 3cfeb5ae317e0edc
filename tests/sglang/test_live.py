"""Which paths are asked for live figures, release by release, and what their answers amount to together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tui.sglang import http, live
from tui.sglang.http import Reading
from tui.sglang.model import ModelFacts, Sample

REAL = Path(__file__).parent.parent / "data" / "real" / "http"
# The paths that servers of a release have, by their sources; /metrics only with --enable-metrics
HAVE = {
    "0.3.6": ("/get_server_args",),
    "0.4.1": ("/get_server_info",),
    "0.4.9": ("/get_server_info", "/get_load"),
    "0.5.6": ("/get_server_info", "/server_info", "/get_load"),
    "0.5.8": ("/get_server_info", "/server_info", "/get_load", "/v1/loads"),
    "0.5.23": ("/get_server_info", "/server_info", "/v1/loads"),
}


def asked(have: tuple[str, ...], version: str | None, counted_by: tuple[str, ...] = ()) -> list[str]:
    """The paths of one round, in order."""
    statuses: dict[str, int] = {}
    while path := live.next_path(version, statuses, any(statuses.get(each) == 200 for each in counted_by)):
        statuses[path] = 200 if path in have else 404
        assert len(statuses) < 9
    return list(statuses)


@pytest.mark.parametrize("version", HAVE)
@pytest.mark.parametrize("known", [True, False])
def test_no_call_floods_the_log_or_generates_tokens(version: str, known: bool) -> None:
    told = version if known else None
    for have in (HAVE[version], ("/metrics", *HAVE[version])):
        paths = asked(have, told)
        assert not any("health" in path for path in paths)
        assert not ("/server_info" in have and "/get_server_info" in paths), "deprecated: a warning in the log per call"
        if known:
            assert all(path in have or path == "/metrics" for path in paths if version != "0.3.6")


@pytest.mark.parametrize(
    ("version", "counted_by", "paths"),
    [
        ("0.4.6.post5", (), ["/metrics", "/get_server_info"]),
        ("0.5.5", (), ["/metrics", "/get_load", "/get_server_info"]),
        ("0.5.7", (), ["/metrics", "/get_load", "/server_info"]),
        ("0.5.12", (), ["/metrics", "/v1/loads", "/server_info"]),
        ("0.5.17", ("/v1/loads",), ["/metrics", "/v1/loads"]),
    ],
)
def test_the_best_sources_of_a_release(version: str, counted_by: tuple[str, ...], paths: list[str]) -> None:
    every = ("/metrics", "/v1/loads", "/get_load", "/server_info", "/get_server_info")
    assert asked(every[1:], version, counted_by) == paths
    assert asked(every, version, ("/metrics",)) == ["/metrics"]


def test_what_a_server_does_not_have_is_not_asked_again() -> None:
    assert live.next_path("0.5.12", {"/metrics": 404}) == "/v1/loads"
    assert live.next_path(None, {"/metrics": 404, "/v1/loads": 500}) == "/server_info"
    assert live.next_path(None, {"/metrics": 404, "/v1/loads": 401, "/server_info": 401}) is None


def loads(running: int, rate: float, generated: float | None = None, **more: object) -> bytes:
    moments = {} if generated is None else {"decode_moments": [9.0, 9.0, 9.0, 9.0, 9.0, generated]}
    rank = {"dp_rank": 0, "num_running_reqs": running, "num_waiting_reqs": 1, "gen_throughput": rate, **moments, **more}
    return json.dumps({"version": "0.5.12", "loads": [rank, {**rank, "dp_rank": 1}]}).encode()


def reading(at: float, **bodies: bytes) -> Reading:
    found = [http.read("/" + name.replace("v1_", "v1/"), body, at) for name, body in bodies.items()]
    result = live.merged(each for each in found if each is not None)
    assert result is not None
    return result


def info(rate: float) -> bytes:
    states = [{"last_gen_throughput": rate, "api_key": "sk-secret", "admin_api_key": "sk-secret"}] * 2
    return json.dumps({"version": "0.5.12", "api_key": "sk-secret", "internal_states": states}).encode()


def test_without_metrics_the_rate_is_that_of_the_last_decode_line_while_requests_run() -> None:
    busy = reading(1.0, v1_loads=loads(3, 0.0), server_info=info(50.5))
    assert busy.sample == Sample(1.0, generate=101.0, running=6, queued=2)
    idle = reading(1.0, v1_loads=loads(0, 0.0), server_info=info(50.5))
    assert (idle.sample.generate, idle.sample.running) == (0.0, 0)
    assert "secret" not in repr(busy)


def test_counters_of_loads_give_rates_and_restarts_none() -> None:
    before, now = (
        reading(at, v1_loads=loads(2, 0.0, generated, total_prefill_uncached_tokens=at * 7))
        for at, generated in ((10.0, 500.0), (20.0, 900.0))
    )
    assert before.sample.generate is None, "no rate is known yet, which is not 0"
    rates = http.rate(before, now)
    assert (rates.generate, rates.prefill) == (2 * 400 / 10, 2 * 70 / 10)
    assert http.rate(now, before).generate is None
    assert http.rate(reading(1.0, get_server_info=info(7.0)), now).generate is None, "counters of different paths"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            {"v1_loads": "0.5.23_llama_hicache_hits.v1_loads.after_load"},
            {"running": 0, "queued": 0, "kv": 0.0, "version": "0.5.23", "tokens": 2048},
        ),
        (
            {"get_load": "0.5.3_llama.get_load", "get_server_info": "0.5.3_llama.get_server_info"},
            {"running": 0, "queued": 0, "generate": 0.0, "version": "0.5.3", "tokens": 4096},
        ),
        (
            {"get_load": "0.5.9_llama.get_load", "server_info": "0.5.9_llama.server_info.after_load"},
            {"running": 0, "queued": 0, "generate": 0.0, "version": "0.5.9", "tokens": 4096},
        ),
        (
            {"server_info": "0.5.12_llama.server_info.after_load"},
            {"running": None, "generate": 365.22448586964157, "version": "0.5.12", "tokens": 4096},
        ),
        (
            {"v1_loads": "0.5.23_tp2.v1_loads", "server_info": "0.5.23_tp2.server_info.after_load"},
            {"running": 0, "queued": 0, "version": "0.5.23", "tokens": 4096},
        ),
    ],
)
def test_answers_of_real_servers(names: Mapping[str, str], expected: Mapping[str, object]) -> None:
    found = reading(5.0, **{path: (REAL / name).read_bytes() for path, name in names.items()})
    told = {
        "running": found.sample.running,
        "queued": found.sample.queued,
        "generate": found.sample.generate,
        "kv": found.sample.kv,
        "version": found.facts.version,
        "tokens": found.facts.max_total_num_tokens,
    }
    assert {name: told[name] for name in expected} == dict(expected)


INFOS = sorted(path for path in REAL.iterdir() if "server_info" in path.name)


@pytest.mark.parametrize("file", INFOS, ids=lambda path: path.name)
def test_no_answer_gives_away_a_key(file: Path) -> None:
    answer = json.loads(file.read_bytes())
    assert "api_key" in answer
    for holder in (answer, *answer["internal_states"]):
        holder.update(api_key="sk-secret", admin_api_key="sk-secret", launch_command="serve --api-key sk-secret")
    body = json.dumps(answer).encode()
    found = http.read("/server_info", body, 0.0), http.model_facts("/server_info", body)
    assert found[0] is not None and found[0].facts.version == answer["version"]
    assert "sk-secret" not in repr(found)


def test_the_first_answer_that_tells_counts() -> None:
    first = Reading(Sample(1.0, running=1), facts=ModelFacts(version="0.5.12"))
    second = Reading(Sample(1.0, running=9, queued=2), facts=ModelFacts(context_len=10, version="x"))
    both = live.merged([first, second])
    assert both is not None
    assert (both.sample.running, both.sample.queued, both.facts) == (1, 2, ModelFacts(context_len=10, version="0.5.12"))
    assert live.merged([]) is None
