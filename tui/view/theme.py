"""Colours: four themes of our own, two of them for the colour-blind, and the inks of the drawings for any theme.

An ink is a name that a drawing uses; several may be joined by spaces (``"bad bold"``), later ones winning.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

DARK = "hcs-dark"
LIGHT = "hcs-light"
DARK_BLIND = "hcs-dark-colour-blind"
LIGHT_BLIND = "hcs-light-colour-blind"

_DARK = {
    "ground": "#0f141b",
    "panel": "#151c25",
    "line": "#33414f",
    "text": "#dbe3ec",
    "muted": "#8c9aab",
    "accent": "#6cb2f7",
    "ok": "#68d391",
    "start": "#5fd0e0",
    "warn": "#f2bd5c",
    "bad": "#ff8080",
    "kv": "#6cb2f7",
    "mamba": "#c4a0fb",
    "done": "#58788f",
    "key": "#f2bd5c",
    "choice": "#1b2733",
    "found": "#5b4a12",
}
_LIGHT = {
    "ground": "#faf9f6",
    "panel": "#f1efe9",
    "line": "#bcc4cc",
    "text": "#1e2832",
    "muted": "#586472",
    "accent": "#1a5cb4",
    "ok": "#146c43",
    "start": "#0b6477",
    "warn": "#855000",
    "bad": "#b3212b",
    "kv": "#1a5cb4",
    "mamba": "#6d35b5",
    "done": "#607d96",
    "key": "#855000",
    "choice": "#e6e9ec",
    "found": "#ffe08a",
}
_DARK_BLIND = _DARK | {
    "accent": "#4ea7fa",
    "ok": "#4ea7fa",
    "start": "#d6f8ef",
    "warn": "#fcc424",
    "bad": "#ee664f",
    "muted": "#8c929a",
    "kv": "#4ea7fa",
    "mamba": "#f0a6c8",
    "key": "#fcc424",
}
"""The inks of states far apart also to eyes without one of the three cones: blue for green, and each of its own
brightness."""
_LIGHT_BLIND = _LIGHT | {
    "accent": "#044df4",
    "ok": "#044df4",
    "start": "#b018a6",
    "warn": "#865f01",
    "bad": "#590b02",
    "muted": "#464d55",
    "kv": "#044df4",
    "mamba": "#8a2a5a",
    "key": "#865f01",
}
PALETTES: dict[str, Mapping[str, str]] = {
    DARK: _DARK,
    LIGHT: _LIGHT,
    DARK_BLIND: _DARK_BLIND,
    LIGHT_BLIND: _LIGHT_BLIND,
}
_WORDS = {"dark": DARK, "light": LIGHT, "dark-colour-blind": DARK_BLIND, "light-colour-blind": LIGHT_BLIND}
"""What a user calls them."""

TEXT_INKS = ("text", "muted", "accent", "ok", "start", "warn", "bad", "kv", "mamba", "key")
"""Inks that carry words: each needs a contrast of 4.5 to 1 with the ground."""
DRAWN_INKS = ("done", *TEXT_INKS)
"""Inks of bars and lines that tell something: 3 to 1."""


_TRACKS = ("background", "background-hover", "background-active", "corner-color")


def _theme(name: str, palette: Mapping[str, str], dark: bool) -> Theme:
    return Theme(
        name=name,
        primary=palette["accent"],
        secondary=palette["mamba"],
        accent=palette["accent"],
        foreground=palette["text"],
        background=palette["ground"],
        surface=palette["ground"],
        panel=palette["panel"],
        success=palette["ok"],
        warning=palette["warn"],
        error=palette["bad"],
        dark=dark,
        variables={
            "border": palette["accent"],
            "border-blurred": palette["line"],
            "footer-key-foreground": palette["key"],
            "input-selection-background": f"{palette['accent']} 35%",
            "scrollbar": palette["line"],
            "scrollbar-hover": palette["done"],
            "scrollbar-active": palette["accent"],
            **{f"scrollbar-{part}": palette["panel"] for part in _TRACKS},
            **{f"hcs-{ink}": colour for ink, colour in palette.items()},
        },
    )


THEMES = tuple(_theme(name, palette, name in (DARK, DARK_BLIND)) for name, palette in PALETTES.items())


class Inks:
    """The styles of one theme's inks, on its ground; as greys where colours are not wanted."""

    def __init__(self, theme: Theme, *, grey: bool = False, ascii: bool = False) -> None:
        self.ascii = ascii  # whether rows are drawn with characters of ASCII alone
        self._palette = _palette(theme)
        if grey:
            self._palette = {ink: Color.parse(colour).monochrome.hex for ink, colour in self._palette.items()}
        self.ground = Style.parse(f"{self._palette['text']} on {self._palette['ground']}")
        self._made: dict[str, Style] = {}

    def __getitem__(self, ink: str) -> Style:
        style = self._made.get(ink)
        if style is None:
            style = self._made[ink] = self._make(ink)
        return style

    def colour(self, ink: str) -> str:
        return self._palette[ink]

    def rgb(self, ink: str) -> tuple[int, int, int]:
        return Color.parse(self._palette[ink]).rgb

    def _make(self, ink: str) -> Style:
        style = self.ground
        for word in ink.split():
            style += self._word(word)
        return style

    def _word(self, word: str) -> Style:
        match word:
            case "bold" | "underline" | "reverse" | "dim" | "italic":
                return Style.parse(word)
            case "choice":
                return Style(bgcolor=self._palette[word])
            case "found":  # words of any ink: only text can be read on it in all themes
                return Style(color=self._palette["text"], bgcolor=self._palette[word])
            case _:
                return Style(color=self._palette[word])


def _palette(theme: Theme) -> dict[str, str]:
    """All inks of any theme."""
    base = PALETTES[DARK if theme.dark else LIGHT]
    own = {key.removeprefix("hcs-"): value for key, value in theme.variables.items() if key.startswith("hcs-")}
    return {**base, **(own or _from_theme(theme))}


def theme_variables(theme: Theme) -> dict[str, str]:
    """The inks as the stylesheet's variables, for themes that do not have them."""
    return {f"hcs-{ink}": colour for ink, colour in _palette(theme).items()}


def _from_theme(theme: Theme) -> dict[str, str]:
    """The inks of somebody else's theme, as far as it names colours as hex."""
    named = {
        "ground": theme.background,
        "panel": theme.panel,
        "text": theme.foreground,
        "accent": theme.accent or theme.primary,
        "ok": theme.success,
        "start": theme.secondary,
        "warn": theme.warning,
        "bad": theme.error,
        "kv": theme.primary,
        "mamba": theme.secondary,
        "key": theme.warning,
    }
    return {ink: colour for ink, colour in named.items() if colour and colour.startswith("#")}


def theme_name(word: str) -> str:
    """``dark``, ``light`` and so on as our own themes; any other name as it is."""
    return _WORDS.get(word, word)


def theme_names() -> tuple[str, ...]:
    """What ``--theme`` takes: ours first, then Textual's own."""
    return (*_WORDS, *sorted(BUILTIN_THEMES))
