"""``hcs-tui up``: launch what does not run, and wait until each server is ready or failed."""

from __future__ import annotations

import click

from tui.cli.exits import Exit
from tui.cli.options import Seconds, json_option, open_profile, profile_argument, servers_argument


@click.command("up")
@profile_argument
@servers_argument
@click.option("--timeout", type=Seconds(min=0), metavar="S", help="Seconds to wait [profile: ready_timeout].")
@json_option
@click.option("--dry-run", "dry", is_flag=True, help="Show what would be launched, and contact nothing.")
@click.option("--stay", is_flag=True, help="Watch on, and apply restart policies, until interrupted.")
def command(
    profile: str, servers: tuple[str, ...], timeout: float | None, as_json: bool, dry: bool, stay: bool
) -> Exit:
    """Launch what does not run, and wait until each server is ready or failed. Leaves them running."""
    loaded = open_profile(profile)
    selected = loaded.select(servers)
    if dry:
        from tui.cli.dryrun import dry_run

        return dry_run(selected, as_json)
    import asyncio

    from tui.cli.launching import stay_up, up

    if stay:
        return asyncio.run(stay_up(loaded, selected, timeout, as_json))
    return asyncio.run(up(loaded, selected, timeout, as_json, stay=False))
