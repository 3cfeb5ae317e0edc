"""Draw this folder's pictures anew: ``make screenshots``.

One demo fleet is started and left to serve for a while; then each view is drawn from the same states, in each theme, as
SVG and PNG, with the code of ``hcs-tui snapshot``.
"""

from __future__ import annotations

import sys
import time
from itertools import product
from pathlib import Path

from tui.cli.demo import running_demo
from tui.cli.exits import Exit
from tui.cli.snapshot import wait_for, write
from tui.fleet.thread import FleetThread

HERE = Path(__file__).resolve().parent
SERVING_SECONDS = 30.0  # so that sparklines and charts have a past to show
VIEWS = {  # name → view, columns and rows
    "dashboard": ("board", (120, 36)),
    "wall": ("wall", (120, 36)),
    "charts": ("charts", (120, 36)),
    "narrow": ("board", (72, 36)),
}
THEMES = ("dark", "light")
ENDINGS = (".svg", ".png")


def main() -> None:
    with running_demo() as profile:
        source = FleetThread(profile, read_only=False, launch=True)
        try:
            if wait_for(source, "settled") is not Exit.OK:
                sys.exit("the demo's fleet did not settle; no picture was changed")
            time.sleep(SERVING_SECONDS)
            for (name, (view, size)), theme, ending in product(VIEWS.items(), THEMES, ENDINGS):
                write(source, HERE / f"{name}-{theme}{ending}", size, theme, view, profile.name)
        finally:
            source.stop()


if __name__ == "__main__":
    main()
