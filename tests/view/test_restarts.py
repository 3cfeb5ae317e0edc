"""What the screen says of restarts: when the next one comes, why none does, who does it; and read-only's help."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.view import sources
from tests.view.sources import NOW, FixedSource
from tests.view.test_app import running
from tui.fleet.api import Kill
from tui.report.restarts import restart_remarks
from tui.sglang.restarts import Restarts
from tui.view.actions import ACTS
from tui.view.draw.board import board
from tui.view.draw.row import plain
from tui.view.draw.timeline import timeline
from tui.view.glance import glance
from tui.view.screens.help import help_text
from tui.view.snapshot import screen_text

MINE = Restarts("on-failure", by="ann@laptop (pid 7)", here=True, since=NOW - 3600, limit=5)
WAITS = replace(MINE, count=1, pending=True, next_at=NOW + 12, why="process died")
GIVEN_UP = replace(MINE, count=5, why="given up after 5 restarts: 6 × process died")


def drawn(restarts: Restarts, rows: int = 12) -> tuple[str, str]:
    """The row on the board, and the panel."""
    one = glance(replace(sources.failed("gpu3", 3), restarts=restarts), NOW)
    return plain(board([one], 118)), plain(timeline(one, 58, rows))


@pytest.mark.parametrize("rows", [4, 12])
def test_the_next_restart_and_the_reason_for_none(rows: int) -> None:
    row, _ = drawn(WAITS)
    assert "↻ restart 2 of 5 in 12s" in row
    assert "↻ restart 2 of 5 now" in drawn(replace(WAITS, next_at=NOW))[0]
    row, panel = drawn(GIVEN_UP, rows)
    assert "↻ given up after 5 restarts" in row and panel.startswith("↻ given up after 5 restarts: 6 × process died")
    row, panel = drawn(replace(MINE, why="not restarted, since it would fail again: host memory"), rows)
    assert "↻ not restarted " in row and panel.startswith("↻ not restarted, since it would fail again")
    assert "↻" not in "".join(drawn(Restarts()))


def test_who_does_it() -> None:
    def said(restarts: Restarts) -> list[str]:
        return restart_remarks(replace(sources.ready("gpu0", 0, 400.0), restarts=restarts), NOW)

    assert said(MINE) == ["restarts on failure, by you since 01:36"]
    assert said(replace(MINE, here=False)) == ["restarts on failure, by ann@laptop (pid 7) since 01:36"]
    assert said(Restarts("always", by="")) == ["restarts always, but no open session does it"]
    assert said(Restarts("always")) == ["restarts always"], "nobody has been asked"
    assert said(Restarts()) == []
    theirs = said(replace(WAITS, here=False, next_at=None))
    assert theirs[0] == "waits for its restart, since it ended: process died"


def test_what_has_failed_and_lives_on_is_said_to_do_so() -> None:
    alive = replace(sources.failed("gpu3", 3), alive=True)
    assert "lives on" in plain(timeline(glance(alive, NOW), 58, 12))
    assert "lives on" not in plain(timeline(glance(replace(alive, alive=False), NOW), 58, 12))
    ending = glance(replace(alive, restarts=replace(MINE, ends_at=NOW + 40)), NOW)
    assert "↻ ends what is left of it in 40s, then restart 1 of 5" in plain(board([ending], 118))


async def test_k_gives_up_a_restart_that_waits_without_asking(source: FixedSource) -> None:
    source.change("gpu3", restarts=WAITS)
    async with running(source) as (app, pilot):
        await pilot.press("4", "K")
        assert source.acted == [Kill("gpu3")]
        assert "restart 2 of 5 in 12s" in screen_text(app)
    source.read_only, source.acted = True, []
    async with running(source) as (_, pilot):
        await pilot.press("4", "K")
        assert source.acted == []


def test_help_says_what_read_only_forbids() -> None:
    text = " ".join(help_text(100, read_only=True).plain.split())
    assert text.count("(off: read-only)") == sum(act.changes for act in ACTS)
    assert "read-only)" not in help_text(100).plain
