"""Both themes can be read, and no state is told by its colour alone."""

from __future__ import annotations

import pytest
from textual.color import Color

from tui.view.draw.board import INKS
from tui.view.log.filters import INKS as LOG_INKS
from tui.view.theme import DARK, LIGHT, PALETTES, TEXT_INKS, THEMES, Inks


def luminance(colour: str) -> float:
    def linear(part: float) -> float:
        return part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4

    r, g, b = (linear(part / 255) for part in Color.parse(colour).rgb)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", [DARK, LIGHT])
@pytest.mark.parametrize("ink", TEXT_INKS)
def test_words_can_be_read(name: str, ink: str) -> None:
    palette = PALETTES[name]
    for ground in ("ground", "panel", "choice"):
        assert contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)
    assert contrast(palette["text"], palette["found"]) >= 4.5


def test_the_palettes_name_the_same_inks() -> None:
    assert PALETTES[DARK].keys() == PALETTES[LIGHT].keys()
    used = {word for ink in (*INKS.values(), *LOG_INKS.values()) for word in ink.split()}
    assert used - {"bold"} <= set(TEXT_INKS)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_inks_add_up_and_turn_grey(theme: object) -> None:
    inks = Inks(theme)  # type: ignore[arg-type]  # parametrize loses the type
    assert inks["bad bold"].bold and inks["bad bold"].color == inks["bad"].color
    assert inks["text choice"].bgcolor != inks["text"].bgcolor
    grey = Inks(theme, grey=True)  # type: ignore[arg-type]  # parametrize loses the type
    for ink in TEXT_INKS:
        r, g, b = grey.rgb(ink)
        assert r == g == b
