"""Draws ``tui/report/fonts/HcsSymbols.ttf``: what DejaVu Sans Mono lacks and the dashboard shows (braille, hourglass).

Run it as ``python -m tests.report.make_font FILE``; the same bytes come out every time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import cos, pi, sin
from pathlib import Path

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

EM, ADVANCE, ASCENT, DESCENT = 2048, 1233, 1901, -483  # DejaVu Sans Mono's, so that columns and rows align
FAMILY = "Hcs Symbols"
BRAILLE = range(0x2800, 0x2900)
HOURGLASS = 0x29D6
DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))  # (column, row) of the bits of a braille cell
RADIUS = 130
EPOCH = 3_000_000_000  # seconds since 1904, any fixed time

Points = list[tuple[int, int]]


def dot(column: int, row: int) -> Points:
    """A braille dot as a circle of 16 sides. Four rows fill the line's height evenly, so that curves do not break."""
    x = ADVANCE * (1 + 2 * column) / 4
    y = ASCENT - (ASCENT - DESCENT) * (1 + 2 * row) / 8
    angles = [-2 * pi * step / 16 for step in range(16)]
    return [(round(x + RADIUS * cos(angle)), round(y + RADIUS * sin(angle))) for angle in angles]


def outlines(code: int) -> Iterator[Points]:
    """The closed lines of a character."""
    if code in BRAILLE:
        yield from (dot(*place) for bit, place in enumerate(DOTS) if code >> bit & 1)
    elif code == HOURGLASS:
        left, middle, right, top, centre, bottom = 180, 616, 1053, 1400, 700, 0
        yield [(left, top), (right, top), (middle, centre)]
        yield [(left, bottom), (middle, centre), (right, bottom)]


def build(path: Path) -> None:
    """Write the font."""
    codes = [0x20, *BRAILLE, HOURGLASS]
    names = {code: f"uni{code:04X}" for code in codes}
    glyphs = {".notdef": TTGlyphPen(None).glyph()}
    for code in codes:
        pen = TTGlyphPen(None)
        for points in outlines(code):
            pen.moveTo(points[0])
            for point in points[1:]:
                pen.lineTo(point)
            pen.closePath()
        glyphs[names[code]] = pen.glyph()
    font = FontBuilder(EM, isTTF=True)
    font.setupGlyphOrder(list(glyphs))
    font.setupCharacterMap(names)
    font.setupGlyf(glyphs)
    font.setupHorizontalMetrics(dict.fromkeys(glyphs, (ADVANCE, 0)))
    font.setupHorizontalHeader(ascent=ASCENT, descent=DESCENT)
    font.setupNameTable({"familyName": FAMILY, "styleName": "Regular", "fullName": FAMILY, "psName": "HcsSymbols"})
    font.setupOS2(sTypoAscender=ASCENT, sTypoDescender=DESCENT, usWinAscent=ASCENT, usWinDescent=-DESCENT)
    font.setupPost(isFixedPitch=1)
    font.updateHead(created=EPOCH, modified=EPOCH)
    font.font.recalcTimestamp = False
    font.save(path)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
