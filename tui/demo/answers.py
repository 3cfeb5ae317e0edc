"""The bodies of a simulated server's answers about itself, in the shapes of its release."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tui.demo.arguments import Options
from tui.demo.sizes import GIB, QWEN, host_slots, host_tokens


@dataclass
class Figures:
    """The newest figures of the engine, and counts since the start."""

    running: int = 0
    queued: int = 0
    used: int = 0
    states: int = 0
    rate: float = 0.0
    accept_len: float = 0.0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    requests: int = 0
    began: float = field(default_factory=time.time)


def model_info(options: Options) -> dict[str, object]:
    since = options.dialect.since
    info: dict[str, object] = {
        "model_path": options.model,
        "tokenizer_path": options.flags["tokenizer_path"],
        "is_generation": True,
        "preferred_sampling_params": None,
    }
    if since("0.5.1"):
        info["weight_version"] = "default"
    if since("0.5.6"):
        info |= {"has_image_understanding": True, "has_audio_understanding": False}
        info |= {"model_type": "qwen3_5", "architectures": [QWEN.type]}
    if since("0.5.20"):
        info |= {"served_model_name": options.flags["served_model_name"], "load_format": "auto"}
        info |= {"reasoning_parser": None, "tool_call_parser": None}
    if since("0.5.23"):
        info["disaggregation_mode"] = "null"
    return info


def models(options: Options, figures: Figures) -> dict[str, object]:
    card: dict[str, object] = {
        "id": options.flags["served_model_name"],
        "object": "model",
        "created": int(figures.began),
        "owned_by": "sglang",
        "root": options.flags["served_model_name"],
        "max_model_len": QWEN.context,
    }
    if options.dialect.since("0.5.9"):
        card["parent"] = None
    return {"object": "list", "data": [card]}


def server_info(options: Options, figures: Figures) -> dict[str, object]:
    flags = dict(options.flags)
    state: dict[str, object] = flags | {
        "last_gen_throughput": figures.rate,
        "memory_usage": _memory_usage(options),
    }
    if figures.accept_len:
        state["avg_spec_accept_length"] = figures.accept_len
    if options.dialect.since("0.5.9"):
        state["effective_max_running_requests_per_dp"] = options.scenario.running
    if not options.dialect.since("0.5.3"):
        state["load"] = figures.used
    return flags | {
        "internal_states": [state],
        "status": "ready",
        "max_total_num_tokens": options.scenario.tokens,
        "max_req_input_len": options.scenario.tokens - 6,
        "version": options.dialect.version,
    }


def _memory_usage(options: Options) -> dict[str, object]:
    usage: dict[str, object] = {
        "weight": round(QWEN.weights / GIB, 2),
        "kvcache": round(options.scenario.tokens * QWEN.kv_per_token / GIB, 2),
        "token_capacity": options.scenario.tokens,
    }
    if options.dialect.since("0.5.20"):
        return usage | {"startup_available": 94.97, "token_capacity_swa": None, "graph": {"decode": 1.42}}
    return usage | {"graph" if options.dialect.since("0.5.2") else "cuda_graph": 1.42}


def loads(options: Options, figures: Figures) -> dict[str, object]:
    """``GET /v1/loads``. ``gen_throughput`` is 0 without ``--enable-metrics``, as in SGLang."""
    rate = figures.rate if options.flags["enable_metrics"] else 0.0
    usage = figures.used / options.scenario.tokens
    load: dict[str, object] = {
        "timestamp": time.time(),
        "dp_rank": 0,
        "num_running_reqs": figures.running,
        "num_waiting_reqs": figures.queued,
        "num_used_tokens": figures.used,
        "max_total_num_tokens": options.scenario.tokens,
        "max_running_requests": options.scenario.running,
        "token_usage": round(usage, 4),
        "gen_throughput": round(rate, 2),
        "cache_hit_rate": round(figures.cached_tokens / max(1, figures.prompt_tokens), 4),
        "utilization": round(figures.running / options.scenario.running, 4),
        "memory": {
            "weight_gb": round(QWEN.weights / GIB, 3),
            "kv_cache_gb": round(options.scenario.tokens * QWEN.kv_per_token / GIB, 3),
            "graph_gb": 1.42,
            "token_capacity": options.scenario.tokens,
        },
        "queues": {"waiting": figures.queued, "grammar": 0, "paused": 0, "retracted": 0},
    }
    if figures.accept_len:
        load["speculative"] = {"accept_length": figures.accept_len, "accept_rate": (figures.accept_len - 1) / 3}
    answer: dict[str, object] = {
        "timestamp": datetime.now(UTC).isoformat(),
        "version": options.dialect.version,
        "loads": [load],
    }
    if not options.dialect.since("0.5.20"):
        answer["dp_rank_count"] = 1
        answer["aggregate"] = {
            "total_running_reqs": figures.running,
            "total_waiting_reqs": figures.queued,
            "total_reqs": figures.running + figures.queued,
            "avg_token_usage": round(usage, 4),
            "avg_throughput": round(rate, 2),
            "avg_utilization": load["utilization"],
        }
    return answer


def get_load(options: Options, figures: Figures) -> object:
    if not options.dialect.since("0.5.3"):
        return {"load": figures.used}
    return [
        {
            "dp_rank": None,
            "num_reqs": figures.running + figures.queued,
            "num_waiting_reqs": figures.queued,
            "num_tokens": figures.used,
        }
    ]


def metrics(options: Options, figures: Figures) -> str:
    """``GET /metrics``: Prometheus text, the metrics of the release that this server has figures for."""
    labels = f'{{model_name="{options.flags["served_model_name"]}"}}'
    rank = labels.replace("{", '{engine_type="unified",', 1).replace("}", ',pp_rank="0",tp_rank="0"}', 1)
    kv, mamba = options.host_pools
    rows: list[tuple[str, str, str, str, float]] = [  # name, type, since, labels, value
        ("num_running_reqs", "gauge", "0.3.6", rank, figures.running),
        ("num_queue_reqs", "gauge", "0.3.6", rank, figures.queued),
        ("num_used_tokens", "gauge", "0.3.6", rank, figures.used),
        ("token_usage", "gauge", "0.3.6", rank, figures.used / options.scenario.tokens),
        ("gen_throughput", "gauge", "0.3.6", rank, figures.rate),
        ("cache_hit_rate", "gauge", "0.3.6", rank, 0.0),
        ("spec_accept_length", "gauge", "0.4.3", rank, figures.accept_len),
        ("max_total_num_tokens", "gauge", "0.5.6", rank, options.scenario.tokens),
        ("mamba_usage", "gauge", "0.5.4.post3", rank, figures.states / options.scenario.slots),
        ("full_token_usage", "gauge", "0.5.10", rank, figures.used / options.scenario.tokens),
        ("prompt_tokens_total", "counter", "0.3.6", labels, figures.prompt_tokens),
        ("generation_tokens_total", "counter", "0.3.6", labels, figures.generated_tokens),
        ("cached_tokens_total", "counter", "0.4.4", labels, figures.cached_tokens),
        ("num_requests_total", "counter", "0.4.4", labels, figures.requests),
        (
            "realtime_tokens_total",
            "counter",
            "0.5.7",
            rank.replace("{", '{mode="decode",', 1),
            figures.generated_tokens,
        ),
    ]
    if kv:
        rows.append(("hicache_host_total_tokens", "gauge", "0.5.10", rank, host_tokens(kv, QWEN)))
        rows.append(("hicache_host_mamba_total_states", "gauge", "0.5.23", rank, host_slots(mamba, QWEN)))
    return "".join(
        f"# HELP sglang:{name} Simulated.\n# TYPE sglang:{name} {kind}\nsglang:{name}{tags} {float(value)}\n"
        for name, kind, since, tags, value in rows
        if options.dialect.since(since)
    )
