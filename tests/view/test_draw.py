"""Drawings without an app: what they say, and that they never exceed their size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.view import sources
from tui.fleet.api import HostState
from tui.sglang.model import Exit, Phase, Pool
from tui.view.actions import footer_keys
from tui.view.draw import board, caches, head, meter, series, timeline, units, wall
from tui.view.draw.row import Row, Span, clip, fit, flow, plain, spread, width, wrap
from tui.view.glance import GLYPHS, Glance, glance, pinning

SIZES = (20, 40, 60, 80, 100, 120, 160, 200, 300)


@pytest.fixture
def fleet(tmp_path: Path) -> sources.FixedSource:
    return sources.fleet(tmp_path)


@pytest.fixture
def glances(fleet: sources.FixedSource) -> list[Glance]:
    return [glance(state, fleet.now()) for state in fleet.states()]


def text(rows: list[Row]) -> str:
    return plain(rows)


def every_drawing(glances: list[Glance], hosts: tuple[HostState, ...], columns: int) -> Iterator[list[Row]]:
    yield board.board(glances, columns, "gpu2")
    yield [head.header("dflash", glances, sources.NOW, columns)]
    yield [head.footer(footer_keys(read_only=False), columns)]
    yield head.troubles(hosts, "something", sources.NOW, columns)
    for one in glances:
        yield timeline.timeline(one, columns, 12)
        yield caches.caches(one, hosts[0], columns, 12)
    yield wall.wall(glances, lambda server, across, down: [[Span("x" * across)]] * down, columns, 30, "gpu1")


@pytest.mark.parametrize("columns", SIZES)
def test_no_row_is_wider_than_asked(glances: list[Glance], fleet: sources.FixedSource, columns: int) -> None:
    hosts = (*fleet.hosts(), HostState("far", "x", "unreachable", "no route to host " * 20, retry_at=sources.NOW + 5))
    for drawing in every_drawing(glances, hosts, columns):
        for row in drawing:
            assert width(row) <= columns, plain([row])


def test_the_board_tells_all_at_120_columns(glances: list[Glance]) -> None:
    rows = text(board.board(glances, 118)).split("\n")
    for word in ("● gpu0", "ready", "409 tok/s", "run  48", "queue  12", "81%", "Mamba", "62%", "acc 2.71", "up 1h02"):
        assert word in rows[0]
    for word in ("◐ gpu2", "host cache", "KV ✔ 150.00 GB", "92 of 150.10 GB", "1m32s", "last time 2m41s"):
        assert word in rows[2]
    assert "✖ gpu3" in rows[3] and "failed" in rows[3]


def test_columns_go_in_a_set_order(glances: list[Glance]) -> None:
    """What is left at a width is what is left at every smaller width, and more."""
    marks = ("acc", "up 1h02", "Mamba", "KV", "queue", "run", "tok/s")
    counts = []
    for columns in range(150, 50, -1):
        row = text(board.board(glances, columns)[:1])
        counts.append(tuple(mark in row for mark in marks))
    for wider, narrower in pairwise(counts):
        assert all(w or not n for w, n in zip(wider, narrower, strict=True))
    assert counts[-1][-2:] == (True, True)


def test_a_reason_keeps_its_remedy(glances: list[Glance]) -> None:
    reason = "host memory: wants 150.10 GB, 48.2 GB free, and a great deal more to say → --hicache-size 98 or less"
    row = text(board.board([replace(glances[3], reason=reason)], 80))
    assert row.rstrip().endswith("→ --hicache-size 98 or less") and "…" in row


def test_every_phase_has_a_shape_of_its_own() -> None:
    assert len(set(GLYPHS.values())) == len(Phase)


def test_marks_stand_before_the_figures(glances: list[Glance]) -> None:
    away = replace(glances[0], unreachable=True)
    away = replace(away, state=replace(away.state, unreachable_since=sources.NOW - 75, unreachable_why="no route"))
    assert "⚠ unreachable 1m15s: no route" in text(board.board([away], 118))
    stuck = replace(glances[2], stalled=True, stall_reason="no output for 5m")
    assert "⚠ stalled: no output for 5m" in text(board.board([stuck], 118))


def test_old_figures_are_not_shown_as_the_present_ones(glances: list[Glance]) -> None:
    old = replace(glances[0], stale=True)
    row = text(board.board([old], 118))
    assert "idle" in row and "409" not in row
    assert "409" not in plain([head.header("dflash", [old], sources.NOW, 120)])
    unknown = replace(glances[0], sample=None, generate=None)
    assert "idle" not in text(board.board([unknown], 118))


def test_pinned_memory_grows_towards_what_was_asked(fleet: sources.FixedSource, glances: list[Glance]) -> None:
    told = []
    for held in (0, 120, 200, 299, 400):
        state = replace(glances[2].state, memory=replace(glances[2].state.memory, pinned=held * sources.GB))  # type: ignore[type-var]  # a reading is there
        told.append([p.gb for p in pinning(glance(state, sources.NOW))])
    assert told == [[150.0, 0.0], [150.0, 0.0], [150.0, 50.0], [150.0, 149.0], [150.0, 150.1]]


def test_the_timeline_stands_beside_the_last_one(glances: list[Glance]) -> None:
    drawn = text(timeline.timeline(glances[2], 60, 12))
    assert "host cache" in drawn and "1m32s…" in drawn and "last 2m41s" in drawn and "deadline in 12m55s" in drawn
    bars = {row.split("  ")[0].strip(): row.count("━") for row in drawn.split("\n")}
    assert bars["host cache"] > bars["weights"] > bars["dist init"] > 0


def test_the_timeline_says_what_is_wrong_first(glances: list[Glance]) -> None:
    drawn = text(timeline.timeline(glances[3], 60, 12))
    assert drawn.startswith("✖ ") and "--hicache-size 98 or less fits." in drawn
    waiting = replace(glances[2].state, log=replace(glances[2].state.log, missing_ranks=("TP3", "TP5")))
    assert "waiting for TP3, TP5" in text(timeline.timeline(glance(waiting, sources.NOW), 60, 12))
    ended = replace(glances[3].state, exit=Exit(None, "SIGKILL", True, sources.NOW))
    assert "by SIGKILL, killed by the kernel for memory" in text(timeline.timeline(glance(ended, sources.NOW), 80, 12))


@pytest.mark.parametrize(("columns", "rows"), [(56, 4), (36, 8), (36, 4), (36, 3)])
def test_advice_wins_over_stages_and_cuts_are_marked(glances: list[Glance], columns: int, rows: int) -> None:
    drawn = text(timeline.timeline(glances[3], columns, rows)).split("\n")
    assert len(drawn) == rows and "→ --hicache-size 98 or less" in "\n".join(drawn)
    assert drawn[-1].endswith("…") and "total" not in "\n".join(drawn)


def test_all_of_a_failure_then_its_stages_where_there_is_room(glances: list[Glance]) -> None:
    drawn = text(timeline.timeline(glances[3], 100, 20))
    assert "or less fits." in drawn and "the pools instead." in drawn and "…" not in drawn and "total" in drawn


def test_a_run_that_ended_has_an_end(glances: list[Glance]) -> None:
    """Its last stage lasted until its end, and the total is from its start to its end."""
    assert "?" not in (drawn := text(timeline.timeline(glances[3], 100, 20)))
    assert re.search(r"host cache +━+ +22s", drawn) and "total        55s" in drawn
    ended = replace(glances[3].state, exit=Exit(1, None, False, sources.NOW - 35))
    assert "total        1m00s" in text(timeline.timeline(glance(ended, sources.NOW), 100, 20))


def test_a_narrow_board_keeps_the_remedy(glances: list[Glance]) -> None:
    row = text(board.board(glances, 58)).split("\n")[3]
    assert row.endswith("… → --hicache-size 98 or less")


def test_caches_per_kind_and_host_memory(glances: list[Glance], fleet: sources.FixedSource) -> None:
    drawn = text(caches.caches(glances[2], fleet.hosts()[0], 58, 12))
    for word in ("4.51 + 4.51 GiB", "150.00 GB", "147 456 / 2 288 818", "0.18 + 9.20 GiB", "150.10 GB", "48 / 1 602"):
        assert word in drawn
    for word in (
        "planned 300.1",
        "pools 300.1",
        "held 242.0",
        "48.2 of 503 GB free",
        "58.1 more wanted",
        "max running 9",
    ):
        assert word in drawn


def test_ranks_count_in_the_total(glances: list[Glance]) -> None:
    pools = (Pool("host", "KV", 10.0, "GB", ranks=8),)
    one = replace(glances[2].state, log=replace(glances[2].state.log, pools=pools))
    drawn = text(caches.caches(glance(one, sources.NOW), None, 58, 12))
    assert "10.00 GB ×8" in drawn and "pools 80.0" in drawn


def test_the_header_sums_the_fleet(glances: list[Glance]) -> None:
    line = plain([head.header("dflash", glances, sources.NOW, 120)])
    for word in ("dflash", "4 servers", "● 2 ready", "◐ 1 starting", "✖ 1 failed", "811 tok/s", "2.9 M/h", "70 M/day"):
        assert word in line
    away = [replace(glances[0], unreachable=True), *glances[1:]]
    assert "402 tok/s" in plain([head.header("dflash", away, sources.NOW, 120)])


def test_a_host_in_trouble_says_what_to_do() -> None:
    host = HostState("box", "x", "refused", "the host key is unknown.\nRun: ssh x", retry_at=sources.NOW + 8)
    line = plain(head.troubles((host,), "", sources.NOW, 100))
    assert "⚠ box: the host key is unknown. Run: ssh x" in line and "next try in 8.0s" in line


def test_the_footer_keeps_help_and_quit() -> None:
    for columns in (30, 60, 80):
        line = plain([head.footer(footer_keys(read_only=False), columns)])
        assert "? help" in line and "q quit" in line
    assert "launch" not in plain([head.footer(footer_keys(read_only=True), 200)])


@pytest.mark.parametrize(
    ("ratio", "drawn"),
    [(0, "────"), (0.001, "╸───"), (0.5, "━━──"), (0.999, "━━━╸"), (1, "━━━━"), (7, "━━━━"), (-1, "────")],
)
def test_bars(ratio: float, drawn: str) -> None:
    assert plain([meter.bar(ratio, 4)]) == drawn


def test_sparks() -> None:
    assert plain([meter.spark([0, 5, None, 10], 4, top=10)]) == "▁▄ ▇"
    assert plain([meter.spark([], 3)]) == ""
    assert plain([meter.spark([0.0, 0.0], 2)]) == "▁▁"


def test_units() -> None:
    assert [units.span(s) for s in (-1, 4.2, 38, 161, 3720, 273_600)] == ["0s", "4.2s", "38s", "2m41s", "1h02", "3d04h"]
    assert [units.short(n) for n in (811, 2_919_600, 70_070_400, 1.5e13)] == ["811", "2.9M", "70M", "15T"]
    assert [units.rate(n) for n in (62.04, 409.2, 14_000)] == ["62.0", "409", "14 000"]


def test_rows() -> None:
    assert clip("abcdef", 4) == "abc…" and clip("漢字漢字", 5) == "漢字…" and clip("abc", 0) == ""
    assert plain([fit([Span("abc"), Span("def")], 5)]) == "abcd…"
    assert plain([spread([Span("a")], [Span("b")], 5)]) == "a   b"
    assert plain(flow([[Span("aaa")], [Span("bbb")], [Span("ccc")]], 9, indent=1)) == "aaa  bbb\n ccc"
    assert wrap("one two three", 7) == ["one two", "three"] and wrap("abcdefgh", 3) == ["abc", "def", "gh"]


def test_series_are_cut_to_the_chart() -> None:
    samples = sources.ready("a", 0, 100.0).log.series
    points = series.points(samples, lambda s: s.kv, 20)
    assert len(points) <= 20 and points[-1][0] <= 0 and points[0][0] >= -119
    assert series.points(samples, lambda s: s.swa, 20) == []
    assert series.scale(409, 5) == [0, 100, 200, 300, 400, 500]
    assert series.ticks(-119, 4) == [(-90.0, "-1m30s"), (-60.0, "-1m00s"), (-30.0, "-30s"), (0.0, "now")]
