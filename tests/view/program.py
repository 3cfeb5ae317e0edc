"""The dashboard over a fixed fleet, as a program: run in a terminal by ``test_terminal.py``. Argument: a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.view import sources
from tui.view.app import HcsApp

if __name__ == "__main__":
    app = HcsApp(sources.fleet(Path(sys.argv[1])))
    app.run()
    sys.exit(app.ended_by)
