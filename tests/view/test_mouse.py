"""The mouse: what looks as if it could be clicked can be, the wheel moves every view, and double clicks do no harm."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual import events
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import OptionList

from tests.view import sources
from tests.view.sources import FixedSource
from tests.view.test_forms import past, press
from tui.fleet.api import Launch
from tui.view.app import HcsApp
from tui.view.log.wall import Wall
from tui.view.screens.charts import Charts
from tui.view.screens.help import Help
from tui.view.screens.hosts import Hosts, HostSheet
from tui.view.snapshot import screen_text


@asynccontextmanager
async def running(source: FixedSource, size: tuple[int, int] = (120, 36)) -> AsyncIterator[tuple[HcsApp, Pilot[None]]]:
    app = HcsApp(source, frozen=True)
    app.animation_level = "none"
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app, pilot


async def click(app: HcsApp, pilot: Pilot[None], words: str, times: int = 1) -> None:
    """Click where ``words`` stand, the last time on the screen."""
    rows = screen_text(app).split("\n")
    y = max(n for n, row in enumerate(rows) if words in row)
    await pilot.click(offset=(cell_len(rows[y].partition(words)[0]), y), times=times)
    await pilot.pause()
    await pilot.pause()


async def wheel(pilot: Pilot[None], widget: Widget, down: bool = True) -> None:
    event = events.MouseScrollDown if down else events.MouseScrollUp
    widget.post_message(event(widget, 5, 1, 0, 0, 0, False, False, False))
    await pilot.pause()
    await pilot.pause()


async def test_every_key_of_the_footer(tmp_path: Path) -> None:
    async with running(sources.fleet(tmp_path)) as (app, pilot):
        await click(app, pilot, "c charts")
        assert isinstance(app.screen, Charts)
        await click(app, pilot, "a alone or all")
        assert app.screen.alone
        before = app.selected
        await click(app, pilot, "↓ j down")
        assert isinstance(app.screen, Charts) and app.selected != before
        await click(app, pilot, "Esc back")
        assert not isinstance(app.screen, Charts)
        await click(app, pilot, "w wall")
        assert app.screen.has_class("wall")
        await click(app, pilot, "? help")
        assert isinstance(app.screen, Help)


async def test_hosts_and_their_servers(tmp_path: Path) -> None:
    async with running(sources.hosts(tmp_path), (80, 24)) as (app, pilot):
        await press(app, pilot, "h")
        await click(app, pilot, "↓ j down")
        assert isinstance(app.screen, Hosts) and app.screen.query_one(HostSheet).first == 1
        await click(app, pilot, "✖ gpu3")
        assert not isinstance(app.screen, Hosts) and app.selected == "gpu3"
        await press(app, pilot, "h")
        await click(app, pilot, "Esc back")
        assert not isinstance(app.screen, Hosts)


async def test_a_host_in_trouble_leads_to_all(tmp_path: Path) -> None:
    async with running(sources.hosts(tmp_path)) as (app, pilot):
        await click(app, pilot, "far did not answer")
        assert isinstance(app.screen, Hosts)


async def test_a_pane_of_the_wall_and_a_row_of_the_board(tmp_path: Path) -> None:
    async with running(sources.fleet(tmp_path)) as (app, pilot):
        await click(app, pilot, "✖ gpu3", times=2)
        assert app.selected == "gpu3" and len(app.screen_stack) == 1
        await press(app, pilot, "w")
        await click(app, pilot, "━ ● gpu1", times=2)
        assert app.selected == "gpu1"


async def test_a_double_click_launches_once(tmp_path: Path) -> None:
    source = sources.fleet(tmp_path)
    async with running(source) as (app, pilot):
        app.select("gpu3")
        await pilot.pause()
        await click(app, pilot, "l launch", times=2)
        assert source.acted == [Launch("gpu3")]


async def test_the_wheel_moves_the_wall_and_lists(tmp_path: Path) -> None:
    async with running(past(sources.many(tmp_path, 64)), (80, 24)) as (app, pilot):
        app.select("gpu2")
        await press(app, pilot, "w")
        await wheel(pilot, app.query_one(Wall))
        assert app.selected == "gpu3"
        await wheel(pilot, app.query_one(Wall), down=False)
        assert app.selected == "gpu2"
        await press(app, pilot, "escape", "question_mark")
        box = app.screen.query_one(".dialog")
        await wheel(pilot, box)
        assert box.scroll_offset.y > 0
        await press(app, pilot, "escape")


@pytest.mark.parametrize("size", [(60, 20), (120, 36)])
async def test_pages_of_the_wall(tmp_path: Path, size: tuple[int, int]) -> None:
    """It says which of how many servers it shows, and PgDn and PgUp go through all of them."""
    async with running(sources.many(tmp_path, 64), size) as (app, pilot):
        await press(app, pilot, "w")
        seen = app.query_one(Wall).seen
        assert f"1 to {seen.stop} of 64 · PgUp PgDn the others" in screen_text(app)
        shown: list[str] = []
        while seen.stop < 64:
            shown += [g.name for g in app.glances[seen]]
            await press(app, pilot, "pagedown")
            seen = app.query_one(Wall).seen
            first = f"{seen.start + 1} to " if seen.stop - seen.start > 1 else "━ "  # one alone is its number
            assert f"{first}{seen.stop} of 64" in screen_text(app)
            assert app.glances[seen.start].name == app.selected
        assert shown + [g.name for g in app.glances[seen]] == [g.name for g in app.glances]
        await press(app, pilot, "pageup")
        assert app.query_one(Wall).seen.stop == seen.start
        await press(app, pilot, "escape", "o", *"fail", "enter", "w")
        assert "8 of 64 match “fail”" in screen_text(app) and "gpu4 " not in screen_text(app)
        await press(app, pilot, "escape", "escape", "o", *"xyz", "enter", "w")
        assert "no server to show" in screen_text(app)


async def test_lists_scroll_in_dialogs(tmp_path: Path) -> None:
    async with running(past(sources.fleet(tmp_path)), (60, 20)) as (app, pilot):
        await press(app, pilot, "ctrl+p")
        options = app.screen.query_one(OptionList)
        await wheel(pilot, options)
        assert options.scroll_offset.y > 0
