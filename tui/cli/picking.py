"""The profiles that ``hcs-tui`` without a PROFILE offers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tui.profile.builtin import available_profiles, builtin_profiles
from tui.profile.load import load, read_text
from tui.profile.problem import ProfileError
from tui.view.screens.picker import Choice


def choices() -> list[Choice]:
    """All of them in the order in which a bare name is looked for; the broken ones with their mistakes."""
    ours = {path.resolve() for path in builtin_profiles()}
    return [_choice(path, _place(path, built_in=path.resolve() in ours)) for path in available_profiles()]


def _place(path: Path, *, built_in: bool) -> str:
    if not path.is_absolute():
        return f"./{path.parent}"
    return "built-in" if built_in else "yours"


def _choice(path: Path, place: str) -> Choice:
    try:
        profile = load(path)
    except ProfileError as error:
        return Choice(
            path, path.stem, place, errors=tuple(str(replace(problem, file=path.name)) for problem in error.problems)
        )
    hosts = tuple(dict.fromkeys(server.host.name for server in profile.servers))
    return Choice(path, path.stem, place, _description(path), hosts, len(profile.servers))


def _description(path: Path) -> str:
    """The first line of the comment at its top."""
    first = read_text(path).lstrip().partition("\n")[0]
    return first.lstrip("# ").rstrip(" .") if first.startswith("#") else ""
