"""SVG → PNG with bundled fonts."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont

from tests.report.make_font import ADVANCE, BRAILLE, build
from tui.cli.errors import explain
from tui.report.png import FAMILY, PngUnavailable, svg_to_png, without_web_fonts

FONTS = Path(__file__).parents[2] / "tui/report/fonts"
SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 122 49"><style>
@font-face {{ font-family: "Fira Code"; src: url("https://cdn.example/FiraCode.woff2"); }}
.t-matrix {{ font-family: Fira Code, monospace; font-size: 20px; line-height: 24.4px; }}
</style><rect width="122" height="49" fill="#111"/>
<text class="t-matrix" x="0" y="19" fill="#fff">{text}</text></svg>"""


def drawn(text: str, path: Path) -> bytes:
    svg_to_png(SVG.format(text=text), path)
    return path.read_bytes()


def test_a_picture(tmp_path: Path) -> None:
    data = drawn("gpu0 ready", tmp_path / "a.png")
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (244, 98)
    assert data == drawn("gpu0 ready", tmp_path / "b.png")


@pytest.mark.parametrize("glyph", "a⣿⡠⧖●◐✖✔█▁━┏Σ→⚠")
def test_every_glyph_of_the_screen_is_drawn(glyph: str, tmp_path: Path) -> None:
    blank = drawn(" ", tmp_path / "blank.png")
    missing = drawn("\U000f1234", tmp_path / "missing.png")
    assert drawn(glyph, tmp_path / "glyph.png") not in (blank, missing)


def test_no_font_comes_from_the_network() -> None:
    plain = without_web_fonts(SVG.format(text="x"))
    assert "cdn.example" not in plain and "Fira" not in plain
    assert f"font-family: {FAMILY}" in plain


def test_the_symbols_font_is_what_its_script_draws(tmp_path: Path) -> None:
    build(tmp_path / "font.ttf")
    assert (tmp_path / "font.ttf").read_bytes() == (FONTS / "HcsSymbols.ttf").read_bytes()
    font = TTFont(FONTS / "HcsSymbols.ttf")
    assert set(BRAILLE) <= set(font.getBestCmap())
    assert TTFont(FONTS / "DejaVuSansMono.ttf")["hmtx"]["a"][0] == ADVANCE


def test_without_the_library_one_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(PngUnavailable) as caught:
        svg_to_png(SVG, tmp_path / "x.png")
    message, code = explain(caught.value)
    assert "pip install 'hcs-tui[png]'" in message
    assert code == 2
