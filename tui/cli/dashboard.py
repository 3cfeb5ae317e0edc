"""``hcs-tui [PROFILE]``: the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tui.cli.errors import fail
from tui.cli.exits import Exit
from tui.cli.options import narrate, open_profile
from tui.cli.terminal import require_terminal
from tui.fleet.thread import FleetThread

if TYPE_CHECKING:
    from tui.fleet.api import Source
    from tui.profile.model import Profile


def show(source: Source) -> Exit:
    """Open the dashboard over any source."""
    require_terminal()
    from tui.view.app import HcsApp

    HcsApp(source).run()
    return Exit.OK


def show_profile(profile: Profile, *, read_only: bool = False, launch: bool = False) -> Exit:
    """Open the dashboard over a live fleet, which connects after the first paint and whose servers outlive it."""
    require_terminal()
    from tui.view.app import HcsApp

    source = FleetThread(profile, read_only=read_only, launch=launch)
    try:
        HcsApp(source, on_ready=source.start).run()
    finally:
        source.stop()
    return Exit.OK


@click.command("dashboard")
@click.argument("profile", required=False)
@click.option("--read-only", is_flag=True, help="Launch and kill nothing.")
def command(profile: str | None, read_only: bool) -> Exit:
    """Open the dashboard over PROFILE; without one, choose from those that are found."""
    if profile is None:
        require_terminal()
        profile = _pick()
    return show_profile(open_profile(profile), read_only=read_only)


def _pick() -> str:
    """Ask which of the profiles in ./profiles, the user's config folder and the built-in ones to open."""
    from tui.profile.builtin import available_profiles

    paths = available_profiles()
    if not paths:
        fail("no profile found: hcs-tui PROFILE, or put one into ./profiles")
    for number, path in enumerate(paths, 1):
        narrate(f"{number:3}  {path.stem:<24} {path}")
    choice: int = click.prompt("profile", type=click.IntRange(1, len(paths)), err=True)
    return str(paths[choice - 1])
