"""The dashboard over a fixed fleet, as a program: run in a terminal of its own.

    python -m tests.view.program FOLDER [--servers N] [--flood]

``--servers``: so many, in all phases. ``--flood``: their logs and figures grow without end. What was asked of the fleet
is written to ``FOLDER/acted`` at the end.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

from tests.view import sources
from tui.fleet.api import Outcome
from tui.view.app import HcsApp


def flood(source: sources.FixedSource) -> None:
    """Some 20,000 lines a second, and other figures ten times a second."""
    paths = sorted(set(source.logs.values()))
    lines = "".join(sources.decode_line(n, 400.0 + n) + "\n" for n in range(2000))
    for turn in range(1_000_000):
        with paths[turn % len(paths)].open("a") as file:
            file.write(lines)
        source.servers = tuple(replace(state, log_at=source.time + turn / 10) for state in source.servers)
        source.version += 1
        time.sleep(0.1)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--servers", type=int)
    parser.add_argument("--flood", action="store_true")
    options = parser.parse_args()
    folder: Path = options.folder
    source = sources.many(folder, options.servers) if options.servers else sources.fleet(folder)
    source.outcome = Outcome(True, "as it is launched", {"flags": {"tp-size": "2"}, "command": "python -m it"})
    if options.flood:
        threading.Thread(target=flood, args=(source,), daemon=True).start()
    app = HcsApp(source)
    app.run()
    (folder / "acted").write_text("".join(f"{type(action).__name__}\n" for action in source.acted))
    return app.return_code or app.ended_by


if __name__ == "__main__":
    sys.exit(main())
