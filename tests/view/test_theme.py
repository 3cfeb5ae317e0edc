"""Our themes can be read, those for the colour-blind also told apart, and no state is told by its colour alone."""

from __future__ import annotations

from itertools import combinations
from math import dist

import pytest
from textual.color import Color
from textual.theme import Theme

from tests.view.sources import FixedSource
from tests.view.test_app import running
from tui.sglang.model import Phase
from tui.view.draw.board import INKS
from tui.view.glance import GLYPHS
from tui.view.log.filters import INKS as LOG_INKS
from tui.view.theme import (
    DARK,
    DARK_BLIND,
    DRAWN_INKS,
    LIGHT_BLIND,
    PALETTES,
    TEXT_INKS,
    THEMES,
    Inks,
    theme_name,
    theme_names,
)

Three = tuple[float, float, float]

# What eyes without one kind of cone see, as matrices on linear RGB: Machado, Oliveira and Fernandes 2009, severity 1.
SEEN: dict[str, tuple[Three, Three, Three]] = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
CLEARLY = 20.0  # CIE 1976 colour difference; 2.3 can just be noticed


def linear(colour: str) -> Three:
    def part(value: float) -> float:
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    r, g, b = (part(value / 255) for value in Color.parse(colour).rgb)
    return r, g, b


def luminance(colour: str) -> float:
    r, g, b = linear(colour)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def lab(colour: str, eyes: str) -> Three:
    """CIELAB (D65) of what is seen of ``colour``."""

    def root(value: float) -> float:
        return value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116

    rgb = linear(colour)
    r, g, b = (min(1.0, max(0.0, sum(m * v for m, v in zip(row, rgb, strict=True)))) for row in SEEN[eyes])
    x, y, z = (
        root((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505),
        root(0.2126 * r + 0.7152 * g + 0.0722 * b),
        root((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089),
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(one: str, other: str, eyes: str) -> float:
    return dist(lab(one, eyes), lab(other, eyes))


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", PALETTES)
@pytest.mark.parametrize("ink", TEXT_INKS)
def test_words_can_be_read(name: str, ink: str) -> None:
    palette = PALETTES[name]
    for ground in ("ground", "panel", "choice"):
        assert contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)
    assert contrast(palette["text"], palette["found"]) >= 4.5


@pytest.mark.parametrize("name", PALETTES)
@pytest.mark.parametrize("ink", DRAWN_INKS)
def test_bars_and_lines_can_be_seen(name: str, ink: str) -> None:
    for ground in ("ground", "panel", "choice"):
        assert contrast(PALETTES[name][ink], PALETTES[name][ground]) >= 3, ground


@pytest.mark.parametrize("eyes", SEEN)
@pytest.mark.parametrize("name", [DARK_BLIND, LIGHT_BLIND])
def test_the_colour_blind_tell_states_and_pools_apart(name: str, eyes: str) -> None:
    palette = PALETTES[name]
    pairs = [*combinations(sorted(set(INKS.values())), 2), ("kv", "mamba")]
    alike = {(one, other) for one, other in pairs if difference(palette[one], palette[other], eyes) < CLEARLY}
    assert not alike


async def test_every_theme_that_is_offered_can_be_taken(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        for name in (*theme_names(), *sorted(app.available_themes)):
            app.theme = theme_name(name)
            await pilot.pause()
            assert app.get_css_variables()["hcs-bad"].startswith("#")


def test_each_state_has_its_own_shape() -> None:
    assert len(set(GLYPHS.values())) == len(Phase)


def test_the_palettes_name_the_same_inks() -> None:
    assert all(palette.keys() == PALETTES[DARK].keys() for palette in PALETTES.values())
    used = {word for ink in (*INKS.values(), *LOG_INKS.values()) for word in ink.split()}
    assert used - {"bold"} <= set(TEXT_INKS)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_inks_add_up_and_turn_grey(theme: Theme) -> None:
    inks = Inks(theme)
    assert inks["bad bold"].bold and inks["bad bold"].color == inks["bad"].color
    assert inks["text choice"].bgcolor != inks["text"].bgcolor
    grey = Inks(theme, grey=True)
    for ink in TEXT_INKS:
        r, g, b = grey.rgb(ink)
        assert r == g == b
