"""``hcs-tui import``: a launch line or script as a profile."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tui.cli.errors import fail
from tui.cli.options import narrate, print_text
from tui.profile.files import not_a_file

MAX_BYTES = 1 << 20


@click.command("import")
@click.argument("source", metavar="'COMMAND LINE'|FILE|-")
def command(source: str) -> None:
    """Print the profile that a launch line, or a script with launch lines in it, amounts to."""
    from tui.profile.importer import NothingToImport, import_script

    text = _text(source)
    try:
        profile, notes = import_script(text)
    except NothingToImport as error:
        fail(f"{source if len(source) <= 60 else source[:57] + '...'}: {error}")
    print_text(profile.rstrip("\n"))
    for note in notes:
        narrate(f"note: {note}")


def _text(source: str) -> str:
    """The command line itself, or the text of the file that it names."""
    if source == "-":
        return sys.stdin.read(MAX_BYTES) if sys.stdin else ""  # ``None`` when it is closed
    if not source.strip():
        fail("import: the command line is empty")
    if any(c.isspace() for c in source.strip()):
        return source
    path = Path(source)
    if not path.exists():
        fail(f"{source}: no such file; to import a command line, put it in quotes")
    if wrong := not_a_file(path):
        fail(f"{source}: {wrong}; name a script, or put the command line in quotes")
    with path.open("rb") as file:
        data = file.read(MAX_BYTES)
    if b"\0" in data:
        fail(f"{source}: is no shell script")
    return data.decode("utf-8", "replace")
