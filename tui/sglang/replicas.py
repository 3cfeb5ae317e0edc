"""Batch lines → live figures: the newest lines of each DP rank, and one entry of the series per second.

One rank of each DP replica prints for all (or, with PP and ``--enable-metrics-for-all-schedulers``, several print the
same tokens): sums run over DP ranks, and within one the newest line counts. What a replica is depends on its newest
decode line, its newest prefill line and the times of those before, so that many lines may be taken as one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from tui.sglang.batch import BODY_CAP, fields
from tui.sglang.model import Sample
from tui.sglang.series import Replica, Ring, Series, combined, prefills, total

LATE = 5.0  # seconds that a line may be older than the newest: ranks write at their own pace
IDLE_GAP = 10.0  # seconds without a decode line after which the next rate holds idle time
RECENT = 60.0  # seconds that the newest prefills are told beside what is decoded
MOST = 1024  # replicas

_DP = re.compile(r"\bDP(\d+)\b")
_BLANK = Replica()


def dp_rank(ranks: str) -> str:
    """The DP rank in a prefix's words; ``""`` where there is none."""
    found = _DP.search(ranks)
    return found[1] if found else ""


@dataclass(slots=True)
class Batches:
    """All DP ranks, and the series."""

    replicas: dict[str, Replica] = field(default_factory=dict)
    ring: Ring = field(default_factory=Ring)
    now: float = 0.0  # the newest second
    blank: Replica = _BLANK  # what a replica is of which nothing was read

    def copy(self) -> Batches:
        return Batches(self.replicas.copy(), self.ring.copy(), self.now, self.blank)

    def awake(self) -> None:
        """The server has just become ready: whatever was decoded before, the next line's rate spans idle time."""
        self.blank = Replica(idle=True)
        for dp, replica in self.replicas.items():
            self.replicas[dp] = replica._replace(idle=True)

    def decode(self, dp: str, time: float | None, body: bytes, several: bool = False) -> None:
        """A decode line, or the last of ``several`` that a rank printed within one second."""
        at = time if time == self.now else self._at(time)
        r = self.replicas.get(dp, self.blank)
        interval = 0.0 if r.decoded is None else at - r.decoded
        idle = r.idle or (interval > IDLE_GAP and interval > 3 * r.interval)
        interval = 0.0 if idle else interval or r.interval
        # The first rate after idleness spans the idle time; that of a log which begins in the midst of work does not
        live = several or not idle
        self._keep(Replica(dp, at, True, body[:BODY_CAP], at, interval, live, False, *r[8:]))

    def prefill(self, dp: str, ranks: str, time: float | None, body: bytes, new: int, cached: int) -> None:
        """A prefill line, or the last of several within one second, and the tokens of all of them."""
        at = time if time == self.now else self._at(time)
        r, by = self.replicas.get(dp, self.blank), ranks
        if r.prefilled == at:
            if r.by == ranks:
                new, cached = r.new + new, r.cached + cached
            elif r.by < ranks:  # it prints the same tokens once more
                new, cached, by = r.new, r.cached, r.by
        self._keep(Replica(dp, at, False, *r[3:8], body[:BODY_CAP], at, by, new, cached))

    def _keep(self, replica: Replica) -> None:
        if replica.dp in self.replicas or len(self.replicas) < MOST:
            self.replicas[replica.dp] = replica
            self.ring.add(replica)

    def _at(self, time: float | None) -> float:
        """The second to which a line belongs."""
        at = self.now if time is None else float(int(time))
        if at > self.now:
            self.now = at
        elif at < self.now - LATE:  # the clock was set back
            for dp, replica in self.replicas.items():
                self.replicas[dp] = replica._replace(decoded=None)
            self.now, self.ring = at, Ring(base=self.replicas.copy())
        return self.now

    def series(self) -> Series:
        return Series(self.ring)

    def latest(self) -> Sample | None:
        """The newest figures, with the newest prefills where they are of late."""
        if not self.replicas:
            return None
        sample = combined(self.now, self.replicas.values())
        newest = max((r.prefilled for r in self.replicas.values() if r.prefilled is not None), default=None)
        if sample.prefill is not None or newest is None or not 0 <= self.now - newest <= RECENT:
            return sample
        prefill, cache_hit = prefills(newest, self.replicas.values())
        return replace(sample, prefill=prefill, cache_hit=cache_hit)

    def last_printed(self) -> float | None:
        """Tokens per second as last printed, summed over the DP ranks that were at work then."""
        newest = max((r.decoded for r in self.replicas.values() if r.decoded is not None), default=None)
        if newest is None:
            return None
        return total(fields(r.decode).get("generate") for r in self.replicas.values() if r.lately(r.decoded, newest))
