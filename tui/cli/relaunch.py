"""``hcs-tui relaunch``: end servers, launch them again, perhaps with other flags, and wait."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import click

from tui.cli.errors import fail
from tui.cli.exits import Exit
from tui.cli.launching import launch_and_wait, summarise
from tui.cli.options import Seconds, json_option, open_profile, profile_argument
from tui.cli.session import Narrator, left_out, open_fleet
from tui.cli.waiting import answer_within
from tui.fleet.api import Relaunch
from tui.fleet.supervisor import Supervisor
from tui.profile.model import Profile, Server
from tui.sglang.events import Event
from tui.sglang.state import ServerState


async def relaunch(
    profile: Profile, servers: Sequence[Server], overrides: Mapping[str, object], timeout: float | None, as_json: bool
) -> Exit:
    narrator = Narrator(as_json)
    async with open_fleet(profile, servers, narrator.say, patience=answer_within(timeout)) as fleet:
        names = [n for n in fleet.supervisors if not fleet.host_of(n).error]

        def tell_end(supervisor: Supervisor, before: ServerState, _event: Event) -> None:
            """It can take its whole grace, and nothing else is heard of it."""
            if supervisor.state.stop_asked and not before.stop_asked:
                narrator.say(supervisor.server.name, "stopping", "stopping")

        fleet.listeners.append(tell_end)
        done = await asyncio.gather(*(fleet.act(Relaunch(name, overrides)) for name in names))
        fleet.listeners.remove(tell_end)
        code = await launch_and_wait(fleet, dict(zip(names, done, strict=True)), narrator, timeout)
        summarise(fleet, as_json)
        return Exit.worst([code, left_out(fleet, names)])


@click.command("relaunch")
@profile_argument
@click.argument("servers", metavar="SERVER...", nargs=-1, required=True)
@click.option("--set", "changes", multiple=True, metavar="FLAG=VALUE", help="A flag to change; FLAG=null removes it.")
@click.option("--timeout", type=Seconds(min=0), metavar="S", help="Seconds to wait [profile: ready_timeout].")
@json_option
def command(
    profile: str, servers: tuple[str, ...], changes: tuple[str, ...], timeout: float | None, as_json: bool
) -> Exit:
    """End servers, launch them again, and wait until each is ready or failed."""
    loaded = open_profile(profile)
    chosen = loaded.select(servers)
    overrides = dict(_change(text) for text in changes)
    for server in chosen:  # a wrong flag is told before anything is ended
        try:
            server.with_args(overrides)
        except ValueError as error:
            fail(f"{server.name}: {error}")
    return asyncio.run(relaunch(loaded, chosen, overrides, timeout, as_json))


def _change(text: str) -> tuple[str, object]:
    """``FLAG=VALUE`` with the value read as YAML, like in a profile; a flag alone is a bare flag."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    flag, equals, value = text.partition("=")
    if not flag.strip("- ") or not equals:
        fail(f"--set {text!r}: a change is FLAG=VALUE (FLAG=true for a bare flag, FLAG=null removes it)")
    try:
        return flag, YAML(typ="safe", pure=True).load(value)
    except YAMLError:
        return flag, value
