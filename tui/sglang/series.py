"""The last ten minutes, one sample a second: summed over DP ranks, and worked out when somebody looks.

A log that is caught up with turns the ring over many times before anyone sees it, so it holds the newest lines of the
replicas, whose fields are read on demand.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, overload

from tui.sglang.batch import fields
from tui.sglang.model import Sample

SERIES = 600  # seconds kept
SUMMED_WITHIN = 30.0  # seconds that a DP rank's newest line may be older than the second told
MOST_UNREAD = 12_000  # changes of replicas that are kept; of more the older ones are worked out

_SECOND = attrgetter("seen")


class Replica(NamedTuple):
    """What one DP rank last printed: lines as bytes, times in whole seconds of the host's clock."""

    dp: str = ""
    seen: float = 0.0  # the second of its newest line
    decoding: bool = False  # whether that is a decode line
    decode: bytes = b""  # the fields of its newest decode line
    decoded: float | None = None  # the second of that line
    interval: float = 0.0  # seconds between its last two decode lines
    live: bool = False  # whether that line's rate counts; of the first line after idleness it does not
    idle: bool = False  # whether the next decode line is one
    prefill: bytes = b""  # the fields of its newest prefill line
    prefilled: float | None = None  # the second of that line
    by: str = ""  # of the ranks that printed prefills in that second, the one whose tokens count
    new: int = 0  # the tokens of its prefills
    cached: int = 0

    def lately(self, time: float | None, at: float) -> bool:
        """Whether ``time`` is near enough to ``at`` for the figures to be the replica's present ones."""
        return time is not None and at - time <= max(SUMMED_WITHIN, 3 * self.interval)


@dataclass(slots=True)
class Ring:
    """The newest seconds: those worked out, and behind them the replicas in the order in which they changed."""

    done: tuple[Sample, ...] = ()
    base: Mapping[str, Replica] = field(default_factory=dict)  # the replicas before the first of ``told``
    told: list[Replica] = field(default_factory=list)
    known: dict[float, Sample] = field(default_factory=dict)  # what was worked out of ``told`` when somebody looked

    def copy(self) -> Ring:
        return Ring(self.done, self.base, self.told[:], self.known)

    def add(self, replica: Replica) -> None:
        told = self.told
        told.append(replica)
        if len(told) > MOST_UNREAD:
            self._trim()

    def _trim(self) -> None:
        """Forget what is older than a series; of one that is too long by itself, work out the older half."""
        told = self.told
        seconds = sorted({replica.seen for replica in told})
        oldest = seconds[-SERIES] if len(seconds) > SERIES else told[MOST_UNREAD // 2].seen
        cut = bisect_left(told, oldest, key=_SECOND)
        if not cut:  # many lines of one second
            self.told = list({replica.dp: replica for replica in told}.values())
            return
        kept = len(seconds) > SERIES
        self.done = () if kept else (*self.done, *_worked_out(self.base, told[:cut], self.known))[-SERIES:]
        self.base = {**self.base, **{replica.dp: replica for replica in told[:cut]}}
        self.told, self.known = told[cut:], {}


class Series(Sequence[Sample]):
    """Samples by second, oldest first. A value: equal to any sequence of equal samples."""

    __slots__ = ("_length", "_ring", "_samples")

    def __init__(self, ring: Ring) -> None:
        self._ring: Ring | None = replace(ring)  # its list is only ever added to
        self._length = len(ring.told)
        self._samples: tuple[Sample, ...] = ()

    def _all(self) -> tuple[Sample, ...]:
        ring = self._ring
        if ring is not None:
            told = ring.told[: self._length]
            self._samples = (*ring.done, *_worked_out(ring.base, told, ring.known))[-SERIES:]
            self._ring = None
        return self._samples

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Sample, ...]: ...
    def __getitem__(self, index: int | slice) -> Sample | tuple[Sample, ...]:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Series | tuple) and self[:] == other[:]

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())


def _worked_out(base: Mapping[str, Replica], told: list[Replica], known: dict[float, Sample]) -> Iterator[Sample]:
    """A sample for each second of ``told``. ``known`` is used and added to: a second that is over never changes."""
    replicas, last = dict(base), told[-1].seen if told else 0.0
    for at, changed in groupby(told, _SECOND):
        replicas.update((replica.dp, replica) for replica in changed)
        sample = known.get(at)
        if sample is None:
            sample = combined(at, replicas.values())
            if at != last:
                known[at] = sample
        yield sample


def combined(at: float, replicas: Iterable[Replica]) -> Sample:
    """The sum over DP ranks at second ``at``; one that has long said nothing adds nothing."""
    lately = [r for r in replicas if r.lately(r.seen, at)]
    told = [_newest(r) for r in lately]
    decodes = [(r.live, fields(r.decode)) for r in lately if r.lately(r.decoded, at)]
    prefill, cache_hit = prefills(at, lately)
    return Sample(
        at_local=at,
        generate=total(line.get("generate") for live, line in decodes if live),
        prefill=prefill,
        running=_whole(line.get("running") for line in told),
        queued=_whole(line.get("queued") for line in told),
        kv=_largest(line.get("kv") for line in told),
        mamba=_largest(line.get("mamba") for line in told),
        swa=_largest(line.get("swa") for line in told),
        accept_len=_largest(line.get("accept_len") for _, line in decodes),
        accept_rate=_largest(line.get("accept_rate") for _, line in decodes),
        cache_hit=cache_hit,
    )


def prefills(at: float, replicas: Iterable[Replica]) -> tuple[float | None, float | None]:
    """Tokens per second and the share that was cached, of the prefills of second ``at``."""
    told = [r for r in replicas if r.prefilled == at]
    new, cached = sum(r.new for r in told), sum(r.cached for r in told)
    rate = total(fields(r.prefill).get("prefill", float(r.new)) for r in told)
    return rate, cached / (new + cached) if new + cached else None


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
