"""The picker: filter, move, open; broken profiles are listed and not opened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from tests.view.sources import FixedSource
from tests.view.test_app import until
from tui.view.app import HcsApp
from tui.view.screens.picker import Choice, Picker
from tui.view.snapshot import screen_text

CHOICES = (
    Choice(
        Path("profiles/bad.yaml"), "bad", "./profiles", errors=("profiles/bad.yaml:2: port: 0 is out of range",) * 3
    ),
    Choice(Path("profiles/mine.yaml"), "mine", "./profiles", "Two servers on one host", ("box",), 2),
    Choice(Path("/u/far.yaml"), "far", "yours", "Everything [everywhere]", tuple(f"host{n}" for n in range(9)), 64),
    Choice(Path("/p/hicache.yaml"), "hicache", "built-in", "With HiCache: 150 GB behind it", ("box",), 1),
)


@asynccontextmanager
async def picking(
    choices: Sequence[Choice] = CHOICES, size: tuple[int, int] = (100, 30)
) -> AsyncIterator[tuple[HcsApp, Pilot[None], list[Path | None]]]:
    app = HcsApp(FixedSource(title=""), frozen=True)
    app.animation_level = "none"
    picked: list[Path | None] = []
    async with app.run_test(size=size, notifications=True) as pilot:
        picker = Picker(lambda: choices)
        app.push_screen(picker, picked.append)
        await until(lambda: picker.listed, pilot)
        yield app, pilot, picked


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (60, 20), (40, 16)])
async def test_all_are_listed(size: tuple[int, int]) -> None:
    async with picking(size=size) as (app, _, _):
        text = screen_text(app)
        assert all(choice.name in text for choice in CHOICES) and "✖  bad" in text
        assert "port: 0 is out" in text, "the first one's mistakes stand below"
        if size[0] >= 100:
            assert "3 mistakes" in text and "9 hosts" in text and "Two servers on one host" in text


async def test_typing_filters_and_enter_opens() -> None:
    async with picking() as (app, pilot, picked):
        await pilot.press(*"built hic")
        await pilot.pause()
        text = screen_text(app)
        assert "mine" not in text and "/p/hicache.yaml" in text
        await pilot.press("enter")
        assert picked == [Path("/p/hicache.yaml")]


async def test_arrows_move_while_the_line_is_typed_in() -> None:
    async with picking() as (_, pilot, picked):
        await pilot.press("down", "down", "up", "up", "up", "down", "enter")
        assert picked == [Path("profiles/mine.yaml")]


async def test_a_broken_one_is_not_opened() -> None:
    async with picking() as (app, pilot, picked):
        await pilot.press("enter")
        assert picked == [] and isinstance(app.screen, Picker)


async def test_by_mouse() -> None:
    async with picking() as (_, pilot, picked):
        await pilot.click(OptionList, offset=(5, 2))
        assert picked == [Path("/u/far.yaml")]


async def test_escape_takes_the_filter_away_and_then_leaves() -> None:
    async with picking() as (app, pilot, picked):
        await pilot.press(*"nothing like it")
        await pilot.pause()
        assert "no profile matches “nothing like it”" in screen_text(app)
        await pilot.press("enter", "down", "escape")
        await pilot.pause()
        assert "hicache" in screen_text(app) and picked == []
        await pilot.press("escape")
        assert picked == [None]


async def test_none_at_all() -> None:
    async with picking(()) as (app, _, _):
        assert "no profile is found: put one into ./profiles" in screen_text(app)
