"""``hcs-tui replay``: the dashboard over saved logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tui.cli.errors import fail
from tui.cli.exits import Exit
from tui.cli.options import ascii_option, narrate
from tui.cli.parse import HEAD, foreign
from tui.fleet.saved import SavedLogs
from tui.profile.files import not_a_file
from tui.profile.problem import one_line


def saved_logs(names: Sequence[str], *, behind: bool = False) -> SavedLogs:
    """The named files as a source; where none of them can be shown, the command ends with a line for each.
    ``behind``: large ones are read once the dashboard is there."""
    paths, wrong = _checked(names)
    return SavedLogs(paths, behind=behind, wrong=wrong)


def _checked(names: Sequence[str]) -> tuple[list[Path], dict[Path, str]]:
    """The files, and why some of them cannot be shown, which is told."""
    paths = [Path(name) for name in names]
    for path in paths:
        if not path.exists():
            fail(f"{path}: no such file")
    wrong = {path: why for path in paths if (why := _no_log(path))}
    told = [one_line(f"{path}: {why}") for path, why in wrong.items()]
    *others, last = told or [""]
    for line in others:
        narrate(line)
    if told and len(wrong) == len(set(paths)):
        fail(last)
    if told:
        narrate(last)
    return paths, wrong


def _no_log(path: Path) -> str:
    """Why a file cannot be shown; empty where it can."""
    try:
        if wrong := not_a_file(path, pipes=False):
            return f"{wrong}; only saved log files can be shown"
        with path.open("rb") as file:
            return foreign(file.read(HEAD), str(path))
    except OSError as error:
        return f"cannot be read: {(error.strerror or str(error)).lower()}"


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

    paths, wrong = _checked(logs)
    played = PlayedLogs(paths, speed, wrong=wrong)
    try:
        return show(played, played.start, ascii=ascii)
    finally:
        played.close()
