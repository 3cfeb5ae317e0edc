"""SGLang's Prometheus text as figures: summed over DP ranks, and never over TP, PP or EP ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PREFIX = "sglang:"
SERIES_CAP = 50_000  # lines of a body that are read

_WANTED = frozenset(
    {
        "gen_throughput",
        "realtime_tokens_total",
        "generation_tokens_total",
        "prompt_tokens_total",
        "cached_tokens_total",
        "num_running_reqs",
        "num_queue_reqs",
        "token_usage",
        "full_token_usage",
        "mamba_usage",
        "swa_token_usage",
        "spec_accept_length",
        "spec_accept_rate",
        "max_total_num_tokens",
    }
)


@dataclass(frozen=True, slots=True)
class Metrics:
    """The wanted series of one scrape: name → (labels, value) of each finite value."""

    series: Mapping[str, tuple[tuple[Mapping[str, str], float], ...]]

    def has(self, name: str) -> bool:
        return name in self.series

    def gauge(self, name: str) -> float | None:
        """The largest value of any rank: for usages and lengths."""
        return max((value for _, value in self.series.get(name, ())), default=None)

    def summed(self, name: str) -> float | None:
        """Summed over DP ranks; of ranks that share one, the largest."""
        return self._by_dp(self.series.get(name, ()))

    def total(self, name: str) -> float | None:
        """A counter of the main process, where a second series may count the same by source (``cache_source``)."""
        rows = self.series.get(name, ())
        told = [row for row in rows if row[0].get("cache_source") == "total"]
        rows = tuple(told) if told else rows
        return self._finite(sum(value for _, value in rows)) if rows else None

    def counter(self, name: str, label: str) -> dict[str, float]:
        """A counter per value of ``label``, each summed over DP ranks."""
        rows = self.series.get(name, ())
        sums = {
            each: self._by_dp(row for row in rows if row[0].get(label) == each)
            for each in {r[0].get(label, "") for r in rows}
        }
        return {each: value for each, value in sums.items() if value is not None}

    def _by_dp(self, rows: Iterable[tuple[Mapping[str, str], float]]) -> float | None:
        largest: dict[str, float] = {}
        for labels, value in rows:
            rank = labels.get("dp_rank", "")
            largest[rank] = max(value, largest.get(rank, value))
        return self._finite(sum(largest.values())) if largest else None

    @staticmethod
    def _finite(value: float) -> float | None:
        return value if math.isfinite(value) else None


def read_metrics(body: bytes) -> Metrics | None:
    """The wanted series of a scrape; ``None`` when it has none of SGLang's. Broken lines are passed over."""
    from prometheus_client.parser import text_string_to_metric_families  # loads in 40 ms: only where it is asked for

    series: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    wanted = [line for line in body.decode("utf-8", "replace").split("\n")[:SERIES_CAP] if _name(line) in _WANTED]
    for line in wanted:
        try:
            samples = [each for family in text_string_to_metric_families(line + "\n") for each in family.samples]
        except (ValueError, IndexError, KeyError, TypeError):
            continue
        for each in samples:
            if math.isfinite(each.value):
                series.setdefault(each.name.removeprefix(PREFIX), []).append((each.labels, each.value))
    return Metrics({name: tuple(rows) for name, rows in series.items()}) if series else None


def _name(line: str) -> str:
    return line[len(PREFIX) :].split("{", 1)[0].split(" ", 1)[0] if line.startswith(PREFIX) else ""
