"""``hcs-tui forward``: a server's port on this machine's loopback, until interrupted."""

from __future__ import annotations

import asyncio
import socket

import click

from tui.cli.errors import fail
from tui.cli.exits import Exit
from tui.cli.options import narrate, open_profile, print_text, profile_argument
from tui.cli.session import open_fleet
from tui.fleet.api import Forward, HostState
from tui.fleet.fleet import Fleet
from tui.fleet.forwarding import WARNING, nothing_there
from tui.host.api import HostErrorKind
from tui.profile.model import Profile, Server

_LOOK_SECONDS = 0.3
_CODES = {HostErrorKind.REFUSED.value: Exit.FAILED, HostErrorKind.CONFIG.value: Exit.USAGE}


async def forward(profile: Profile, server: Server, local: int) -> Exit:
    async with open_fleet(profile, [server], _quiet, read_only=True) as fleet:
        outcome = await fleet.act(Forward(server.name, local))
        if not outcome.ok:
            fail(outcome.message, _CODES.get(str(outcome.details.get("error")), Exit.UNREACHABLE))
        print_text(str(outcome.details["url"]))
        narrate(f"leads to {server.name} on {server.host.name} until Ctrl+C; {WARNING}")
        return await _tell(fleet, server.name)


def _quiet(host: str, event: str, text: str, **details: object) -> None:
    """What there is to say of the host is said of its port."""


async def _tell(fleet: Fleet, server: str) -> Exit:
    """Say when the connection is lost, and when the port is there again; when nothing answers behind it, and when
    something does; for ever."""
    told, behind = "open", ""
    while True:
        [host] = fleet.hosts()
        now = _word(host)
        if now != told:
            narrate(f"{host.name}: {'the port is open again' if now == 'open' else now}")
        there = behind if now != "open" else nothing_there(fleet.supervisors[server].state)
        if there != behind:
            narrate(f"{server}: {there or 'is ready'}")
        told, behind = now, there
        await asyncio.sleep(_LOOK_SECONDS)


def _word(host: HostState) -> str:
    if host.phase in ("unreachable", "refused"):
        return host.message
    return next((one.trouble for one in host.forwards if one.trouble), "open")


def _must_be_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            fail(f"port {port} of this machine cannot be used: {(error.strerror or str(error)).lower()}")


@click.command("forward")
@profile_argument
@click.argument("server", metavar="SERVER")
@click.option("--local", type=click.IntRange(1, 65535), metavar="PORT", help="The port here [the server's, or any].")
def command(profile: str, server: str, local: int | None) -> Exit:
    """Bring SERVER's port to this machine's loopback, until interrupted. Every user of this machine can reach it."""
    loaded = open_profile(profile)
    [chosen] = loaded.select([server])
    if chosen.host.is_local:
        print_text(chosen.url)
        narrate(f"{chosen.name} is on this machine already")
        return Exit.OK
    if local:
        _must_be_free(local)
    return asyncio.run(forward(loaded, chosen, local or 0))
