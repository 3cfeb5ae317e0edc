"""ASCII alone: every view, every dialog; states still differ."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from tests.view.sources import FixedSource
from tui.view.app import HcsApp
from tui.view.ascii import ascii_text, wide_arrows
from tui.view.draw import meter
from tui.view.draw.row import plain
from tui.view.glance import GLYPHS
from tui.view.settings import Settings
from tui.view.snapshot import screen_strips, screen_text


@pytest.mark.parametrize("key", ["", "w", "m", "c", "question_mark", "K", "B", "A", "E", "z", "ctrl+p"])
async def test_nothing_else_is_on_the_screen(source: FixedSource, key: str) -> None:
    path = source.logs["gpu0"]
    with path.open("a") as file:
        file.write("日本 ✨ é\n")
    app = HcsApp(source, frozen=True, settings=Settings(ascii=True))
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        if key:
            await pilot.press(key)
        await pilot.pause()
        text = screen_text(app)
        assert text.isascii(), {c for c in text if not c.isascii()}
        assert "gpu0" in text or key


async def test_lines_of_the_charts_are_their_letters(source: FixedSource) -> None:
    app = HcsApp(source, frozen=True, settings=Settings(ascii=True))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("c")
        await pilot.pause()
        text = screen_text(app)
        assert text.isascii() and re.search("a{20}", text) and re.search("b{3}", text)


async def test_without_colours_charts_are_grey(source: FixedSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = HcsApp(source, frozen=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("c")
        await pilot.pause()
        inks = {
            s.style.color.get_truecolor() for strip in screen_strips(app) for s in strip if s.style and s.style.color
        }
        assert len(inks) > 2 and all(len(set(ink)) == 1 for ink in inks)


async def test_without_it_borders_are_drawn(source: FixedSource) -> None:
    async with HcsApp(source, frozen=True).run_test() as pilot:
        await pilot.pause()
        assert not screen_text(pilot.app).isascii()


def test_states_differ_and_widths_stay() -> None:
    assert len({ascii_text(glyph) for glyph in GLYPHS.values()}) == len(GLYPHS)
    for text in ("┏━┓ ▁▂▃█ ⣿⠁⠀", "日本 ✨ é ﬁ", "a\u202f1 → …", "\u200b"):
        assert ascii_text(text).isascii() and cell_len(ascii_text(text)) == cell_len(text), text
    assert ascii_text("▊▔▔▎") == "|--|" and ascii_text("🔎 61 °C") == ">  61  C"
    assert ascii_text("▁▂▃▄▅▆▇█") == "_.-:=+*#" and ascii_text("é") == "e"


def test_bars_tell_what_is_filled_without_a_colour() -> None:
    drawn = [ascii_text(plain([meter.bar(tenth / 10, 5)])) for tenth in range(11)]
    assert drawn[0] == "-----" and drawn[1] == "+----" and drawn[6] == "===--" and drawn[10] == "====="
    assert len(set(drawn)) == 11, "each of them differs from all others"
    assert len(set(map(ascii_text, "━╍·"))) == 3 and ascii_text("━━┿━") == "==|="


async def test_bars_on_the_screen_differ(source: FixedSource) -> None:
    app = HcsApp(source, frozen=True, settings=Settings(ascii=True))
    async with app.run_test(size=(120, 36)) as pilot:
        app.select("gpu2")
        await pilot.pause()
        text = screen_text(app)
        assert "KV ====-  81%" in text and "Mamba ===--  62%" in text and re.search("planned +:+-+ ", text)
        assert "48.2 GB free -> --hicache-size 98" in text


@pytest.mark.parametrize(
    ("texts", "columns", "drawn"),
    [
        (["free", " → ", "--size 9"], 20, "free -> --size 9"),
        (["free", " → ", "--size 9"], 15, "free ->--size 9"),
        (["free → --size 9", "   "], 16, "free -> --size 9   "),
        (["3→40"], 4, "3>40"),
    ],
)
def test_arrows_are_no_greater_than(texts: list[str], columns: int, drawn: str) -> None:
    assert "".join(map(ascii_text, wide_arrows(texts, columns))) == drawn
