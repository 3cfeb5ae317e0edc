"""Series and axes of the charts as tables, and the screen that shows one server or several."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from math import inf, nan
from pathlib import Path

import pytest

from tests.view import sources
from tui.sglang.model import Sample
from tui.view.app import HcsApp
from tui.view.draw import series
from tui.view.draw.row import plain
from tui.view.glance import glance
from tui.view.screens.charts import Charts, chosen, legend, letters
from tui.view.snapshot import screen_text


def samples(*told: tuple[float, float | None]) -> list[Sample]:
    return [Sample(at, generate=value) for at, value in told]


@pytest.mark.parametrize(
    ("told", "now", "drawn"),
    [
        ([], None, []),
        ([(0, 5), (1, 6)], None, [[(-1, 5), (0, 6)]]),
        ([(0, 5), (1, 6)], 11.0, [[(-11, 5), (-10, 6)]]),
        ([(0, 5), (1, nan), (2, inf), (3, None), (4, 7)], None, [[(-4, 5), (0, 7)]]),
        ([(0, 5), (1, 5), (2, 5), (40, 7), (41, 7)], None, [[(-41, 5), (-40, 5), (-39, 5)], [(-1, 7), (0, 7)]]),
        ([(0, 5), (30, 5), (60, 5)], None, [[(-60, 5), (-30, 5), (0, 5)]]),
        ([(0, 5), (700, 6)], None, [[(0, 6)]]),
        ([(0, nan)], None, []),
    ],
    ids=["none", "newest", "now", "not finite", "gap", "slow but steady", "too old", "nothing"],
)
def test_points(told: list[tuple[float, float | None]], now: float | None, drawn: list[list[series.Point]]) -> None:
    assert series.points(samples(*told), lambda s: s.generate, 100, now) == drawn


def test_more_points_than_columns_are_means() -> None:
    told = samples(*((float(n), float(n)) for n in range(600)))
    [line] = series.points(told, lambda s: s.generate, 100)
    assert len(line) == 100 and line[0] == (-596.5, 2.5)


@pytest.mark.parametrize("rows", [2, 3, 5, 9, 17, 40])
@pytest.mark.parametrize("largest", [0.0, 1.0, 7.0, 12.0, 81.0, 409.0, 14_000.0, nan, inf])
def test_values_stand_at_even_rows(largest: float, rows: int) -> None:
    """Each tick falls on a row, and all are as many rows apart: nothing is left to rounding."""
    top, ticks = series.value_axis(largest, rows)
    at = [tick / top * (rows - 1) for tick in ticks]
    assert all(abs(place - round(place)) < 1e-6 for place in at)
    assert len({round(b - a) for a, b in pairwise(at)}) == 1 and ticks[0] == 0
    if largest == largest < inf:
        assert top >= largest * (1 - 1e-9)


def test_no_tick_above_what_makes_sense() -> None:
    for rows in range(3, 40):
        assert max(series.value_axis(81.0, rows, most=100.0)[1]) <= 100


@pytest.mark.parametrize("columns", [10, 30, 57, 111, 150, 290])
@pytest.mark.parametrize("oldest", [0.0, -30.0, -119.0, -240.0, -600.0, -5000.0])
def test_times_stand_at_even_columns(oldest: float, columns: int) -> None:
    low, ticks = series.time_axis(oldest, columns)
    at = [(1 - place / low) * (columns - 1) for place, _ in ticks]
    assert all(abs(place - round(place)) < 1e-6 for place in at)
    apart = {round(b - a) for a, b in pairwise(at)}
    assert len(apart) <= 1 and ticks[-1] == (0.0, "now") and low <= max(oldest, -series.LONGEST)
    if columns >= 30:
        assert apart and min(apart) >= 12, "labels do not touch"


def test_letters_tell_lines_apart() -> None:
    line = [[(float(n), 5.0) for n in range(-119, 1)]]
    first, second = (letters(line, -119.0, 100, place) for place in (0, 1))
    assert len(first) >= 3 and not {at for at, _ in first} & {at for at, _ in second}
    assert letters([], -119.0, 100, 0) == []


def test_the_legend_and_who_is_drawn(tmp_path: Path) -> None:
    fleet = sources.many(tmp_path, 16)
    glances = [glance(state, fleet.now()) for state in fleet.states()]
    shown = chosen(glances, "gpu8")
    assert [g.name for g in shown] == ["gpu8", "gpu0", "gpu1", "gpu4", "gpu6", "gpu7"]
    assert plain([legend(shown, 4, "gpu8", 100)]).startswith(" a gpu8  b gpu0  c gpu1")
    assert "and 4 more" in plain([legend(shown, 4, "gpu8", 100)])
    assert "no figures yet" in plain([legend([], 0, None, 60)])


async def test_one_server_or_all(tmp_path: Path) -> None:
    app = HcsApp(sources.fleet(tmp_path), frozen=True)
    async with app.run_test(size=(120, 36)) as pilot:
        app.select("gpu0")
        await pilot.press("c")
        await pilot.pause()
        assert isinstance(app.screen, Charts) and " a gpu0  b gpu1" in screen_text(app)
        await pilot.press("a")
        await pilot.pause()
        assert re.search(r"^ a gpu0 +and 1 more", screen_text(app), re.MULTILINE)
        await pilot.press("down")
        await pilot.pause()
        assert app.selected == "gpu1" and " a gpu1 " in screen_text(app)


async def test_what_is_no_number_ends_nothing(tmp_path: Path) -> None:
    source = sources.fleet(tmp_path)
    log = source.servers[0].log
    bad = tuple(replace(s, generate=nan if n % 2 else inf, queued=None, kv=nan) for n, s in enumerate(log.series))
    source.change("gpu0", log=replace(log, series=bad))
    app = HcsApp(source, frozen=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("c")
        await pilot.pause()
        assert "tokens per second" in screen_text(app)


@pytest.mark.parametrize("rows", [2, 3, 5, 9, 17, 40])
@pytest.mark.parametrize("largest", [1.0, 12.0, 81.0, 14_000.0])
def test_zero_and_ticks_are_in_the_middle_of_their_rows(rows: int, largest: float) -> None:
    """By rows, as ticks are drawn, and by dots, as lines are."""
    top, ticks = series.value_axis(largest, rows)
    low, high = series.value_limits(top, rows)
    for tick in ticks:
        row = round(tick / top * (rows - 1))
        share = (tick - low) / (high - low)
        assert round(share * (rows - 1)) == row and round(share * (rows * 4 - 1), 6) == row * 4 + 1
    for part in range(101):
        value = top * part / 100
        dot = int(0.5 + round((value - low) / (high - low) * (rows * 4 - 1), 8))
        assert round(series.on_row(value, top, rows) / top * (rows - 1), 6) == dot // 4, "a letter is on its line"


def test_each_line_has_its_letter_however_short_it_is() -> None:
    line = [[(float(n), 5.0) for n in range(-12, 1)]]
    told = [letters(line, -600.0, 30, place) for place in range(6)]
    assert all(told) and len({at for one in told for at, _ in one}) == 6
    assert letters([[(0.0, 5.0)]], -600.0, 30, 5) == [(0.0, 5.0)]


async def test_no_letter_hides_another(tmp_path: Path) -> None:
    """Six lines that all lie on each other, and are short."""
    source = sources.many(tmp_path, 16)
    for state in source.states():
        if state.log.series:
            log = replace(state.log, series=tuple(replace(s, generate=5.0, kv=0.0) for s in state.log.series[-20:]))
            source.change(state.info.name, log=log)
    app = HcsApp(source, frozen=True)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("c")
        await pilot.pause()
        rows = screen_text(app).split("\n")
        zero = next(row for row in rows if row.count("0├") >= 2).split("││")[1]
        assert set("abcdef") <= set(zero), zero
        assert any(set("abcdef") <= set(row) for row in rows[2:15])


async def test_what_is_zero_lies_on_the_zero_line(tmp_path: Path) -> None:
    source = sources.fleet(tmp_path)
    for state in source.servers[:2]:
        series_ = tuple(replace(s, queued=0, kv=0.0) for s in state.log.series[-40:])
        source.change(state.info.name, log=replace(state.log, series=series_))
    app = HcsApp(source, frozen=True)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("c")
        await pilot.pause()
        zero = next(row for row in screen_text(app).split("\n") if row.count("0├") == 3)
        assert "⠤⠤⠤" in zero and "⣀" not in zero and zero.count("a") >= 2 and zero.count("b") >= 2, zero
