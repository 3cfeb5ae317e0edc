"""What is really drawn can be read: each pair of ink and ground of every view and dialog, in each of our themes; and
what is left of the colours on terminals of 256 and of 16."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from rich.color import Color, ColorSystem
from textual.pilot import Pilot

from tests.view import sources
from tests.view.test_app import until
from tests.view.test_dialogs import CASES, opened
from tests.view.test_picker import CHOICES
from tests.view.test_theme import SEEN, contrast, difference
from tui.view.app import HcsApp
from tui.view.screens.charts import LINES, Charts
from tui.view.screens.picker import Picker
from tui.view.snapshot import screen_strips
from tui.view.theme import DARK_BLIND, LIGHT_BLIND, PALETTES, TEXT_INKS

WORDS, SHAPES = 4.5, 1.2
"""The least contrast of words; and of borders, which tell nothing that the panels' titles do not."""
VIEWS: tuple[list[str], ...] = (
    [],
    ["z"],
    ["w"],
    ["c"],
    ["h"],
    ["slash", *"host", "enter"],
    ["i", *"a(b"],
    ["o", *"gpu"],
    ["v"],
)
VGA = (
    "#000000", "#aa0000", "#00aa00", "#aa5500", "#0000aa", "#aa00aa", "#00aaaa", "#aaaaaa",
    "#555555", "#ff5555", "#55ff55", "#ffff55", "#5555ff", "#ff55ff", "#55ffff", "#ffffff",
)  # fmt: skip


def pairs(app: HcsApp) -> Iterator[tuple[str, str, str]]:
    """Text, ink and ground of all that is on the screen; where there is a dialog, of that alone."""
    strips = screen_strips(app)
    boxes = [widget.region for widget in app.screen.query(".dialog, CommandInput, CommandList")] or [app.screen.region]
    seen = [strip.crop(box.x, box.right) for box in boxes for strip in strips[box.y : box.bottom]]
    assert any(strip.text.strip() for strip in seen)
    for strip in seen:
        for text, style, _ in strip:
            if style and text.strip() and style.color and style.bgcolor:
                one, other = style.color.get_truecolor().hex, style.bgcolor.get_truecolor().hex
                yield text, *((other, one) if style.reverse else (one, other))


def unreadable(app: HcsApp) -> set[tuple[str, str, str]]:
    return {
        (text.strip()[:20], ink, ground)
        for text, ink, ground in pairs(app)
        if contrast(ink, ground) < (WORDS if any(char.isalnum() for char in text) else SHAPES)
    }


async def in_all_themes(app: HcsApp, pilot: Pilot[None]) -> None:
    for theme in PALETTES:
        app.theme = theme
        await pilot.pause()
        if isinstance(app.screen, Charts):
            app.screen.redraw()
            await pilot.pause()
        assert not unreadable(app), theme


@pytest.mark.parametrize("case", CASES)
async def test_dialogs(tmp_path: Path, case: str) -> None:
    async with opened(tmp_path, case, (100, 30)) as (app, pilot):
        await in_all_themes(app, pilot)


async def test_views(tmp_path: Path) -> None:
    app = HcsApp(sources.hosts(tmp_path), frozen=True)
    app.animation_level = "none"
    async with app.run_test(size=(160, 48)) as pilot:
        for keys in VIEWS:
            await pilot.press(*keys)
            await pilot.pause()
            await in_all_themes(app, pilot)
            await pilot.press("escape", "escape")


@pytest.mark.parametrize("theme", PALETTES)
async def test_the_palette_the_picker_and_empty_lines(tmp_path: Path, theme: str) -> None:
    """Opened in each theme: they take its colours when they are opened."""
    app = HcsApp(sources.fleet(tmp_path), theme=theme, frozen=True)
    app.animation_level = "none"
    async with app.run_test(size=(100, 30)) as pilot:
        for keys in ("ctrl+p", "o", "i", "slash"):
            await pilot.press(keys)
            await pilot.pause()
            assert not unreadable(app), keys
            await pilot.press("escape", "escape")
        picker = Picker(lambda: CHOICES)
        app.push_screen(picker)
        await until(lambda: picker.listed, pilot)
        assert not unreadable(app)


@pytest.mark.parametrize("name", PALETTES)
@pytest.mark.parametrize("ground", ["ground", "panel", "choice"])
def test_on_terminals_of_256_and_of_16_colours(name: str, ground: str) -> None:
    """As near as rounding allows: the 16 are those of a PC's text mode, which the toolkit takes for granted."""
    palette = PALETTES[name]
    for ink in TEXT_INKS:
        assert contrast(of_256(palette[ink]), of_256(palette[ground])) >= 4, ink
        assert contrast(of_16(palette[ink]), of_16(palette[ground])) >= 3, ink
    assert contrast(of_16(palette["done"]), of_16(palette["ground"])) >= 2.5


def of_256(colour: str) -> str:
    return Color.parse(colour).downgrade(ColorSystem.EIGHT_BIT).get_truecolor().hex


def of_16(colour: str) -> str:
    number = Color.parse(colour).downgrade(ColorSystem.STANDARD).number
    assert number is not None
    return VGA[number]


@pytest.mark.parametrize("name", PALETTES)
def test_lines_of_the_charts_are_told_apart(name: str) -> None:
    """Five by those with all cones; in the themes for the colour-blind four by everyone. Letters tell all six."""
    palette = PALETTES[name]
    seen = [(ink, other, "all cones") for ink, other in combinations(LINES[:5], 2)]
    if name in (DARK_BLIND, LIGHT_BLIND):
        seen += [(ink, other, eyes) for ink, other in combinations(LINES[:4], 2) for eyes in SEEN]
    alike = [pair for pair in seen if difference(palette[pair[0]], palette[pair[1]], pair[2]) < 20]
    assert not alike
