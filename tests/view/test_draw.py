"""Drawings without an app: what they say, and that they never exceed their size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.view import sources
from tests.view.states import KILLED
from tui.fleet.api import HostState
from tui.sglang.model import Exit, FailureKind, Phase, Pool, Progress, Sample, Stage
from tui.view.actions import footer_keys
from tui.view.draw import board, caches, head, hostmemory, meter, timeline, units, wall
from tui.view.draw.order import Listing, Order
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


def many(tmp_path: Path, count: int = 24) -> list[Glance]:
    fleet = sources.many(tmp_path, count)
    return [glance(state, fleet.now()) for state in fleet.states()]


@pytest.mark.parametrize(
    ("order", "first", "last"),
    [
        (Order(), "gpu0", "gpu23"),
        (Order("state"), "gpu3", "gpu21"),
        (Order("rate"), "gpu23", "gpu21"),
        (Order("usage"), "gpu0", "gpu21"),
        (Order(only="FAIL"), "gpu3", "gpu19"),
        (Order(only="ready gpu1"), "gpu1", "gpu17"),
        (Order("rate", only="host cache"), "gpu2", "gpu19"),
    ],
)
def test_orders(tmp_path: Path, order: Order, first: str, last: str) -> None:
    listed = Listing().of(many(tmp_path), order)
    assert (listed[0].name, listed[-1].name) == (first, last)
    assert len(listed) == 24 or order.only


def test_places_are_given_anew_only_now_and_then(glances: list[Glance]) -> None:
    """Rates change all the time: rows that dance cannot be read."""
    listing, order = Listing(), Order("rate")
    before = listing.of(glances, order)
    faster = [replace(g, generate=999.0) if g.name == "gpu1" else g for g in glances]
    assert [g.name for g in listing.of(faster, order)] == [g.name for g in before]
    later = [replace(g, now=g.now + 5) for g in faster]
    assert listing.of(later, order)[0].name == "gpu1"


def test_servers_by_host(tmp_path: Path) -> None:
    shown = [
        replace(g, state=replace(g.state, info=replace(g.state.info, host=f"box{n % 2}")))
        for n, g in enumerate(many(tmp_path, 6))
    ]
    listed = Listing().of(shown, Order(by_host=True))
    rows = text(board.board(listed, 80, by_host=True)).split("\n")
    assert len(rows) == 8 and rows[0].startswith(" box0  3 servers  Σ") and rows[4].startswith(" box1  3 servers")
    assert text(board.board(listed, 80, by_host=True, window=slice(2, 5))).split("\n") == rows[2:5]


def test_warnings_are_marked_at_any_width_and_named_where_there_is_room(glances: list[Glance]) -> None:
    warned = replace(glances[0], warnings=("queue grows: 3 → 40 requests in 20 s", "only 1.2 of 100 GB left on /"))
    for columns in SIZES[2:]:
        assert "ready ⚠" in text(board.board([warned], columns))
    row = text(board.board([warned], 118))
    assert "⚠ queue grows, …" in row and "KV" in row and "409 tok/s" in row
    assert "⚠ queue grows and 1 more" in text(board.board([warned], 158))
    assert "⚠ queue grows: 3 → 40 requests" in text(timeline.timeline(warned, 60, 12))


def test_a_start_tells_its_progress(glances: list[Glance]) -> None:
    log = replace(glances[2].state.log, stage=Stage.LOADING_WEIGHTS, progress=Progress("shards", 7, 14))
    one = glance(replace(glances[2].state, log=log), sources.NOW)
    assert "50%  7 of 14 shards" in text(board.board([one], 118)) and "50%" in text(board.board([one], 58))


@pytest.mark.parametrize("columns", range(20, 200, 3))
def test_no_number_is_cut(glances: list[Glance], tmp_path: Path, columns: int) -> None:
    """Columns and words that do not fit are left out, in a set order."""
    huge = replace(
        glances[0],
        generate=1_234_567.0,
        sample=replace(glances[0].sample or Sample(0), running=123_456, queued=9_999_999, accept_len=12.345),
        state=replace(glances[0].state, ready_at=sources.NOW - 30 * 86400, warnings=("1.2 of 100 GB left on /root",)),
    )
    away = replace(glances[1], unreachable=True)
    away = replace(away, state=replace(away.state, unreachable_since=sources.NOW - 75, unreachable_why="no route"))
    stuck = replace(glances[2], stalled=True, stall_reason="no output and no memory growth for 8 min 20 s")
    drawn = text(board.board([*glances, huge, away, stuck], columns))
    assert not re.search(r"\d…|\d \.?…|…\d", drawn), drawn
    for one in (*glances, huge, away, stuck):
        for rows in (4, 8, 12):
            table = text(caches.caches(one, None, columns, rows))
            assert columns < 36 or not re.search(r"\d…|…\d", table), table


def test_what_a_start_says_goes_in_a_set_order(glances: list[Glance]) -> None:
    order = ("Mamba", "1m32s", "of 150.10 GB", "last time 2m41s", "KV ✔ 150.00 GB", "log silent for 1m00s")
    for columns in range(34, 130):
        row = text(board.board(glances[2:3], columns))
        told = [words in row for words in order]
        assert told == sorted(told, reverse=True), row
    assert all(told)


def test_names_of_any_script_and_length_stand_in_their_column(glances: list[Glance]) -> None:
    """They are cut in the middle, where they are alike; what stands beside them stays in its place."""
    names = ("gpu-server-of-the-lab-1", "gpu-server-of-the-lab-2", "日本語サーバー名前四番", "🚀rocket-🔥", "x")
    shown = [replace(glances[3], state=replace(glances[3].state, info=sources.info(name, 0))) for name in names]
    for columns in (58, 78, 118):
        rows = board.board(shown, columns)
        assert len({cell_len(plain([row]).partition("failed")[0]) for row in rows}) == 1
        first, second = (plain([row]).partition("failed")[0] for row in rows[:2])
        assert first != second


def test_the_header_keeps_the_totals_and_cuts_no_count(tmp_path: Path) -> None:
    fleet = many(tmp_path, 64)
    for columns in range(50, 130):
        told = plain([head.header("a-profile-with-a-very-long-name", fleet, sources.NOW, columns)])
        assert "● 40" in told and "✖ 8" in told and not re.search(r"\d…", told)
        assert "tok/s" in told or columns < 60


STARTS = (
    "92 of 150", "last time 2m41s", "last 2m41s", "log silent for 1m00s", "~1m11s to go", "allocated", "planned",
    "300.1", "48.2", "48 slots", "layer_first", "max running 9 (by 48 Mamba slots",
)  # fmt: skip
SERVES = (
    "409 tok/s", "run  48", "queue  12", "KV ━", "81%", "Mamba ━", "62%", "acc 2.71", "up 1h02", "ready for 1h02",
    "log 1.0s", "303.4", "150.00 GB", "150.10 GB", "81% used", "layer_first",
)  # fmt: skip


def test_what_is_told_at_120_and_at_160_columns(glances: list[Glance], fleet: sources.FixedSource) -> None:
    """Of the selected server, on the board and in its panels, whatever the log says."""
    for columns in (120, 160):
        size = (columns // 2 - 4, 12)
        start, serves = (
            text(
                [
                    *board.board([g], columns - 2),
                    *timeline.timeline(g, *size),
                    *caches.caches(g, fleet.hosts()[0], *size),
                ]
            )
            for g in (glances[2], glances[0])
        )
        assert [words for words in STARTS if words not in start] == []
        assert [words for words in SERVES if words not in serves] == []


def test_no_memory_is_held_by_what_is_gone(glances: list[Glance], fleet: sources.FixedSource) -> None:
    gone = glance(replace(glances[0].state, alive=None, vanished=True), sources.NOW)
    table = text(caches.caches(gone, fleet.hosts()[0], 76, 14))
    assert gone.phase is Phase.LOST and "303.4" not in table and "freed" in table


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


def test_when_it_ended_is_told_whole_or_not_beside_a_long_mark(glances: list[Glance]) -> None:
    state = replace(
        glances[3].state, log=replace(glances[0].state.log, latest=None), stop_asked=None,
        exit=Exit(0, None, False, sources.NOW - 67), unreachable_since=sources.NOW - 56,
        unreachable_why="demo: the connection broke down and is tried again",
    )  # fmt: skip
    gone = replace(glance(state, sources.NOW), phase=Phase.STOPPED, failure=None, unreachable=True)
    rows = [text(board.board([gone], columns)) for columns in range(40, 160)]
    assert all(not re.search(r"1m07s(?! ago)", row) for row in rows), rows
    assert "1m07s ago" in rows[-1] and "⚠ unreachable 56s" in rows[40]


def test_old_figures_are_not_shown_as_the_present_ones(glances: list[Glance]) -> None:
    old = replace(glances[0], stale=True)
    row = text(board.board([old], 118))
    assert "idle" in row and "409" not in row
    assert "409" not in plain([head.header("dflash", [old], sources.NOW, 120)])
    unknown = replace(glances[0], sample=None, generate=None)
    untold = replace(glances[0], generate=None)  # requests run, and no batch of theirs was told yet
    assert all("idle" not in text(board.board([one], 118)) for one in (unknown, untold))


def test_what_was_known_of_a_server_out_of_reach_is_quiet(glances: list[Glance]) -> None:
    away = replace(glances[0], unreachable=True)
    rows = board.board([away, glances[1]], 158)
    inks = [{span.ink for span in row if any(char.isdigit() for char in span.text)} for row in rows]
    assert "text bold" in inks[1] and not {"text bold", "ok"} & (inks[0] - {"ok bold"})
    assert "409" in plain(rows)


def test_pinned_memory_grows_towards_what_was_asked(fleet: sources.FixedSource, glances: list[Glance]) -> None:
    told = []
    for held in (0, 120, 200, 299, 400):
        state = replace(glances[2].state, memory=replace(glances[2].state.memory, pinned=held * sources.GB))  # type: ignore[type-var]  # a reading is there
        told.append([p.gb for p in pinning(glance(state, sources.NOW))])
    assert told == [[150.0, 0.0], [150.0, 0.0], [150.0, 50.0], [150.0, 149.0], [150.0, 150.1]]


def test_the_timeline_stands_beside_the_last_one(glances: list[Glance]) -> None:
    drawn = text(timeline.timeline(glances[2], 60, 12))
    assert "host cache" in drawn and "1m32s ◐" in drawn and "last 2m41s" in drawn and "deadline in 12m55s" in drawn
    assert "~1m11s to go" in drawn
    bars = {row.split("  ")[0].strip(): row.count("━") for row in drawn.split("\n")}
    thin = {row.split("  ")[0].strip(): row.count("─") for row in drawn.split("\n")}
    assert thin["host cache"] > thin["warm-up"] == 1 and bars["warm-up"] == 0, "what is to come, by the last run"
    assert bars["host cache"] > bars["weights"] > bars["dist init"] > 0


def test_a_stage_longer_than_last_time_has_a_notch_there(glances: list[Glance]) -> None:
    slow = replace(glances[2].state, previous_stages=(("host_cache", 40.0),))
    row = next(r for r in text(timeline.timeline(glance(slow, sources.NOW), 60, 12)).split("\n") if "host cache" in r)
    assert re.search(r"━┿━", row) and "─" not in row and "last 40s" in row


def test_a_stalled_stage_is_marked_with_its_reason(glances: list[Glance]) -> None:
    stuck = replace(glances[2], stalled=True, stall_reason="no output for 5m")
    drawn = text(timeline.timeline(stuck, 60, 12))
    assert "⚠ stalled: no output for 5m" in drawn and re.search(r"host cache .*1m32s ⚠", drawn) and "to go" not in drawn


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
    assert row.endswith("failed      → --hicache-size 98 or less")


def test_each_pool_with_what_became_of_it(glances: list[Glance], fleet: sources.FixedSource) -> None:
    rows = text(caches.caches(glances[2], fleet.hosts()[0], 76, 14)).split("\n")
    for row, words in (
        (1, ("KV ", "device", "4.51 + 4.51 GiB", "147 456 tokens", "allocated")),
        (2, ("host", "150.00 GB", "2 288 818 tokens", "✔ allocated")),
        (3, ("Mamba", "device", "0.18 + 9.20 GiB", "48 slots", "allocated")),
        (4, ("host", "150.10 GB", "1 602 slots", "92 of 150 GB")),
        (6, ("planned", "╍╍", "300.1 GB")),
        (7, ("allocated", "━━", "242.0 GB")),
        (8, ("free", "━", "48.2 GB", "✖ 9.9 GB too little")),
        (9, ("max running 9 (by 48 Mamba slots, 5 each)", "max tokens 147 456")),
    ):
        assert all(word in rows[row] for word in words), rows[row]
    planned, allocated, free = (sum(rows[n].count(mark) for mark in "╍━") for n in (6, 7, 8))
    assert planned > allocated > free


def test_caches_in_few_rows(glances: list[Glance], fleet: sources.FixedSource) -> None:
    drawn = text(caches.caches(glances[2], fleet.hosts()[0], 58, 6))
    for word in ("4.51 + 4.51 GiB", "150.00 GB", "147k / 2.3M", "0.18 + 9.20 GiB", "150.10 GB", "48 / 1 602"):
        assert word in drawn
    for word in ("planned 300.1", "allocated 242.0", "free 48.2 of 503", "✖ 9.9 GB too little", "max running 9"):
        assert word in drawn


def _with_flags(one: Glance, pools: int) -> Glance:
    """With HiCache's flags, and so many pools told."""
    args = {"enable_hierarchical_cache": "True", "hicache_size": "150", "model_path": "Qwen3.6-27B"}
    log = replace(one.state.log, args=args, pools=one.state.log.pools[:pools])
    return glance(replace(one.state, log=log), sources.NOW)


