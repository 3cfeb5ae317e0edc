"""``hcs-tui down``: end servers and prove that nothing is left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import click

from tui.cli.exits import Exit
from tui.cli.launching import summarise
from tui.cli.options import Seconds, json_option, open_profile, profile_argument, servers_argument
from tui.cli.session import Narrator, host_exit, open_fleet
from tui.fleet.api import Kill
from tui.profile.model import Profile, Server


async def down(profile: Profile, servers: Sequence[Server], grace: float | None, as_json: bool) -> Exit:
    narrator = Narrator(as_json)
    async with open_fleet(profile, servers, narrator) as fleet:
        names = [n for n in fleet.supervisors if not fleet.host_of(n).error]

        async def kill(name: str) -> Exit:
            outcome = await fleet.act(Kill(name, grace))
            narrator.say(name, "down", outcome.message, ok=outcome.ok, **outcome.details)
            return Exit.OK if outcome.ok else Exit.FAILED

        codes = await asyncio.gather(*(kill(name) for name in names))
        await fleet.until(lambda: all(not fleet.supervisors[n].running for n in names), 3.0)
        if as_json:
            summarise(fleet, as_json)
        return Exit.worst([*codes, host_exit(fleet)])


@click.command("down")
@profile_argument
@servers_argument
@click.option("--grace", type=Seconds(min=0), metavar="S", help="Seconds before SIGKILL [profile: stop_grace].")
@json_option
def command(profile: str, servers: tuple[str, ...], grace: float | None, as_json: bool) -> Exit:
    """End servers, and prove that nothing of them is left."""
    loaded = open_profile(profile)
    return asyncio.run(down(loaded, loaded.select(servers), grace, as_json))
