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
    printed_by: bytes = b""  # the rank whose prefills of this second are summed: others print the same ones
    warmed: bool = False  # its start-up's own first request is in the log


# The usual fields in the order in which they are printed: five times as fast as reading pairs
_DECODE = re.compile(
    rb"#running-req: (?P<running>\d+), #(?:full |gpu )?token: \d+, (?:full |gpu )?token usage: (?P<kv>[\d.]+), "
    rb"(?:#swa token: \d+, swa token usage: (?P<swa>[\d.]+), )?(?:mamba num: \d+, mamba usage: (?P<mamba>[\d.]+), )?"
    rb"(?:accept len: (?P<accept_len>[\d.]+), )?(?:accept rate: (?P<accept_rate>[\d.]+), )?"
    rb"(?:\w+ graph: \w+, )?gen throughput \(token/s\): (?P<generate>[\d.]+), #queue-req: (?P<queued>\d+)(?:, )?$"
)
_PREFILL = re.compile(
    rb"#new-seq: (?P<new_seq>\d+), #new-token: (?P<new_token>\d+), #cached-token: (?P<cached_token>\d+), "
    rb"(?:full )?token usage: (?P<kv>[\d.]+), (?:swa token usage: (?P<swa>[\d.]+), )?"
    rb"(?:mamba usage: (?P<mamba>[\d.]+), )?#running-req: (?P<running>\d+), "
    rb"#queue-req: (?P<queued>\d+)(?:, #pending-token: \d+)?"
    rb"(?:, \w+ graph: \w+)?"
    rb"(?:, input throughput \(token/s\): (?P<prefill>[\d.]+))?(?:, )?$"
)
_DECODED = tuple(_DECODE.groupindex)
_PREFILLED = tuple(_PREFILL.groupindex)


def values(decode: bool, body: bytes) -> dict[str, float]:
    """The known fields of a batch line, by our names."""
    found = (_DECODE if decode else _PREFILL).match(body)
    if found is None:
        return pairs(body)
    names = _DECODED if decode else _PREFILLED
    return _numbers(zip(names, found.groups(), strict=True))


def pairs(body: bytes) -> dict[str, float]:
    """The known fields of a batch line, by our names."""
    return _numbers((_FIELDS.get(key.lstrip()), value) for key, value in _PAIR.findall(body))


def _numbers(told: Iterable[tuple[str | None, bytes | None]]) -> dict[str, float]:
    """Known fields as numbers; what no server can mean (nan, more than 10^15) is left out."""
    found = ((name, float(value)) for name, value in told if name is not None and value is not None)
    return {name: number for name, number in found if abs(number) < 1e15}


def is_warmup(values: Mapping[str, float]) -> bool:
    """Whether a prefill looks like the server's own first request: one short prompt (per DP rank) on an idle server."""
    return (
        values.get("new_token", 0.0) <= 32
        and values.get("cached_token", 0.0) == 0
        and values.get("running", 0.0) == 0
        and values.get("queued", 0.0) == 0
    )


_HEALTH_CHECK = b"#new-seq: 1, #new-token: 1, #cached-token: 0,"


def is_health_check(body: bytes) -> bool:
    """Whether a prefill is a ``/health`` request: one token, nothing cached."""
    return _HEALTH_CHECK in body


@dataclass(slots=True)
class Batches:
    """All DP ranks, and the series."""

    replicas: dict[bytes, Replica] = field(default_factory=dict)
    series: list[Sample] = field(default_factory=list)
    now: float = 0.0  # the newest second
    pending: bool = False  # whether lines of that second are not in the series yet

    def copy(self) -> Batches:
        return Batches({dp: replace(r) for dp, r in self.replicas.items()}, self.series[:], self.now, self.pending)

    def take(
        self,
        decode: bool,
        ranks: bytes,
        time: float | None,
        values: Mapping[str, float],
        lines: int = 1,
        tokens: tuple[int, int] | None = None,
    ) -> None:
        """A batch line, or the last of several that a rank printed within one second.

        ``tokens``: new and cached tokens of all of them.
        """
        found = _DP.search(ranks) if ranks else None
        dp = found[1] if found else b""
        replica = self.replicas.get(dp)
        if replica is None:
            if len(self.replicas) >= 4096:
                return
            replica = self.replicas[dp] = Replica()
        at = self._at(time)
        self.pending = True
        if decode:
            _decoded(replica, at, values, first=lines == 1)
        else:
            _prefilled(replica, at, ranks.strip(), values, tokens)
        _common(replica, at, values)

    def _at(self, time: float | None) -> float:
        at = self.now if time is None else float(int(time))
        if self.now - 5 <= at < self.now:
            return self.now  # ranks write at their own pace
        if at != self.now:
            self.settle()
        if at < self.now:
            self.series.clear()  # the clock was set back
            for replica in self.replicas.values():
                replica.decoded = None
        self.now = at
        return at

    def settle(self) -> None:
        """Put the newest second into the series."""
        if not self.pending:
            return
        self.pending = False
        sample = self.combined(self.now)
        if self.series and self.series[-1].at_local == self.now:
            self.series[-1] = sample
            return
        self.series.append(sample)
        if len(self.series) > SERIES + 60:
            del self.series[:-SERIES]

    def combined(self, at: float) -> Sample:
        """The sum over DP ranks at second ``at``; a rank that has long said nothing adds no tokens."""
        if len(self.replicas) == 1:
            return _alone(next(iter(self.replicas.values())), at)
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


def _alone(one: Replica, at: float) -> Sample:
    """The sample of a server with one replica, which is nearly every server: no sums."""
    limit = max(SUMMED_WITHIN, 3 * one.interval)
    active = one.decoded is not None and at - one.decoded <= limit
    prefilled = one.second == at
    told = one.new + one.cached
    return Sample(
        at,
        one.generate if active else None,
        one.prefill if prefilled else None,
        one.running,
        one.queued,
        one.kv,
        one.mamba,
        one.swa,
        one.accept_len if active else None,
        one.accept_rate if active else None,
        one.cached / told if prefilled and told else None,
    )


def _decoded(replica: Replica, at: float, values: Mapping[str, float], *, first: bool) -> None:
    rate = values.get("generate")
    gap = None if replica.decoded is None else at - replica.decoded
    replica.last = rate
    if gap is None or gap > max(IDLE_GAP, 3 * replica.interval):
        # the first rate spans the idle time before it; that of a log which begins in the midst of work does not
        replica.generate = None if first and (gap is not None or replica.warmed) else rate
        replica.interval = 0.0
    else:
        replica.generate = rate
        replica.interval = gap if gap else replica.interval
    replica.decoded = at
    replica.accept_len = values.get("accept_len", replica.accept_len)
    replica.accept_rate = values.get("accept_rate", replica.accept_rate)


def _prefilled(
    replica: Replica, at: float, ranks: bytes, values: Mapping[str, float], tokens: tuple[int, int] | None
) -> None:
    if replica.second != at:
        replica.new = replica.cached = 0
        replica.second, replica.printed_by = at, ranks
    elif replica.printed_by != ranks:
        return
    replica.warmed = replica.warmed or (replica.decoded is None and is_warmup(values))
    new, cached = tokens or (int(values.get("new_token", 0)), int(values.get("cached_token", 0)))
    replica.new += new
    replica.cached += cached
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
