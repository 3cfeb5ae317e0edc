"""Whether a server that works has become much slower than it was. A pure function of its samples."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tui.sglang.model import Sample

SHARE = 0.3  # of the median before, below which the rate has collapsed
LASTING = 30.0  # seconds that it must have stayed there
ENOUGH = 60.0  # seconds of work before that which make a median
SPARSE = 3  # samples that must agree


def collapsed(series: Sequence[Sample]) -> tuple[float, float] | None:
    """``(rate now, median before)`` in tokens per second where every rate of the last ``LASTING`` seconds is below
    ``SHARE`` of the median of the ten minutes before, while requests run; else ``None``. "Now" is the newest sample:
    of a log that says nothing more, ``stalled`` is what to ask. A rate that was idle between does not count."""
    if len(series) < 2 * SPARSE:
        return None
    newest = series[-1].at_local
    lately, before = list[float](), list[Sample]()
    since = newest
    for sample in reversed(series):
        if sample.generate is None:
            continue
        if newest - sample.at_local > LASTING:
            before.append(sample)
        elif not sample.running:
            return None
        else:
            lately.append(sample.generate)
            since = sample.at_local
    worked = [sample.generate for sample in before if sample.running and sample.generate]
    if len(lately) < SPARSE or newest - since < LASTING / 2 or len(worked) < SPARSE:
        return None
    if newest - LASTING - before[-1].at_local < ENOUGH:
        return None
    usual = median(worked)
    return (lately[0], usual) if max(lately) < SHARE * usual else None
