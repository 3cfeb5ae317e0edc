"""``hcs-tui status``: what each server does now, as a table or JSON; ``--watch`` goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import click

from tui.cli.exits import Exit
from tui.cli.options import (
    Seconds,
    json_option,
    open_profile,
    print_json,
    print_text,
    profile_argument,
    servers_argument,
)
from tui.cli.session import host_exit, open_fleet, say_plainly
from tui.cli.waiting import PATIENCE_SECONDS
from tui.fleet.fleet import Fleet
from tui.profile.model import Profile, Server
from tui.report.json import document
from tui.report.text import status_table

_WATCH_SECONDS = 1.0


async def status(
    profile: Profile, servers: Sequence[Server], as_json: bool, watch: bool, timeout: float = PATIENCE_SECONDS
) -> Exit:
    async with open_fleet(profile, servers, say_plainly, read_only=True, patience=timeout) as fleet:
        _show(fleet, profile.name, as_json)
        seen = fleet.version
        while watch:
            await asyncio.sleep(_WATCH_SECONDS)
            if fleet.version != seen:
                seen = fleet.version
                _show(fleet, profile.name, as_json)
        return host_exit(fleet)


def _show(fleet: Fleet, profile: str, as_json: bool) -> None:
    now = time.time()
    if as_json:
        print_json(document(profile, fleet.states(), now), line=True)
    else:
        print_text(status_table(fleet.states(), now))


@click.command("status")
@profile_argument
@servers_argument
@json_option
@click.option("--watch", is_flag=True, help="Go on, with a new table or JSON line after each change.")
@click.option(
    "--timeout", type=Seconds(min=0), default=PATIENCE_SECONDS, metavar="S", help="Seconds for a host to answer [15]."
)
def command(profile: str, servers: tuple[str, ...], as_json: bool, watch: bool, timeout: float) -> Exit:
    """What each server does now. Looks, and changes nothing."""
    loaded = open_profile(profile)
    return asyncio.run(status(loaded, loaded.select(servers), as_json, watch, timeout))