@pytest.mark.parametrize("columns", [36, 38, 46, 56, 76])
def test_a_row_per_kind_says_what_has_become_of_its_pool(glances: list[Glance], columns: int) -> None:
    def kinds(one: Glance) -> tuple[str, str]:
        rows = text(caches.caches(one, None, columns, 3)).split("\n")
        assert max(map(cell_len, rows)) <= columns and not re.search("[a-z]…", "\n".join(rows)), rows
        kv, mamba = (next(row for row in rows if row.startswith(kind)) for kind in ("KV", "Mamba"))
        return kv, mamba

    start, early, one_told = glances[2], _with_flags(glances[2], 2), _with_flags(glances[2], 3)
    for one, kv, mamba in (
        (start, "150.00 GB +(✔ allocated|✔ taken)", "150.10 GB +(━━|92( of |/)150 GB)"),
        (early, "150.00 GB +planned", "150.00 GB +planned"),
        (one_told, "150.00 GB +", "150.00 GB +planned"),
        (glances[3], "150.00 GB +freed", "150.10 GB +(✖ )?refused"),
        (_with_flags(glances[3], 3), "150.00 GB +freed", "150.10 GB +(✖ )?refused"),
        (glances[0], "150.00 GB +(━*╸?─* )?81%", "150.10 GB +(━*╸?─* )?62%"),
    ):
        rows = kinds(one)
        assert re.search(kv, rows[0]) and re.search(mamba, rows[1]), rows
    assert "planned" not in kinds(one_told)[0], "its line was told"


