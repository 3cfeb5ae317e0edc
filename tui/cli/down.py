"""``hcs-tui down``: end servers and prove that nothing is left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import click

from tui.cli.exits import Exit
from tui.cli.launching import summarise
from tui.cli.options import Seconds, json_option, open_profile, profile_argument, servers_argument
from tui.cli.session import Narrator, host_exit, left_out, open_fleet
from tui.fleet.api import PATIENCE, Kill
from tui.fleet.fleet import Fleet
from tui.profile.model import Profile, Server

_END_SECONDS = 3.0  # for the end of what was killed to be told


async def down(
    profile: Profile, servers: Sequence[Server], grace: float | None, as_json: bool, timeout: float = PATIENCE
) -> Exit:
    narrator = Narrator(as_json)
    async with open_fleet(profile, servers, narrator.say, patience=timeout, waited=timeout) as fleet:
        names = [n for n in fleet.supervisors if not fleet.host_of(n).error]

        async def kill(name: str) -> Exit:
            outcome = await fleet.act(Kill(name, grace, patience=timeout))
            narrator.say(name, "down", outcome.message, ok=outcome.ok, **outcome.details)
            return Exit.OK if outcome.ok else Exit.FAILED

        codes = await asyncio.gather(*(kill(name) for name in names))
        await fleet.until(lambda: all(_told(fleet, name) for name in names), _END_SECONDS)
        if as_json:
            summarise(fleet, as_json)
        return Exit.worst([*codes, host_exit(fleet), left_out(fleet, names)])


def _told(fleet: Fleet, name: str) -> bool:
    """Whether the server's end has been told, or cannot be."""
    return not fleet.supervisors[name].running or fleet.host_of(name).error is not None


@click.command("down")
@profile_argument
@servers_argument
@click.option("--grace", type=Seconds(min=0), metavar="S", help="Seconds before SIGKILL [profile: stop_grace].")
@click.option(
    "--timeout", type=Seconds(min=0), default=PATIENCE, metavar="S",
    help=f"Seconds for a host to answer, also for one that is lost meanwhile to come back [{PATIENCE:g}].",
)  # fmt: skip
@json_option
def command(profile: str, servers: tuple[str, ...], grace: float | None, timeout: float, as_json: bool) -> Exit:
    """End servers, and prove that nothing of them is left."""
    loaded = open_profile(profile)
    return asyncio.run(down(loaded, loaded.select(servers), grace, as_json, timeout))
