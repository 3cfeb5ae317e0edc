"""``hcs-tui replay``: the dashboard over saved logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tui.cli.errors import fail
from tui.cli.exits import Exit
from tui.cli.options import ascii_option
from tui.cli.parse import HEAD, foreign
from tui.fleet.saved import SavedLogs
from tui.profile.files import not_a_file


def saved_logs(names: Sequence[str], *, behind: bool = False) -> SavedLogs:
    """The named files as a source; a file that cannot be read ends the command with one line.
    ``behind``: large ones are read once the dashboard is there."""
    return SavedLogs(_checked(names), behind=behind)


def _checked(names: Sequence[str]) -> list[Path]:
    paths = [Path(name) for name in names]
    for path in paths:
        if not path.exists():
            fail(f"{path}: no such file")
        if wrong := not_a_file(path, pipes=False):
            fail(f"{path}: {wrong}; only saved log files can be shown")
        with path.open("rb") as file:
            if problem := foreign(file.read(HEAD), str(path)):
                fail(f"{path}: {problem}", Exit.UNDECIDED)
    return paths


@click.command("replay")
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@ascii_option
@click.option(
    "--speed",
    metavar="X",
    type=click.FloatRange(min=0, min_open=True, max=1e6),
    help="Play them by their time stamps, X times as fast as it was.",
)
def command(logs: tuple[str, ...], speed: float | None, ascii: bool) -> Exit:
    """Open the dashboard over saved logs, at their end, or play them."""
    from tui.cli.dashboard import show

    if speed is None:
        source = saved_logs(logs, behind=True)
        return show(source, source.start, ascii=ascii)
    from tui.fleet.played import PlayedLogs

    played = PlayedLogs(_checked(logs), speed)
    try:
        return show(played, played.start, ascii=ascii)
    finally:
        played.close()
