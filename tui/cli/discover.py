"""``hcs-tui discover``: SGLang servers that run on hosts, whoever started them; on request as a profile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import click

from tui.cli.asking import ask_for_hosts
from tui.cli.errors import fail
from tui.cli.exits import Exit
from tui.cli.options import json_option, narrate, print_json, print_text
from tui.cli.terminal import has_terminal
from tui.cli.waiting import settle
from tui.fleet.api import Discover
from tui.fleet.fleet import Fleet
from tui.fleet.found import as_commands, host_called
from tui.host.api import HostError
from tui.profile.importer import profile_text
from tui.profile.model import Host, Profile
from tui.report.found import document, found_table

_KNOWN_SECONDS = 15.0  # for the logs that stand on the hosts to be read


async def discover(hosts: Sequence[Host], as_json: bool, file: Path | None) -> Exit:
    profile = Profile(name="discover", path=None, hosts=tuple(hosts), servers=())
    fleet = Fleet(profile, (), hosts=hosts, read_only=True)
    fleet.start()
    try:
        await settle(fleet)
        await ask_for_hosts(fleet)
        outcomes = await asyncio.gather(*(fleet.act(Discover(host.name)) for host in hosts))
        await fleet.until(lambda: all(s.known for s in fleet.supervisors.values()), _KNOWN_SECONDS)
        _show(fleet, as_json)
        for outcome in outcomes:
            if not outcome.ok:
                narrate(outcome.message)
        if file is not None:
            _write(fleet, file)
        return Exit.OK if all(outcome.ok for outcome in outcomes) else Exit.UNREACHABLE
    finally:
        await fleet.close()


def _show(fleet: Fleet, as_json: bool) -> None:
    now = time.time()
    if as_json:
        print_json(document(fleet.states(), now), line=True)
    elif fleet.supervisors:
        print_text(found_table(fleet.states(), now))
    elif not fleet.errors():
        print_text("no SGLang server runs there")


def _write(fleet: Fleet, file: Path) -> None:
    """The servers that can be launched again as they are, as a profile."""
    commands, left_out = as_commands(fleet.supervisors.values())
    for reason in left_out:
        narrate(f"not in {file}: {reason}")
    if not commands:
        narrate(f"{file}: nothing to write")
        return
    text, notes = profile_text(commands, name=file.stem)
    file.write_text(text, encoding="utf-8")
    narrate(f"{file}: written; hcs-tui check {file} tells what is missing")
    for note in notes:
        narrate(f"note: {note}")


def _may_write(file: Path) -> None:
    """Never over a file that is there, unless the person says so."""
    if file.is_dir():
        fail(f"{file}: is a directory")
    if not file.exists():
        return
    if not has_terminal():
        fail(f"{file}: exists already; name another file, or remove it first")
    click.confirm(f"{file} exists already. Overwrite it?", abort=True, err=True)


def _hosts(names: Sequence[str]) -> list[Host]:
    hosts: dict[str, Host] = {}
    for text in dict.fromkeys(names):
        try:
            host = host_called(text, hosts)
        except HostError as error:
            fail(str(error))
        hosts[host.name] = host
    return list(hosts.values())


@click.command("discover")
@click.argument("hosts", metavar="HOST...", nargs=-1, required=True)
@json_option
@click.option("--write-profile", "file", type=click.Path(path_type=Path), metavar="FILE", help="Write a profile too.")
def command(hosts: tuple[str, ...], as_json: bool, file: Path | None) -> Exit:
    """SGLang servers that run on HOSTs, whoever started them.

    HOST is an alias of ~/.ssh/config, user@host:port, or `local`. Looks, and changes nothing.
    """
    found = _hosts(hosts)
    if file is not None:
        _may_write(file)
    return asyncio.run(discover(found, as_json, file))