@pytest.mark.parametrize("columns", range(30, 120))
def test_no_word_of_a_pools_state_is_cut(glances: list[Glance], columns: int) -> None:
    untold = replace(glances[2], state=replace(glances[2].state, memory=None))
    for one in (*glances, untold, _with_flags(glances[2], 2)):
        for rows in (5, 20):
            drawn = text(caches.caches(one, None, columns, rows))
            assert not re.search(r"(alloc|taken|grow|plann|refus|fre)\w*…", drawn), drawn


def test_planned_allocated_and_used_look_different(glances: list[Glance]) -> None:
    """Before a host pool's line it is planned, then it grows, then it stands; on the device it is used."""
    args = {"enable_hierarchical_cache": "True", "hicache_size": "150", "model_path": "Qwen3.6-27B"}
    log = glances[2].state.log
    early = replace(glances[2].state, log=replace(log, args=args, pools=log.pools[:2]))
    drawn = text(caches.caches(glance(early, sources.NOW), None, 76, 14))
    assert drawn.count("planned") >= 3 and "host   150.00 GB" in drawn and "✔" not in drawn.split("memory")[0]
    assert "81% used" in text(caches.caches(glances[0], None, 76, 14))
    refused = text(caches.caches(glances[3], None, 76, 14))
    assert "✖ refused" in refused and refused.count("freed") == 3


