"""The last ten minutes, one sample a second: summed over DP ranks, and worked out when somebody looks.

A log that is caught up with turns the ring over many times before anyone sees it, so a second is kept as the newest
lines of its replicas, and its fields are read on demand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, overload

from tui.sglang.batch import fields
from tui.sglang.model import Sample

SUMMED_WITHIN = 30.0  # seconds that a DP rank's newest line may be older than the second told
EAGER = 16  # replicas from which on a second is worked out at once, so as not to keep its lines


class Replica(NamedTuple):
    """What one DP rank last printed: lines as bytes, times in seconds of the host's clock."""

    decode: bytes = b""  # the fields of its newest decode line
    decoded: float | None = None  # the time of that line
    interval: float = 0.0  # seconds between its last two decode lines
    live: bool = False  # whether that line's rate counts; of the first line after idleness it does not
    idle: bool = False  # whether the next decode line is one
    prefill: bytes = b""  # the fields of its newest prefill line
    prefilled: float | None = None  # the time of that line
    by: str = ""  # of the ranks that printed prefills in that second, the one whose tokens count
    new: int = 0  # the tokens of its prefills
    cached: int = 0
    seen: float = 0.0  # the time of the newest line
    decoding: bool = False  # whether that is the decode line

    def lately(self, time: float | None, at: float) -> bool:
        """Whether ``time`` is near enough to ``at`` for the figures to be the replica's present ones."""
        return time is not None and at - time <= max(SUMMED_WITHIN, 3 * self.interval)


class Second:
    """The replicas as they stood at the end of one second."""

    __slots__ = ("_replicas", "_sample", "at", "prefilled")

    def __init__(self, at: float, prefilled: bool, replicas: tuple[Replica, ...]) -> None:
        self.at = at
        self.prefilled = prefilled  # whether prefills ran in it
        self._replicas = replicas
        self._sample: Sample | None = None
        if len(replicas) > EAGER:
            _ = self.sample

    @property
    def sample(self) -> Sample:
        sample = self._sample
        if sample is None:
            sample = self._sample = combined(self.at, self._replicas)
            self._replicas = ()
        return sample


class Series(Sequence[Sample]):
    """Samples by second, oldest first. A value: equal to any sequence of equal samples."""

    __slots__ = ("_seconds",)

    def __init__(self, seconds: Iterable[Second] = ()) -> None:
        self._seconds = tuple(seconds)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Sample, ...]: ...
    def __getitem__(self, index: int | slice) -> Sample | tuple[Sample, ...]:
        if isinstance(index, slice):
            return tuple(second.sample for second in self._seconds[index])
        return self._seconds[index].sample

    def __len__(self) -> int:
        return len(self._seconds)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Series) and self._seconds == other._seconds:
            return True
        return isinstance(other, Series | tuple) and self[:] == other[:]

    def __hash__(self) -> int:
        return hash(self[:])

    def __repr__(self) -> str:
        return repr(self[:])


def combined(at: float, replicas: Iterable[Replica]) -> Sample:
    """The sum over DP ranks at second ``at``; one that has long said nothing adds nothing."""
    lately = [r for r in replicas if r.lately(r.seen, at)]
    told = [_newest(r) for r in lately]
    decodes = [(r.live, fields(r.decode)) for r in lately if r.lately(r.decoded, at)]
    prefills = [(r.new, r.cached, fields(r.prefill)) for r in lately if r.prefilled == at]
    new, cached = sum(p[0] for p in prefills), sum(p[1] for p in prefills)
    return Sample(
        at_local=at,
        generate=total(line.get("generate") for live, line in decodes if live),
        prefill=total(line.get("prefill", float(tokens)) for tokens, _, line in prefills),
        running=_whole(line.get("running") for line in told),
        queued=_whole(line.get("queued") for line in told),
        kv=_largest(line.get("kv") for line in told),
        mamba=_largest(line.get("mamba") for line in told),
        swa=_largest(line.get("swa") for line in told),
        accept_len=_largest(line.get("accept_len") for _, line in decodes),
        accept_rate=_largest(line.get("accept_rate") for _, line in decodes),
        cache_hit=cached / (new + cached) if new + cached else None,
    )


def _newest(replica: Replica) -> dict[str, float]:
    """What both kinds of lines tell, as the newer has it."""
    decode, prefill = fields(replica.decode), fields(replica.prefill)
    return {**prefill, **decode} if replica.decoding else {**decode, **prefill}


def total(values: Iterable[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return round(sum(known), 2) if known else None


def _whole(values: Iterable[float | None]) -> int | None:
    sum_ = total(values)
    return None if sum_ is None else int(sum_)


def _largest(values: Iterable[float | None]) -> float | None:
    return max((v for v in values if v is not None), default=None)
