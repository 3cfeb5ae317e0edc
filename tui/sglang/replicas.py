"""Batch lines → live figures: the newest lines of each DP rank, and one entry of the series per second.

One rank of each DP replica prints for all (or, with PP and ``--enable-metrics-for-all-schedulers``, several print the
same tokens): sums run over DP ranks, and within one the newest line counts. What is known after a line depends on its
second's last line and the times of those before, so that many lines may be taken as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import NamedTuple, TypeVar

from tui.sglang.batch import BODY_CAP, fields
from tui.sglang.model import Sample
from tui.sglang.series import NEVER, Decode, Prefill, Replica, Ring, Series, combined, prefills, total

LATE = 5.0  # seconds that a line may be older than the newest: ranks write at their own pace
IDLE_GAP = 10.0  # seconds without a decode line after which the next rate holds idle time
RECENT = 60.0  # seconds that the newest prefills are told beside what is decoded
MOST = 4096  # replicas: more than any server has

_DP = re.compile(r"\bDP(\d+)\b")
_BLANK = Replica()


def dp_rank(ranks: str) -> str:
    """The DP rank in a prefix's words; ``""`` where there is none."""
    found = _DP.search(ranks)
    return found[1] if found else ""


class Told(NamedTuple):
    """Lines of one kind and rank, the last of each second, in order.

    ``several``: whether there were more in that second. ``new`` and ``cached``: the tokens of all of its prefills.
    """

    order: Sequence[int]
    at: Sequence[float]
    bodies: Sequence[bytes]
    several: Sequence[bool]
    new: Sequence[int] = ()
    cached: Sequence[int] = ()

    def apart(self) -> Iterator[Told]:
        """Each line by itself."""
        for n in range(len(self.order)):
            only = slice(n, n + 1)
            yield Told(
                self.order[only],
                self.at[only],
                self.bodies[only],
                self.several[only],
                self.new[only],
                self.cached[only],
            )


@dataclass(slots=True)
class Batches:
    """All DP ranks, and the series."""

    replicas: dict[str, Replica] = field(default_factory=dict)
    ring: Ring = field(default_factory=Ring)
    now: float = 0.0  # the newest second
    lines: int = 0  # read
    blank: Replica = _BLANK  # what a replica is of which nothing was read
    page: int = 1  # tokens of a page of the cache
    more: bool = False  # there were replicas beyond ``MOST``, of which nothing is told

    def copy(self) -> Batches:
        return Batches(self.replicas.copy(), self.ring.copy(), self.now, self.lines, self.blank, self.page, self.more)

    def awake(self) -> None:
        """The server has just become ready: whatever was decoded before, the next line's rate spans idle time."""
        self.blank = Replica(idle=True)
        self.replicas = {dp: replica._replace(idle=True) for dp, replica in self.replicas.items()}

    def decode(self, dp: str, time: float | None, body: bytes) -> None:
        """A decode line."""
        at = self.at(time)
        self.lines += 1
        self.ring.add(self.decodes(dp, Told((self.lines,), [at], [body], (False,))))

    def prefill(self, dp: str, ranks: str, time: float | None, body: bytes, new: int, cached: int) -> None:
        """A prefill line."""
        at = self.at(time)
        self.lines += 1
        self.ring.add(self.prefills(dp, ranks, Told((self.lines,), [at], [body], (False,), (new,), (cached,))))

    def decodes(self, dp: str, told: Told) -> Sequence[Decode]:
        """Decode lines of one rank, which become its newest."""
        if self._too_many(dp):
            return ()
        replica = self.replicas.get(dp, self.blank)
        idle, (decoded, interval) = replica.idle, replica.decode[2:5:2] if replica.decode else (NEVER, 0.0)
        intervals: list[float] = []
        live: list[bool] = []
        for at, several in zip(told.at, told.several, strict=True):
            gap = at - decoded if decoded != NEVER else 0.0
            if idle or (gap > IDLE_GAP and gap > 3 * interval):
                # The first rate after idleness spans the idle time; that of a log which begins in the midst of work
                # does not
                interval, idle = 0.0, False
                live.append(several)
            else:
                interval = gap or interval
                live.append(True)
            intervals.append(interval)
            decoded = at
        lines = _made(Decode, zip(told.order, repeat(dp), told.at, _capped(told.bodies), intervals, live))
        self.replicas[dp] = Replica(lines[-1], replica.prefill)
        return lines

    def prefills(self, dp: str, ranks: str, told: Told) -> Sequence[Prefill]:
        """Prefill lines of one rank, which become its replica's newest."""
        if self._too_many(dp):
            return ()
        replica = self.replicas.get(dp, self.blank)
        before, by, new, cached = replica.prefill, ranks, told.new, told.cached
        if before is not None and before.at == told.at[0]:
            if before.by == ranks:
                new, cached = (before.new + new[0], *new[1:]), (before.cached + cached[0], *cached[1:])
            elif before.by < ranks:  # it prints the same tokens once more
                new, cached, by = (before.new, *new[1:]), (before.cached, *cached[1:]), before.by
        bys = chain((by,), repeat(ranks))
        lines = _made(Prefill, zip(told.order, repeat(dp), told.at, _capped(told.bodies), bys, new, cached))
        self.replicas[dp] = Replica(replica.decode, lines[-1], replica.idle)
        return lines

    def _too_many(self, dp: str) -> bool:
        too_many = dp not in self.replicas and len(self.replicas) >= MOST
        self.more = self.more or too_many
        return too_many

    def warnings(self) -> tuple[str, ...]:
        """What the figures lack."""
        return (f"figures are of {MOST} DP ranks; the log names more",) if self.more else ()

    def at(self, time: float | None) -> float:
        """The second to which a line belongs."""
        at = self.now if time is None else float(int(time))
        if at > self.now:
            self.now = at
        elif at < self.now - LATE:  # the clock was set back
            self._begin_anew(at)
        return self.now

    def _begin_anew(self, at: float) -> None:
        for dp, replica in self.replicas.items():
            self.replicas[dp] = replica._replace(decode=replica.decode and replica.decode._replace(at=NEVER))
        self.now, self.ring = at, Ring(base=self.replicas.copy())

    def series(self) -> Series:
        return Series(self.ring)

    def latest(self) -> Sample | None:
        """The newest figures, with the newest prefills where they are of late."""
        replicas = self.replicas.values()
        if not replicas:
            return None
        sample = combined(self.now, replicas)
        newest = max((r.prefill.at for r in replicas if r.prefill), default=None)
        if sample.prefill is not None or newest is None or not 0 <= self.now - newest <= RECENT:
            return sample
        prefill, cache_hit = prefills(newest, replicas)
        return replace(sample, prefill=prefill, cache_hit=cache_hit)

    def last_printed(self) -> float | None:
        """Tokens per second as last printed, summed over the DP ranks that were at work then."""
        replicas = self.replicas.values()
        newest = max((r.decode.at for r in replicas if r.decode), default=NEVER)
        return total(fields(r.decode.body).get("generate") for r in replicas if r.decode and r.lately(r.decode, newest))


_L = TypeVar("_L", Decode, Prefill)


def _made(kind: type[_L], rows: Iterable[tuple[object, ...]]) -> list[_L]:
    made: Iterator[_L] = map(tuple.__new__, repeat(kind), rows)  # a third of the cost of calling it
    return list(made)


def _capped(bodies: Iterable[bytes]) -> list[bytes]:
    return [body[:BODY_CAP] for body in bodies]