def test_a_pool_that_was_refused_before_its_line_is_told_all_the_same(glances: list[Glance]) -> None:
    """SGLang checks first: then the log's last host pool is one that was given."""
    args = {"enable_hierarchical_cache": "True", "hicache_size": "150", "model_path": "Qwen3.6-27B"}
    state = glances[3].state
    log = replace(state.log, args=args, pools=state.log.pools[:3])
    rows = text(caches.caches(glance(replace(state, log=log), sources.NOW), None, 76, 14)).split("\n")
    assert "host   150.00 GB" in rows[2] and "freed" in rows[2] and "allocated" not in rows[2]
    assert "host   150.10 GB" in rows[4] and "✖ refused" in rows[4]


def test_planned_against_free_in_one_row(glances: list[Glance], fleet: sources.FixedSource) -> None:
    """Beside the stages or the failure, where the caches have no panel; only where it matters."""
    box = fleet.hosts()[0]

    def told(one: Glance, columns: int = 70, host: HostState | None = box) -> str:
        return plain([hostmemory.line(one, host, columns)])

    assert told(glances[3]) == "planned 300.1 GB, 48.2 of 503 GB free  ✖ 251.9 GB too little"
    assert told(glances[3], 100).startswith("host memory planned 300.1 GB")
    assert told(glances[2], 58) == "planned 300.1 GB, 242.0 allocated, 48.2 of 503 GB free ✖"
    other = replace(glances[3].failure or KILLED, kind=FailureKind.PORT_IN_USE)
    assert told(glances[0]) == told(replace(glances[3], failure=other)) == told(glances[3], 30) == ""
    for one in (glances[2], glances[3]):
        for rows in (3, 4, 6, 14):
            drawn = text(timeline.timeline(one, 58, rows, hostmemory.line(one, box, 58)))
            assert ("48.2 of 503 GB free" in drawn) == (rows > 3) and len(drawn.split("\n")) <= rows
    drawn = text(timeline.timeline(glances[3], 58, 4, hostmemory.line(glances[3], box, 58)))
    assert "→ --hicache-size 98 or less" in drawn


