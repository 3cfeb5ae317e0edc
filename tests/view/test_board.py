"""The board in the running app: its order, what it lists, and that the selected server is always seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from tests.view import sources
from tui.view import layout
from tui.view.app import HcsApp
from tui.view.panels import Board
from tui.view.snapshot import screen_text


async def pressed(pilot: Pilot[None], *keys: str) -> str:
    """The screen after these keys."""
    await pilot.press(*keys)
    await pilot.pause()
    await pilot.pause()
    return screen_text(pilot.app)


def listed(app: HcsApp) -> list[str]:
    return [g.name for g in app.listed]


async def test_s_goes_through_the_orders_and_back(tmp_path: Path) -> None:
    app = HcsApp(sources.many(tmp_path, 16), frozen=True)
    async with app.run_test(size=(120, 36)) as pilot:
        plain = listed(app)
        for words in ("by state", "by tok/s", "by queue", "by usage"):
            assert words in await pressed(pilot, "s")
        assert "by usage" not in await pressed(pilot, "s") and listed(app) == plain
        assert " box  16 servers  Σ" in await pressed(pilot, "b")
        assert " box  16 servers" not in await pressed(pilot, "b")


async def test_up_down_and_digits_follow_the_order(tmp_path: Path) -> None:
    app = HcsApp(sources.many(tmp_path, 16), frozen=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await pressed(pilot, "s", "s", "1")
        assert app.selected == listed(app)[0] == "gpu15"
        await pressed(pilot, "down")
        assert app.selected == listed(app)[1] == "gpu14"


async def test_only_lists_as_one_types(tmp_path: Path) -> None:
    app = HcsApp(sources.many(tmp_path, 64), frozen=True)
    async with app.run_test(size=(60, 20)) as pilot:
        app.select("gpu9")
        shown = await pressed(pilot, "o", "f", "a", "i", "l")
        assert "8 of 64 match “fail”" in shown and "gpu3 " in shown and "gpu4 " not in shown
        assert app.selected == "gpu3", "one that is listed"
        await pressed(pilot, "down")
        assert app.selected == "gpu11", "arrows select while one types"
        shown = await pressed(pilot, "enter")
        assert "8 of 64" in shown and not app.query_one("#only", Input).has_class("open")
        assert "8 of 64" not in await pressed(pilot, "escape") and len(listed(app)) == 64
        assert "no server matches “xyz”" in await pressed(pilot, "o", "x", "y", "z")
        assert "absent" in await pressed(pilot, "escape", "6")


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (160, 48), (300, 80)])
async def test_the_selected_one_of_64_is_seen(tmp_path: Path, size: tuple[int, int]) -> None:
    app = HcsApp(sources.many(tmp_path, 64), frozen=True)
    async with app.run_test(size=size) as pilot:
        for name in ("gpu0", "gpu31", "gpu63", "gpu30", "gpu1"):
            app.select(name)
            await pilot.pause()
            row = next(row for row in screen_text(app).split("\n") if f" {name} " in row and "▌" in row)
            assert row
        app.action_by_host()
        app.select("gpu0")
        assert " box  64 servers" in await pressed(pilot)


async def test_a_board_that_hides_servers_can_stand_alone(tmp_path: Path) -> None:
    app = HcsApp(sources.many(tmp_path, 64), frozen=True)
    async with app.run_test(size=(80, 24)) as pilot:
        few = app.query_one(Board).size.height
        shown = await pressed(pilot, "z")
        assert app.query_one(Board).size.height >= 20 > few and "gpu18" in shown
        await pressed(pilot, "escape")
        assert app.query_one(Board).size.height == few


async def test_the_wheel_moves_the_selection(tmp_path: Path) -> None:
    app = HcsApp(sources.many(tmp_path, 64), frozen=True)
    async with app.run_test(size=(80, 24)) as pilot:
        app.select("gpu3")
        board = app.query_one(Board)
        board.post_message(events.MouseScrollDown(board, 5, 1, 0, 0, 0, False, False, False))
        await pilot.pause()
        await pilot.pause()
        assert app.selected == "gpu4"


async def test_titles_of_panels_keep_the_ends_of_names(tmp_path: Path) -> None:
    """Names that differ at their ends are cut in their middle, on the edges too."""
    source = sources.fleet(tmp_path)
    names = [f"{'server-of-the-laboratory-' * 4}{n}" for n in (1, 2)]
    source.servers = tuple(
        replace(state, info=replace(state.info, name=name))
        for state, name in zip(source.servers[2:], names, strict=True)
    )
    app = HcsApp(source, frozen=True)
    async with app.run_test(size=(80, 24)) as pilot:
        for name in names:
            app.select(name)
            await pilot.pause()
            app.draw()
            await pilot.pause()
            told = screen_text(app)
            end = name[-5:]
            assert f"{end} · caches ─" in told and f"{end} · log ─" in told and f"{end} · " in told.split("caches")[0]


async def test_a_wall_with_one_server_left_says_which(tmp_path: Path) -> None:
    app = HcsApp(sources.hosts(tmp_path), frozen=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("w")
        for name, told in (("gpu0", "1 to 3 of 4 ·"), ("gpu3", " 4 of 4 ·")):
            app.select(name)
            await pilot.pause()
            app.draw()
            await pilot.pause()
            assert told in screen_text(app) and "4 to 4" not in screen_text(app)


@pytest.mark.parametrize("size", [(60, 20), (120, 36)])
@pytest.mark.parametrize(("panel", "other"), [("caches", "start-up"), ("timeline", "caches")])
async def test_a_zoomed_panel_stands_alone(tmp_path: Path, size: tuple[int, int], panel: str, other: str) -> None:
    app = HcsApp(sources.fleet(tmp_path), frozen=True)
    async with app.run_test(size=size) as pilot:
        app.select("gpu2")
        layout.zoom(app.screen, f"{panel}-panel")
        app.arrange()
        await pilot.pause()
        told = await pressed(pilot)
        assert f"gpu2 · {other}" not in told and "SERVERS" not in told
        assert "92 of 150 GB" in told or panel == "timeline"
        assert "gpu2 · " in told and "SERVERS" in await pressed(pilot, "escape")
