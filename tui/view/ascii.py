"""ASCII alone on the screen: a filter behind all drawing, also of borders and dialogs. Widths stay as they are."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_SHAPES = {
    **dict(zip("○◐●◑◌✖⚠▌▐✔▼▲", "o%*~.x!>|+v^", strict=True)),
    **dict(zip("→←↑↓⇄↻…·Σ×›‹⌫▏▕", "><^v=@~-Sx><<||", strict=True)),
    **dict(zip("“”‘’–—", "\"\"''--", strict=True)),
}
"""Each state's shape becomes another character, so that states still differ."""
_BARS = dict(zip("▁▂▃▄▅▆▇█", "_.-:=+*#", strict=True))
_EDGES = {**dict.fromkeys("▉▊▋▍▎", "|"), **dict(zip("▔▀", "--", strict=True)), "🔎": "> ", "°": " "}
"""What Textual draws inputs and its list of commands with; and the sign of degrees."""
_DRAWN = {**dict(zip("─━│┃┄┅┈╌", "-=||...-", strict=True)), **dict(zip("╸╍┿", "+:|", strict=True))}
"""Lines and bars: what is filled (``=``, half a column ``+``), planned (``:``) and empty (``-``) differ; ``|`` is where
the last run ended."""
_KNOWN = {**_SHAPES, **_BARS, **_EDGES, **_DRAWN}


@lru_cache(maxsize=4096)
def ascii_text(text: str) -> str:
    """``text`` with a character of ASCII, or two for a wide one, in the place of every other."""
    return text if text.isascii() else "".join(map(_ascii, text.replace("→ ", "->")))


def wide_arrows(texts: Sequence[str], columns: int) -> list[str]:
    """``texts`` of one row, with ``->`` for ``→`` where that leaves the row within ``columns``."""
    row = "".join(texts)
    arrows = row.count("→")
    if arrows and cell_len(row.rstrip()) + arrows <= columns:
        return [text.replace("→", "->") for text in texts]
    return [*texts]


@lru_cache(maxsize=4096)
def _ascii(character: str) -> str:
    if character.isascii():
        return character
    if known := _KNOWN.get(character):
        return known
    code = ord(character)
    if 0x2500 <= code <= 0x257F:
        return "|" if "VERTICAL" in _name(character) and "AND" not in _name(character) else "+"
    if 0x2580 <= code <= 0x259F:
        return "#"
    if 0x2800 <= code <= 0x28FF:
        return ":" if (code & 0xFF).bit_count() > 2 else "." if code & 0xFF else " "
    if character.isspace():
        return " "
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    width = cell_len(character)
    return plain if len(plain) == width else "?" * width


def _name(character: str) -> str:
    return unicodedata.name(character, "")


class AsciiFilter(LineFilter):
    """Transliterates what was drawn."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(ascii_text(text), style, control) for text, style, control in segments]