def test_ranks_count_in_the_total(glances: list[Glance]) -> None:
    pools = (Pool("host", "KV", 10.0, "GB", ranks=8),)
    one = replace(glances[0].state, log=replace(glances[0].state.log, pools=pools))
    drawn = text(caches.caches(glance(one, sources.NOW), None, 58, 12))
    assert "10.00 GB ×8" in drawn and "80.00 GB" in drawn and "its log: 80.0" in drawn


@pytest.mark.parametrize(
    ("available", "verdict"),
    [(100, "✔ fits"), (60, "✖ less than the 10.7 GB that stay free"), (50, "✖ 8.1 GB too little")],
)
def test_planned_against_free(glances: list[Glance], available: float, verdict: str) -> None:
    """Of 300.1 GB planned 242 are held, so that 58.1 are still to come."""
    host = HostState(
        "box", "x", "connected", memory_total=503 * sources.GB, memory_available=int(available * sources.GB)
    )
    assert verdict in text(caches.caches(glances[2], host, 76, 14))


def test_the_header_sums_the_fleet(glances: list[Glance]) -> None:
    line = plain([head.header("dflash", glances, sources.NOW, 120)])
    for word in ("dflash", "4 servers", "● 2 ready", "◐ 1 starting", "✖ 1 failed", "811 tok/s", "2.9 M/h", "70 M/day"):
        assert word in line
    away = [replace(glances[0], unreachable=True), *glances[1:]]
    line = plain([head.header("dflash", away, sources.NOW, 120)])
    assert "402 tok/s" in line and "⚠ 1" in line
    narrow = plain([head.header("dflash", glances, sources.NOW, 80)])
    assert "Σ 811 tok/s  2.9 M/h  70 M/day" in narrow and "● 2  ◐ 1  ✖ 1" in narrow


def test_a_host_in_trouble_says_what_to_do() -> None:
    host = HostState("box", "x", "refused", "the host key is unknown.\nRun: ssh x", retry_at=sources.NOW + 8)
    line = plain(head.troubles((host,), "", sources.NOW, 100))
    assert "⚠ box: the host key is unknown. Run: ssh x" in line and "next try in 8.0s" in line


def test_more_hosts_in_trouble_than_rows(glances: list[Glance]) -> None:
    hosts = [HostState(f"far{n}", "x", "unreachable", f"far{n} did not answer") for n in range(9)]
    told = text(head.troubles(hosts, "", sources.NOW, 60, 4)).split("\n")
    assert len(told) == 4 and told[0] == " ⚠ far0 did not answer" and told[3] == " ⚠ and 6 hosts more: h shows all"
    assert len(head.troubles(hosts[:4], "", sources.NOW, 60, 4)) == 4


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
