"""SVG pictures of the screen → PNG, with bundled fonts only, so that they look the same on every machine."""

from __future__ import annotations

import re
from importlib.resources import as_file, files
from pathlib import Path

FAMILY = "DejaVu Sans Mono"
FONT_SIZE = 21  # at Rich's 20 the boxes of this font have gaps between their lines, which are 24.4 high
ZOOM = 2  # a picture for a front page is seen on dense screens
_FONT_FACE = re.compile(r"@font-face\s*\{[^}]*\}\s*")
_FONT_FAMILY = re.compile(r"font-family:[^;}]*")


class PngUnavailable(RuntimeError):
    """The library that draws PNG is not installed; the message says how to get it."""


def svg_to_png(svg: str, path: Path) -> None:
    """Draw ``svg`` (as Rich exports a screen) into the PNG file ``path``.

    Raises ``PngUnavailable`` without resvg_py, ``OSError`` where ``path`` cannot be written, ``ValueError`` for what
    is no SVG.
    """
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        raise PngUnavailable("PNG needs resvg_py: pip install 'hcs-tui[png]', or write .svg instead") from None
    with as_file(files("tui.report") / "fonts") as folder:
        data = svg_to_bytes(
            svg_string=without_web_fonts(svg),
            skip_system_fonts=True,
            font_files=sorted(str(font) for font in folder.glob("*.ttf")),
            font_family=FAMILY,
            monospace_family=FAMILY,
            sans_serif_family=FAMILY,
            zoom=ZOOM,
        )
    path.write_bytes(data)


def without_web_fonts(svg: str) -> str:
    """The same picture without fonts from the network: every text in ``FAMILY``, or else any fixed-width font."""
    families = _FONT_FAMILY.sub(f"font-family: {FAMILY}, monospace", _FONT_FACE.sub("", svg))
    return families.replace("font-size: 20px", f"font-size: {FONT_SIZE}px")
