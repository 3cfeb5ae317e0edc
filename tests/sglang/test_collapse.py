"""A rate that has collapsed."""

from __future__ import annotations

import pytest

from tui.sglang.collapse import collapsed
from tui.sglang.model import Sample

NOW = 1000.0


def series(*parts: tuple[int, float | None, int | None]) -> list[Sample]:
    """Seconds of (how many, rate, running), ending at ``NOW``."""
    flat = [(rate, running) for count, rate, running in parts for _ in range(count)]
    return [Sample(NOW - len(flat) + 1 + n, generate=rate, running=running) for n, (rate, running) in enumerate(flat)]


def test_a_rate_far_below_what_was_usual() -> None:
    assert collapsed(series((500, 400.0, 16), (31, 90.0, 16))) == (90.0, 400.0)
    assert collapsed(series((90, 400.0, 1), (35, 0.0, 1))) == (0.0, 400.0)


@pytest.mark.parametrize(
    "samples",
    [
        series(),
        series((500, 400.0, 16), (31, 130.0, 16)),  # slower, but no collapse
        series((500, 400.0, 16), (10, 90.0, 16)),  # not yet
        series((500, 400.0, 16), (31, 90.0, 0)),  # nothing runs
        series((500, 400.0, 16), (30, 90.0, 16), (1, 5.0, 0)),  # it ran out of requests
        series((500, 400.0, 16), (15, 90.0, 16), (1, 400.0, 16), (15, 90.0, 16)),  # one good second
        series((20, 400.0, 16), (31, 90.0, 16)),  # too little is known of what is usual
        series((500, None, 16), (31, 90.0, 16)),
        series((500, 0.0, 16), (31, 0.0, 16)),  # it never worked
        series((500, 400.0, 0), (31, 90.0, 16)),  # the tail of what was before, and nobody ran then
        series((531, 90.0, None)),
    ],
)
def test_what_is_none(samples: list[Sample]) -> None:
    assert collapsed(samples) is None


def test_gaps_are_not_held_against_it() -> None:
    sparse = [Sample(NOW - 600 + 40 * n, generate=400.0, running=3) for n in range(14)]
    late = [Sample(NOW - at, generate=50.0, running=3) for at in (20, 10, 0)]
    assert collapsed([*sparse, *late]) == (50.0, 400.0)
    assert collapsed([*sparse, *late[1:]]) is None
