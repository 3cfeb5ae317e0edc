"""The last ten minutes, one sample a second: summed over DP ranks, and worked out when somebody looks.

A log that is caught up with turns the ring over many times before anyone sees it, so it holds batch lines, of which the
fields are read on demand.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import inf
from operator import attrgetter
from typing import NamedTuple, overload

from tui.sglang.batch import fields
from tui.sglang.model import Sample

SERIES = 600  # seconds kept
SUMMED_WITHIN = 30.0  # seconds that a DP rank's newest line may be older than the second told
MOST_UNREAD = 12_000  # lines that are kept; of more the older ones are worked out
NEVER = -inf

_AT = attrgetter("at")


class Decode(NamedTuple):
    """The last decode line that a DP rank printed in a second. Times are whole seconds of the host's clock."""

    order: int  # grows from line to line
    dp: str
    at: float
    body: bytes  # its fields
    interval: float  # seconds between it and the one before
    live: bool  # whether its rate counts; of the first line after idleness it does not


class Prefill(NamedTuple):
    """The last prefill line that a DP rank printed in a second, and the tokens of all of that second."""

    order: int
    dp: str
    at: float
    body: bytes
    by: str  # of the ranks that printed prefills in that second, the one whose tokens count
    new: int
    cached: int


Line = Decode | Prefill


class Replica(NamedTuple):
    """What one DP rank last printed."""

    decode: Decode | None = None
    prefill: Prefill | None = None
    idle: bool = False  # whether the next decode line is the first after idleness, whatever its time

    def after(self, line: Line) -> Replica:
        return Replica(line, self.prefill) if isinstance(line, Decode) else Replica(self.decode, line, self.idle)

    @property
    def newest(self) -> Line | None:
        decode, prefill, _ = self
        return prefill if decode is None or (prefill is not None and prefill.order > decode.order) else decode

    def lately(self, line: Line | None, at: float) -> bool:
        """Whether ``line`` is near enough to ``at`` for its figures to be the replica's present ones."""
        interval = self.decode.interval if self.decode else 0.0
        return line is not None and at - line.at <= max(SUMMED_WITHIN, 3 * interval)


class Over(NamedTuple):
    """What the first ``lines`` of a ring tell, all of seconds that are over: it never changes."""

    lines: int
    samples: tuple[Sample, ...]
    replicas: Mapping[str, Replica]


@dataclass(slots=True)
class Ring:
    """The newest seconds: those worked out, and behind them the lines in their order."""

    done: tuple[Sample, ...] = ()
    base: Mapping[str, Replica] = field(default_factory=dict)  # the replicas before the first of ``told``
    told: list[Line] = field(default_factory=list)
    over: list[Over] = field(default_factory=list)  # as far as anybody looked; at most one
    enough: int = 2 * SERIES  # lines after which those that tell nothing any more are looked for

    def copy(self) -> Ring:
        return Ring(self.done, self.base, self.told[:], self.over[:], self.enough)

    def samples(self, length: int) -> tuple[Sample, ...]:
        """A sample for each second of the first ``length`` lines."""
        if not length:
            return ()
        over = next((over for over in self.over if over.lines <= length), Over(0, (), self.base))
        last = bisect_left(self.told, self.told[length - 1].at, over.lines, length, key=_AT)
        if last > over.lines:
            lines = self.told[over.lines : last]
            samples = (*over.samples, *_worked_out(over.replicas, lines))
            over = Over(last, samples, _after(over.replicas, lines))
            self.over[:] = [over]
        return (*over.samples, *_worked_out(over.replicas, self.told[last:length]))

    def add(self, lines: Iterable[Line]) -> None:
        self.told.extend(lines)
        if len(self.told) > self.enough:
            self._trim()
            self.enough = min(MOST_UNREAD, max(2 * SERIES, 2 * len(self.told)))

    def _trim(self) -> None:
        """Forget what is older than a series or was told again within its second; of what is too long even so, work out
        all but the newest."""
        seconds = sorted({line.at for line in self.told})
        if len(seconds) > SERIES:
            self._cut(seconds[-SERIES], wanted=False)
        if len(self.told) > len(seconds):
            self.told = [line for _, lines in groupby(self.told, _AT) for line in _newest_of(lines)]
            self.over = []
        if len(self.told) > MOST_UNREAD:
            self._cut(self.told[-MOST_UNREAD // 2].at, wanted=True)

    def _cut(self, oldest: float, *, wanted: bool) -> None:
        """Take the lines before the second ``oldest`` away, working them out if they are ``wanted``."""
        cut = bisect_left(self.told, oldest, key=_AT)
        old, self.told = self.told[:cut], self.told[cut:]
        self.done = (*self.done, *_worked_out(self.base, old))[-SERIES:] if wanted else ()
        self.base, self.over = _after(self.base, old), []


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
            self._samples = (*ring.done, *ring.samples(self._length))[-SERIES:]
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

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._all())

    def __reversed__(self) -> Iterator[Sample]:
        return reversed(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Series | tuple) and self[:] == other[:]

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())


def _newest_of(lines: Iterable[Line]) -> list[Line]:
    """Of each rank the newest of either kind, in their order: a log in pieces tells a second piece by piece."""
    return sorted({(line.dp, type(line)): line for line in lines}.values())


def _after(base: Mapping[str, Replica], told: Iterable[Line]) -> dict[str, Replica]:
    """The replicas after more lines."""
    replicas = dict(base)
    for line in _newest_of(told):
        replicas[line.dp] = replicas.get(line.dp, Replica()).after(line)
    return replicas


def _worked_out(base: Mapping[str, Replica], told: list[Line]) -> Iterator[Sample]:
    """A sample for each second of ``told``."""
    replicas = dict(base)
    for at, lines in groupby(told, _AT):
        for line in lines:
            replicas[line.dp] = replicas.get(line.dp, Replica()).after(line)
        yield combined(at, replicas.values())


def combined(at: float, replicas: Iterable[Replica]) -> Sample:
    """The sum over DP ranks at second ``at``; one that has long said nothing adds nothing."""
    lately = [r for r in replicas if r.lately(r.newest, at)]
    told = [_newest(r) for r in lately]
    decodes = [(r.decode.live, fields(r.decode.body)) for r in lately if r.decode and r.lately(r.decode, at)]
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
    told = [r.prefill for r in replicas if r.prefill and r.prefill.at == at]
    new, cached = sum(p.new for p in told), sum(p.cached for p in told)
    return total(_rate(p) for p in told), cached / (new + cached) if new + cached else None


def _rate(prefill: Prefill) -> float | None:
    """Tokens per second as printed, or those of the second where each line tells its tokens alone."""
    found = fields(prefill.body)
    return found.get("prefill", float(prefill.new) if prefill.new or "new_token" in found else None)


def _newest(replica: Replica) -> dict[str, float]:
    """What both kinds of lines tell, as the newer has it."""
    decode = fields(replica.decode.body) if replica.decode else {}
    prefill = fields(replica.prefill.body) if replica.prefill else {}
    return {**prefill, **decode} if replica.newest is replica.decode else {**decode, **prefill}


def total(values: Iterable[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return round(sum(known), 2) if known else None


def _whole(values: Iterable[float | None]) -> int | None:
    sum_ = total(values)
    return None if sum_ is None else int(sum_)


def _largest(values: Iterable[float | None]) -> float | None:
    return max((v for v in values if v is not None), default=None)
