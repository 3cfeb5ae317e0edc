"""What SGLang answers by HTTP, per version: bytes in, figures out. Nothing here asks; ``live`` says what to ask.

Total: any bytes give values or ``None``. Answers hold keys and whole command lines: only the named figures are kept.
Rates of ``/server_info`` and ``/v1/loads`` are as old as the last decode line (an idle server keeps its last value), so
a counter that is asked twice is better where there is one: see ``rate``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tui.sglang.metrics import read_metrics
from tui.sglang.model import ModelFacts, Sample

__all__ = [
    "READY_PATHS",
    "ModelFacts",
    "Reading",
    "Sample",
    "model_facts",
    "rate",
    "read",
    "ready",
]

BODY_CAP = 8 * 1024 * 1024  # bytes of an answer that are read

# Best first; /ready from 0.5.20, /model_info from 0.5.6. The last one writes a warning into the log from then on.
READY_PATHS = ("/ready", "/model_info", "/get_model_info")


@dataclass(frozen=True, slots=True)
class Reading:
    """One answer with live figures. ``generated`` and ``prefilled`` are counters of tokens since the start, as the
    path ``source`` counts them."""

    sample: Sample
    source: str = ""
    generated: float | None = None
    prefilled: float | None = None
    facts: ModelFacts = field(default_factory=ModelFacts)


def ready(path: str, status: int) -> bool | None:
    """What the status of a readiness path says: ``None`` when it says nothing (no such path, not authorised).

    ``/health`` of 0.3.6 to 0.4.10, and of the workers of a multi-node server, is 200 whatever the server's state.
    """
    if status == 200:
        return None if path == "/health" else True
    return False if status == 503 else None


def read(path: str, body: bytes, at: float) -> Reading | None:
    """An answer of a path that ``live`` names as figures; ``None`` when it holds none."""
    body = body[:BODY_CAP]
    if path.startswith("/metrics"):
        return _of_metrics(body, at)
    answer = _object(body)
    if path.startswith("/v1/loads"):
        return _of_loads(answer, at)
    if path.startswith(("/server_info", "/get_server_info")):
        return _of_server_info(path, answer, at)
    if path.startswith("/get_load"):
        return _of_load(body, at)
    return None


def rate(before: Reading, now: Reading) -> Sample:
    """``now``'s figures with rates from the counters of both, tokens per second; a restarted counter gives none."""
    if before.source != now.source:
        return now.sample
    seconds = now.sample.at_local - before.sample.at_local
    return replace(
        now.sample,
        generate=_rate(before.generated, now.generated, seconds, now.sample.generate),
        prefill=_rate(before.prefilled, now.prefilled, seconds, now.sample.prefill),
    )


def _rate(before: float | None, now: float | None, seconds: float, otherwise: float | None) -> float | None:
    if before is None or now is None or seconds <= 0:
        return otherwise
    return (now - before) / seconds if now >= before else None


def model_facts(path: str, body: bytes) -> ModelFacts:
    """What ``/model_info``, ``/v1/models``, ``/server_info`` (and their older names) or ``/v1/loads`` say of it all."""
    return _facts(path, _object(body[:BODY_CAP]))


def _facts(path: str, answer: Mapping[str, object]) -> ModelFacts:
    if path.startswith("/v1/models"):
        first = next(_dicts(answer.get("data")), {})
        return ModelFacts(_text(first.get("id")), _count(first.get("max_model_len")))
    ranks = tuple(_dicts(answer.get("internal_states"))) or tuple(_dicts(answer.get("loads")))
    running = [
        _count(rank.get("effective_max_running_requests_per_dp", rank.get("max_running_requests"))) for rank in ranks
    ]
    known = [count for count in running if count is not None]
    tokens = answer.get("max_total_num_tokens", ranks[0].get("max_total_num_tokens") if ranks else None)
    return ModelFacts(
        _text(answer.get("served_model_name")) or _text(answer.get("model_path")),
        _count(answer.get("context_length")),
        _count(tokens),
        sum(known) if known else None,
        _text(answer.get("version")),
    )


def _of_loads(answer: Mapping[str, object], at: float) -> Reading | None:
    """``/v1/loads`` from 0.5.8: one entry per DP rank; its aggregate's throughput is a mean, so it is not used.

    Without ``--enable-metrics`` rates are 0; up to 0.5.19 each decode report writes 0 over the share of cache hits.
    """
    ranks = tuple(_dicts(answer.get("loads")))
    if not ranks:
        return None
    speculative = tuple(rank["speculative"] for rank in ranks if isinstance(rank.get("speculative"), dict))
    found = Sample(
        at,
        generate=_sum(ranks, "gen_throughput") or None,
        running=_whole_sum(ranks, "num_running_reqs"),
        queued=_whole_sum(ranks, "num_waiting_reqs"),
        kv=_most(ranks, "token_usage"),
        accept_len=_most(_dicts(list(speculative)), "accept_length") or None,
        accept_rate=_most(_dicts(list(speculative)), "accept_rate") or None,
        cache_hit=_most(ranks, "cache_hit_rate") or None,
    )
    generated, prefilled = _generated(ranks), _sum(ranks, "total_prefill_uncached_tokens")
    return Reading(found, "/v1/loads", generated, prefilled, _facts("/v1/loads", answer))


