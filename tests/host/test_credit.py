"""The window of logs on their way follows the rate, and no credit is lost or made up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.host.credit import LEAST, MOMENT, MOST, Credit


def settled(rate: float, seconds: float = 20.0) -> Credit:
    """The credit of a link that carries ``rate`` bytes per second, and of a consumer that is never behind."""
    credit = Credit()
    credit.first(0.0)
    now, step = 0.0, 8192
    while now < seconds:
        now += step / rate
        credit.consumed(step, now)
    return credit


def test_a_fast_link_is_used_and_a_slow_one_is_kept_short() -> None:
    assert settled(100e6, 2.0).window == MOST
    assert settled(0.1e6).window == LEAST
    middling = settled(1.5e6).window
    assert abs(middling - 1.5e6 * MOMENT) < 0.1 * middling


def test_a_consumer_that_pauses_gets_little() -> None:
    credit = settled(100e6, 2.0)
    now = 10.0
    for _ in range(40):
        now += 1.0
        credit.consumed(64 << 10, now)
    assert credit.window == LEAST


@given(st.lists(st.tuples(st.integers(1, 65536), st.floats(0.0, 5.0)), max_size=200))
def test_what_is_on_its_way_never_exceeds_the_most_and_never_dries_up(steps: list[tuple[int, float]]) -> None:
    credit = Credit()
    out, now = credit.first(0.0), 0.0
    for size, pause in steps:
        size, now = min(size, out), now + pause
        out += credit.consumed(size, now) - size
        assert 0 <= out <= MOST
        assert out or credit.consumed(0, now) >= 0
    for _ in range(100):  # all that was on its way arrives: more must be let go
        now += 0.1
        out += credit.consumed(out, now) - out
        assert out > 0
