"""The dashboard as a picture and as text, without a terminal."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass

from textual.app import App
from textual.strip import Strip

from tui.fleet.api import Source
from tui.view.app import HcsApp

_KEYS = {"wall": "w", "merged": "m", "charts": "c", "hosts": "h"}
VIEWS = ("board", *_KEYS)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One screen: an SVG document, and its text with a newline after each row."""

    svg: str
    text: str


def snapshot(
    source: Source,
    *,
    size: tuple[int, int] = (120, 36),
    theme: str = "dark",
    view: str = "board",
    selected: str | None = None,
) -> Snapshot:
    """Draw ``source`` once. The same states and ``source.now()`` give the same bytes.

    ``size`` is columns × rows; ``view`` is one of ``VIEWS``; ``selected`` is the server whose details are shown (else
    one that starts or failed). Raises ``ValueError`` for an unknown view. Not to be called from a running event loop.
    """
    return asyncio.run(take(source, size=size, theme=theme, view=view, selected=selected))


async def take(
    source: Source,
    *,
    size: tuple[int, int] = (120, 36),
    theme: str = "dark",
    view: str = "board",
    selected: str | None = None,
    keys: Iterable[str] = (),
) -> Snapshot:
    """``snapshot`` for callers that have a loop; ``keys`` are pressed before the picture is taken."""
    if view not in VIEWS:
        raise ValueError(f"no view {view!r}; there are {', '.join(VIEWS)}")
    app = HcsApp(source, theme=theme, frozen=True)
    app.animation_level = "none"
    async with app.run_test(size=size) as pilot:
        app.select(selected or app.worth_showing() or "")
        if view != "board":
            await pilot.press(_KEYS[view])
            await app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()
        app.draw()
        await pilot.pause()
        shown = Snapshot(_titled(app.export_screenshot(title="hcs-tui"), source.title), screen_text(app))
        app.close_merged()
        return shown


def screen_text(app: App[None]) -> str:
    """The text on the screen, row by row."""
    return "".join("".join(segment.text for segment in strip).rstrip() + "\n" for strip in screen_strips(app))


def screen_strips(app: App[None]) -> list[Strip]:
    """What is on the screen, row by row. Textual has no public way to read it: only here the compositor is used."""
    return app.screen._compositor.render_strips(app.size)


def _titled(svg: str, title: str) -> str:
    """The title bar with the fleet's name."""
    safe = title.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"(class=\"[^\"]*-title\"[^>]*>)hcs-tui(</text>)", rf"\1hcs-tui · {safe}\2", svg, count=1)
