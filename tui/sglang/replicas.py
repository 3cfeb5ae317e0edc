"""Batch lines → live figures: the newest lines of each DP rank, and one entry of the series per second.

One rank of each DP replica prints for all (or, with PP and ``--enable-metrics-for-all-schedulers``, several print the
same tokens): sums run over DP ranks, and within one the newest line counts. What a replica is depends on its newest
decode line, its newest prefill line and the times of those before, so that many lines may be taken as one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tui.sglang.batch import BODY_CAP, fields
from tui.sglang.model import Sample
from tui.sglang.series import Replica, Second, Series, total

SERIES = 600  # seconds kept
LATE = 5.0  # seconds that a line may be older than the newest: ranks write at their own pace
IDLE_GAP = 10.0  # seconds without a decode line after which the next rate holds idle time
MOST = 1024  # replicas

_BLANK = Replica()
_DP = re.compile(r"\bDP(\d+)\b")


@lru_cache(maxsize=4096)
def dp_rank(ranks: str) -> str:
    """The DP rank in a prefix's words; ``""`` where there is none."""
    found = _DP.search(ranks)
    return found[1] if found else ""


@dataclass(slots=True)
class Batches:
    """All DP ranks, and the series."""

    replicas: dict[str, Replica] = field(default_factory=dict)
    seconds: list[Second] = field(default_factory=list)
    now: float = 0.0  # the newest second
    pending: bool = False  # whether lines of that second are not in the series yet
    prefilled: bool = False  # whether prefills ran in it
    blank: Replica = _BLANK  # what a replica is of which nothing was read

    def copy(self) -> Batches:
        return Batches(self.replicas.copy(), self.seconds[:], self.now, self.pending, self.prefilled, self.blank)

    def awake(self) -> None:
        """The server has just become ready: whatever was decoded before, the next line's rate spans idle time."""
        self.blank = Replica(idle=True)
        for dp, replica in self.replicas.items():
            self.replicas[dp] = replica._replace(idle=True)

    def decode(self, ranks: str, time: float | None, body: bytes, *, several: bool = False) -> None:
        """A decode line, or the last of ``several`` that a rank printed within one second."""
        at, dp = self._at(time), dp_rank(ranks)
        r = self.replicas.get(dp, self.blank)
        interval = 0.0 if r.decoded is None else at - r.decoded
        idle = r.idle or (interval > IDLE_GAP and interval > 3 * r.interval)
        interval = 0.0 if idle else interval or r.interval
        self.pending = True
        # The first rate after idleness spans the idle time; that of a log which begins in the midst of work does not
        live = several or not idle
        newest = (body[:BODY_CAP], at, interval, live, False)
        self._keep(dp, Replica(*newest, r.prefill, r.prefilled, r.by, r.new, r.cached, at, True))

    def prefill(self, ranks: str, time: float | None, body: bytes, new: int, cached: int) -> None:
        """A prefill line, or the last of several within one second, and the tokens of all of them."""
        at, dp = self._at(time), dp_rank(ranks)
        replica, by = self.replicas.get(dp, self.blank), ranks
        if replica.prefilled == at:
            if replica.by == ranks:
                new, cached = replica.new + new, replica.cached + cached
            elif replica.by < ranks:  # it prints the same tokens once more
                new, cached, by = replica.new, replica.cached, replica.by
        self.pending = self.prefilled = True
        prefilled = replica._replace(
            prefill=body[:BODY_CAP], prefilled=at, by=by, new=new, cached=cached, seen=at, decoding=False
        )
        self._keep(dp, prefilled)

    def _keep(self, dp: str, replica: Replica) -> None:
        if len(self.replicas) < MOST or dp in self.replicas:
            self.replicas[dp] = replica

    def _at(self, time: float | None) -> float:
        """The second to which a line belongs; the one before is closed."""
        at = self.now if time is None else float(int(time))
        if self.now - LATE <= at <= self.now:
            return self.now
        self.settle()
        if at < self.now:  # the clock was set back
            self.seconds.clear()
            for dp, replica in self.replicas.items():
                self.replicas[dp] = replica._replace(decoded=None)
        self.now, self.prefilled = at, False
        return at

    def settle(self) -> None:
        """Put the newest second into the series."""
        if not self.pending:
            return
        self.pending = False
        second = Second(self.now, self.prefilled, tuple(self.replicas.values()))
        seconds = self.seconds
        if seconds and seconds[-1].at == self.now:
            seconds[-1] = second
            return
        seconds.append(second)
        if len(seconds) >= 2 * SERIES:
            del seconds[:-SERIES]

    def series(self) -> Series:
        return Series(self.seconds[-SERIES:])

    def latest(self) -> Sample | None:
        """The newest figures; rates and hits that the newest second does not tell are the newest that were told."""
        if not self.seconds:
            return None
        sample = self.seconds[-1].sample
        if self.seconds[-1].prefilled:
            return sample
        told = next((second for second in reversed(self.seconds[-60:]) if second.prefilled), None)
        return replace(sample, prefill=told.sample.prefill, cache_hit=told.sample.cache_hit) if told else sample

    def last_printed(self) -> float | None:
        """Tokens per second as last printed, summed over the DP ranks that were at work then."""
        decoding = [r for r in self.replicas.values() if r.decode and r.decoded is not None]
        newest = max((r.decoded for r in decoding if r.decoded is not None), default=None)
        if newest is None:
            return None
        return total(fields(r.decode).get("generate") for r in decoding if r.lately(r.decoded, newest))
