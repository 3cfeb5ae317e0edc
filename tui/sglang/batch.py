"""Prefill and decode lines → live figures: the newest per DP rank, summed, and one sample per second.

Fields come in any order and differ between versions, so a line is read as ``key: value`` pairs. One rank of each DP
replica prints for all (or, with PP and ``--enable-metrics-for-all-schedulers``, several print the same tokens): sums
run over DP ranks, and within one the newest line counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from tui.sglang.model import Sample

SERIES = 600  # seconds kept
IDLE_GAP = 10.0  # seconds without a decode line after which the next rate holds idle time
SUMMED_WITHIN = 30.0  # seconds that a DP rank's newest decode line may be older than the newest of all

_DP = re.compile(rb"\bDP(\d+)\b")
_PAIR = re.compile(rb"([#A-Za-z][^:,]{0,60}): {0,2}(-?\d+(?:\.\d+)?)%?(?=[,\s]|$)")

# the key as printed → the name here; of several that a line may hold, the last found counts
_FIELDS: Mapping[bytes, str] = {
    b"#running-req": "running",
    b"#queue-req": "queued",
    b"token usage": "kv",
    b"full token usage": "kv",
    b"gpu token usage": "kv",
    b"mamba usage": "mamba",
    b"swa token usage": "swa",
    b"accept len": "accept_len",
    b"accept rate": "accept_rate",
    b"gen throughput (token/s)": "generate",
    b"input throughput (token/s)": "prefill",
    b"#new-seq": "new_seq",
    b"#new-token": "new_token",
    b"#cached-token": "cached_token",
}


@dataclass(slots=True)
class Replica:
    """The newest figures of one DP rank. Times are local seconds; ``None`` where nothing was printed."""

    decoded: float | None = None  # time of its newest decode line
    interval: float = 0.0  # seconds between its last two decode lines
    seen: float = 0.0
    last: float | None = None  # tokens/s, as last printed
    generate: float | None = None  # the same without the first line after idleness
    prefill: float | None = None
    running: int | None = None
    queued: int | None = None
    kv: float | None = None
    mamba: float | None = None
    swa: float | None = None
    accept_len: float | None = None
    accept_rate: float | None = None
    new: int = 0  # tokens of this second's prefills
    cached: int = 0
    second: float = -1.0


def pairs(body: bytes) -> dict[str, float]:
    """The known fields of a batch line, by our names."""
    return {name: float(value) for key, value in _PAIR.findall(body) if (name := _FIELDS.get(key.lstrip())) is not None}


def is_warmup(values: Mapping[str, float]) -> bool:
    """Whether a prefill looks like the server's own first request: one short prompt (per DP rank) on an idle server."""
    return (
        values.get("new_token", 0.0) <= 32
        and values.get("cached_token", 0.0) == 0
        and values.get("running", 0.0) == 0
        and values.get("queued", 0.0) == 0
    )


def is_health_check(values: Mapping[str, float]) -> bool:
    """Whether a prefill is a ``/health`` request: one token, nothing cached."""
    return values.get("new_token") == 1 and values.get("cached_token") == 0 and values.get("new_seq", 1.0) == 1