def _generated(ranks: tuple[Mapping[str, object], ...]) -> float | None:
    """Tokens generated since the start: the sixth sum over decode steps, from 0.5.17; none before the first step."""
    if not any("decode_moments" in rank for rank in ranks):
        return None
    sums = [rank["decode_moments"] for rank in ranks if rank.get("decode_moments") is not None]
    numbers = [_number(each[5]) if isinstance(each, list) and len(each) > 5 else None for each in sums]
    known = [number for number in numbers if number is not None]
    return _number(sum(known)) if len(known) == len(sums) else None


def _of_server_info(path: str, answer: Mapping[str, object], at: float) -> Reading | None:
    """``/server_info``: ``internal_states`` per DP rank from 0.4.6, flat in 0.4.4 and 0.4.5, no live part before."""
    ranks = tuple(_dicts(answer.get("internal_states"))) or (answer,)
    generate, facts = _sum(ranks, "last_gen_throughput"), _facts(path, answer)
    if generate is None and facts.version is None and facts.max_total_num_tokens is None:
        return None
    found = Sample(at, generate=generate, accept_len=_most(ranks, "avg_spec_accept_length"))
    return Reading(found, path, facts=facts)


def _of_load(body: bytes, at: float) -> Reading | None:
    """``/get_load`` (0.4.7 to 0.5.20): a list per DP rank; a bare number of tokens before 0.5.3 says nothing here."""
    ranks = tuple(_dicts(_json(body)))
    if not ranks:
        return None
    waiting, total = _whole_sum(ranks, "num_waiting_reqs"), _whole_sum(ranks, "num_reqs")
    running = total - (waiting or 0) if total is not None else None
    return Reading(Sample(at, running=running, queued=waiting), "/get_load")


def _of_metrics(body: bytes, at: float) -> Reading | None:
    found = read_metrics(body)
    if found is None:
        return None
    realtime = found.counter("realtime_tokens_total", "mode")
    cached, prompt = found.total("cached_tokens_total"), found.total("prompt_tokens_total")
    generated = realtime.get("decode") if realtime else found.total("generation_tokens_total")
    prefilled = realtime.get("prefill_compute") if realtime else _less(prompt, cached)
    usage = found.gauge("full_token_usage") if found.has("mamba_usage") else found.gauge("token_usage")
    current = Sample(
        at,
        generate=found.summed("gen_throughput"),
        running=_count(found.summed("num_running_reqs")),
        queued=_count(found.summed("num_queue_reqs")),
        kv=usage if usage is not None else found.gauge("token_usage"),
        mamba=found.gauge("mamba_usage") or None,  # 0 also where the model has none
        swa=found.gauge("swa_token_usage") or None,
        accept_len=found.gauge("spec_accept_length") or None,
        accept_rate=found.gauge("spec_accept_rate") or None,
        cache_hit=min(1.0, cached / prompt) if cached is not None and prompt else None,
    )
    facts = ModelFacts(max_total_num_tokens=_count(found.summed("max_total_num_tokens")))
    return Reading(current, "/metrics", generated, prefilled, facts)


def _less(all_: float | None, part: float | None) -> float | None:
    return None if all_ is None else all_ - (part or 0.0)


def _json(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _object(body: bytes) -> dict[str, object]:
    answer = _json(body)
    return answer if isinstance(answer, dict) else {}


def _dicts(value: object) -> Iterator[dict[str, object]]:
    if isinstance(value, list):
        yield from (each for each in value[:1024] if isinstance(each, dict))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _count(value: object) -> int | None:
    number = _number(value)
    return round(number) if number is not None and number >= 0 else None


def _text(value: object) -> str | None:
    return value[:400] if isinstance(value, str) and value else None


def _numbers(ranks: Iterator[dict[str, object]] | tuple[Mapping[str, object], ...], key: str) -> list[float]:
    return [number for rank in ranks if (number := _number(rank.get(key))) is not None]


def _sum(ranks: tuple[Mapping[str, object], ...], key: str) -> float | None:
    numbers = _numbers(ranks, key)
    return _number(sum(numbers)) if numbers else None


def _whole_sum(ranks: tuple[Mapping[str, object], ...], key: str) -> int | None:
    return _count(_sum(ranks, key))


def _most(ranks: Iterator[dict[str, object]] | tuple[Mapping[str, object], ...], key: str) -> float | None:
    return max(_numbers(ranks, key), default=None)
