"""ASCII alone on the screen: a filter behind all drawing, also of borders and dialogs. Widths stay as they are."""

from __future__ import annotations

import unicodedata
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
_DRAWN = {0x2500: "-", 0x2501: "-", 0x2502: "|", 0x2503: "|", 0x2504: ".", 0x2505: ".", 0x2508: ".", 0x254C: "-"}


@lru_cache(maxsize=4096)
def ascii_text(text: str) -> str:
    """``text`` with a character of ASCII, or two for a wide one, in the place of every other."""
    return text if text.isascii() else "".join(map(_ascii, text))


@lru_cache(maxsize=4096)
def _ascii(character: str) -> str:
    if character.isascii():
        return character
    if known := _SHAPES.get(character) or _BARS.get(character):
        return known
    code = ord(character)
    if 0x2500 <= code <= 0x257F:
        return _DRAWN.get(code) or ("|" if "VERTICAL" in _name(character) and "AND" not in _name(character) else "+")
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
