"""Series of samples cut to what a chart can show."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tui.sglang.model import Sample
from tui.view.draw import units

_STEPS = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)


def points(samples: Sequence[Sample], of: Callable[[Sample], float | None], most: int) -> list[tuple[float, float]]:
    """(seconds before the newest sample, as a number ≤ 0; value), at most ``most``, means of neighbours where more."""
    told = [(s.at_local, value) for s in samples if (value := of(s)) is not None]
    if not told:
        return []
    newest = samples[-1].at_local
    size = -(-len(told) // max(1, most))
    groups = [told[n : n + size] for n in range(0, len(told), size)]
    return [(sum(at for at, _ in g) / len(g) - newest, sum(v for _, v in g) / len(g)) for g in groups]


def ticks(oldest: float, most: int) -> list[tuple[float, str]]:
    """(place, label) of a time axis from ``oldest`` (≤ 0) to now, at round distances, at most ``most``."""
    step = next((s for s in _STEPS if -oldest / s <= max(1, most)), _STEPS[-1])
    places = range(0, int(-oldest) + 1, step)
    return [(-float(p), f"-{units.span(p)}" if p else "now") for p in reversed(places)]


def scale(largest: float, most: int) -> list[float]:
    """Round values from 0 up to the first one that ``largest`` does not exceed, about ``most`` of them."""
    largest = max(largest, 1.0)
    rough = largest / max(1, most)
    power = 10.0 ** math.floor(math.log10(rough))
    step = max(1.0, next(power * n for n in (1, 2, 5, 10) if power * n >= rough))
    return [step * n for n in range(math.ceil(largest / step) + 1)]
