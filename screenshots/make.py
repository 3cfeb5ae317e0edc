"""Draw this folder's pictures anew: ``make screenshots``.

One demo fleet is started: ``startup`` is drawn while it comes up, the others, from the same states, after it has served
for a while. Each is drawn in each theme, as SVG and PNG.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from tui.cli.demo import running_demo
from tui.fleet.outcome import settled
from tui.fleet.thread import FleetThread
from tui.report.png import svg_to_png
from tui.view.snapshot import take

HERE = Path(__file__).resolve().parent
SERVING_SECONDS = 30.0  # so that sparklines and charts have a past to show
PATIENCE_SECONDS = 120.0
PINNED = 66e9  # bytes of the 100 GB of the first server: its second pool is being pinned then
THEMES = ("dark", "light")


@dataclass(frozen=True)
class Picture:
    """A view, of so many columns and rows, with the details of a server, after some keys."""

    view: str = "board"
    size: tuple[int, int] = (120, 36)
    selected: str | None = None
    keys: tuple[str, ...] = ()


STARTING = {"startup": Picture(selected="gpu0")}
SERVING = {
    "dashboard": Picture(),
    "search": Picture(selected="gpu0", keys=("slash", *"allocat", "enter")),
    "wall": Picture("wall"),
    "charts": Picture("charts"),
    "merged": Picture("merged"),
    "hosts": Picture("hosts", (120, 14)),
    "narrow": Picture(size=(72, 36)),
}


def draw(source: FleetThread, pictures: Mapping[str, Picture]) -> None:
    """Write ``pictures`` of what ``source`` is now."""
    drawn = {
        HERE / f"{name}-{theme}.svg": asyncio.run(take(source, theme=theme, **vars(picture))).svg
        for (name, picture), theme in product(pictures.items(), THEMES)
    }
    for path, svg in drawn.items():
        path.write_text(svg)
        svg_to_png(svg, path.with_suffix(".png"))
        print(f"{path} written", file=sys.stderr)


def pins(source: FleetThread) -> bool:
    """Whether the first server is pinning its second host pool."""
    memory = source.states()[0].memory
    return memory is not None and memory.pinned > PINNED


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not reached():
        if time.monotonic() > deadline:
            sys.exit("the demo's fleet did not come that far; not all pictures were drawn anew")
        time.sleep(0.1)


def main() -> None:
    with running_demo() as profile:
        source = FleetThread(profile, read_only=False, launch=True)
        source.start()
        try:
            wait_until(lambda: pins(source))
            draw(source, STARTING)
            wait_until(lambda: settled(source.states(), source.now()))
            time.sleep(SERVING_SECONDS)
            draw(source, SERVING)
        finally:
            source.stop()


if __name__ == "__main__":
    main()
