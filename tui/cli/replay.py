"""``hcs-tui replay``: the dashboard over saved logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tui.cli.errors import fail
from tui.cli.exits import Exit
from tui.fleet.saved import SavedLogs


def saved_logs(names: Sequence[str]) -> SavedLogs:
    """The named files as a source; a file that cannot be read ends the command with one line."""
    paths = [Path(name) for name in names]
    for path in paths:
        if path.is_dir():
            fail(f"{path} is a directory; replay takes log files")
        if not path.exists():
            fail(f"{path}: no such file")
    try:
        return SavedLogs(paths)
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")


@click.command("replay")
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
def command(logs: tuple[str, ...]) -> Exit:
    """Open the dashboard over saved logs, at their end."""
    from tui.cli.dashboard import show

    return show(saved_logs(logs))