@dataclass(slots=True)
class Batches:
    """All DP ranks, and the series."""

    replicas: dict[bytes, Replica] = field(default_factory=dict)
    series: list[Sample] = field(default_factory=list)
    now: float = 0.0  # the newest second
    speculates: bool = False

    def copy(self) -> Batches:
        return Batches({dp: replace(r) for dp, r in self.replicas.items()}, self.series[:], self.now, self.speculates)

    def take(self, decode: bool, ranks: bytes, time: float | None, values: Mapping[str, float]) -> None:
        """One batch line."""
        found = _DP.search(ranks) if ranks else None
        dp = found[1] if found else b""
        replica = self.replicas.get(dp)
        if replica is None:
            if len(self.replicas) >= 4096:
                return
            replica = self.replicas[dp] = Replica()
        at = self._at(time)
        if decode:
            _decoded(replica, at, values)
        else:
            _prefilled(replica, at, values)
        _common(replica, at, values)
        self._sample(at)

    def _at(self, time: float | None) -> float:
        at = self.now if time is None else float(int(time))
        if self.now - 5 <= at < self.now:
            return self.now  # ranks write at their own pace
        if at < self.now:
            self.series.clear()  # the clock was set back
            for replica in self.replicas.values():
                replica.decoded = None
        self.now = at
        return at

    def _sample(self, at: float) -> None:
        sample = self.combined(at)
        if self.series and self.series[-1].at_local == at:
            self.series[-1] = sample
        else:
            self.series.append(sample)
            if len(self.series) > SERIES + 60:
                del self.series[:-SERIES]

    def combined(self, at: float) -> Sample:
        """The sum over DP ranks at second ``at``; a rank that has long said nothing adds no tokens."""
        active = [r for r in self.replicas.values() if r.decoded is not None and _fresh(r, at)]
        lately = [r for r in self.replicas.values() if at - r.seen <= max(SUMMED_WITHIN, 3 * r.interval)]
        second = [r for r in lately if r.second == at]
        new, cached = sum(r.new for r in second), sum(r.cached for r in second)
        return Sample(
            at_local=at,
            generate=_total(r.generate for r in active),
            prefill=_total(r.prefill for r in second),
            running=_whole(r.running for r in lately),
            queued=_whole(r.queued for r in lately),
            kv=_largest(lately, lambda r: r.kv),
            mamba=_largest(lately, lambda r: r.mamba),
            swa=_largest(lately, lambda r: r.swa),
            accept_len=_largest(active, lambda r: r.accept_len),
            accept_rate=_largest(active, lambda r: r.accept_rate),
            cache_hit=cached / (new + cached) if new + cached else None,
        )

    def latest(self) -> Sample | None:
        """The newest figures; rates and hits that the newest second does not tell are the newest that were told."""
        if not self.series:
            return None
        sample, lately = self.series[-1], self.series[-60:]
        if sample.prefill is not None:
            return sample
        told = next((s for s in reversed(lately) if s.prefill is not None), sample)
        return replace(sample, prefill=told.prefill, cache_hit=told.cache_hit)

    def last_printed(self) -> float | None:
        """Tokens per second as last printed, summed over the DP ranks that were at work then."""
        newest = max((r.decoded for r in self.replicas.values() if r.decoded is not None), default=None)
        return None if newest is None else _total(r.last for r in self.replicas.values() if _fresh(r, newest))


def _decoded(replica: Replica, at: float, values: Mapping[str, float]) -> None:
    rate = values.get("generate")
    gap = None if replica.decoded is None else at - replica.decoded
    replica.last = rate
    if gap is None or gap > max(IDLE_GAP, 3 * replica.interval):
        # the rate spans the idle time before it; it is kept only while nothing better is known
        replica.generate = None if gap is not None or rate is None else rate
        replica.interval = 0.0
    else:
        replica.generate = rate
        replica.interval = gap if gap else replica.interval
    replica.decoded = at
    replica.accept_len = values.get("accept_len", replica.accept_len)
    replica.accept_rate = values.get("accept_rate", replica.accept_rate)


def _prefilled(replica: Replica, at: float, values: Mapping[str, float]) -> None:
    if replica.second != at:
        replica.new = replica.cached = 0
        replica.second = at
    replica.new += int(values.get("new_token", 0))
    replica.cached += int(values.get("cached_token", 0))
    replica.prefill = values.get("prefill", float(replica.new))


def _common(replica: Replica, at: float, values: Mapping[str, float]) -> None:
    replica.seen = at
    if "running" in values:
        replica.running = int(values["running"])
    if "queued" in values:
        replica.queued = int(values["queued"])
    replica.kv = values.get("kv", replica.kv)
    replica.mamba = values.get("mamba", replica.mamba)
    replica.swa = values.get("swa", replica.swa)


def _fresh(replica: Replica, at: float) -> bool:
    return replica.decoded is not None and at - replica.decoded <= max(SUMMED_WITHIN, 3 * replica.interval)


def _total(values: Iterable[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return round(sum(known), 2) if known else None


def _whole(values: Iterable[float | None]) -> int | None:
    total = _total(values)
    return None if total is None else int(total)


def _largest(replicas: list[Replica], pick: Callable[[Replica], float | None]) -> float | None:
    return max((v for r in replicas if (v := pick(r)) is not None), default=None)
