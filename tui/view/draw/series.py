"""Series of samples cut to what a chart can show, and axes whose ticks stand at even distances. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median

from tui.sglang.model import Sample
from tui.view.draw import units

Point = tuple[float, float]
"""Seconds before now, as a number ≤ 0; and the value."""

LONGEST = 600.0  # seconds that a chart shows
SHORTEST = 60.0
_STEPS = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
_DOTS = 4  # in the height of a row
_GAP = 15.0  # seconds without a figure that are a gap, not a line


def points(
    samples: Sequence[Sample], of: Callable[[Sample], float | None], most: int, now: float | None = None
) -> list[list[Point]]:
    """The stretches of a series without a gap, together at most about ``most`` points, which are means of neighbours
    where there are more. ``now`` is by the clock of the samples, else that of the newest. What is no finite number is
    a gap."""
    if not samples:
        return []
    now = samples[-1].at_local if now is None else now
    told = [(s.at_local - now, float(v)) for s in samples if (v := of(s)) is not None and math.isfinite(v)]
    told = [(age, value) for age, value in told if -LONGEST <= age <= 0.0]
    if not told:
        return []
    apart = [later - earlier for (earlier, _), (later, _) in pairwise(told)]
    longest = max(_GAP, 4 * median(apart)) if apart else _GAP
    stretches: list[list[Point]] = [[told[0]]]
    for gap, point in zip(apart, told[1:], strict=True):
        if gap > longest:
            stretches.append([])
        stretches[-1].append(point)
    size = -(-len(told) // max(1, most))
    return [[_mean(stretch[n : n + size]) for n in range(0, len(stretch), size)] for stretch in stretches]


def _mean(group: Sequence[Point]) -> Point:
    return sum(at for at, _ in group) / len(group), sum(value for _, value in group) / len(group)


def time_axis(oldest: float, columns: int, apart: int = 12) -> tuple[float, list[tuple[float, str]]]:
    """(left end, [(place, label)]) of an axis of ``columns`` that ends now and reaches back to ``oldest`` (≤ 0), or a
    little further: then all ticks are the same number of columns apart, and at least ``apart``."""
    back = min(LONGEST, max(SHORTEST, -oldest))
    room = max(1, columns - 1)
    step, wide = _STEPS[-1], room
    for step in _STEPS:
        wide = math.floor(room * step / back)
        if wide >= min(apart, room):
            break
    wide = max(1, min(wide, room))
    low = -step * room / wide
    places = range(room // wide + 1)
    return low, [(-float(n * step), f"-{units.span(n * step)}" if n else "now") for n in reversed(places)]


def value_axis(largest: float, rows: int, apart: int = 3, most: float = math.inf) -> tuple[float, list[float]]:
    """(upper end, ticks from 0 on) of an axis of ``rows`` that holds ``largest``: round steps, all the same number of
    rows apart, at least ``apart``; none above ``most``."""
    room = max(1, rows - 1)
    largest = max(largest, 1.0) if math.isfinite(largest) else 1.0
    choices = []
    for wide in range(min(apart, room), max(min(apart, room) + 1, room // 2 + 1)):
        step = _round(largest * wide / room)
        choices.append((step * room / wide, step, room // wide))
    top, step, count = min(choices)
    return top, [step * n for n in range(count + 1) if step * n <= most]


def value_limits(top: float, rows: int) -> tuple[float, float]:
    """The values at the lower and upper end of ``rows`` of four dots each, so that zero and every tick of an axis up to
    ``top`` is a dot in the middle of its row, where the row's line is."""
    dot = top / (_DOTS * max(1, rows - 1))
    return -dot, top + (_DOTS - 2) * dot


def on_row(value: float, top: float, rows: int) -> float:
    """The value of the line of that row in which ``value`` is drawn."""
    dots = _DOTS * value / top * max(1, rows - 1)
    return math.floor((dots + 1.5) / _DOTS) * top / max(1, rows - 1)


def _round(least: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, 25, 50, … that is not below ``least``."""
    power = 10.0 ** math.floor(math.log10(max(least, 1.0)))
    steps = (1, 2, 5, 10) if power == 1 else (1, 2, 2.5, 5, 10)
    return next(power * n for n in steps if power * n >= least * (1 - 1e-9))
