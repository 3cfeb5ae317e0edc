"""``hcs-tui up --dry-run``: what would be launched, without asking a host."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from tui.cli.exits import Exit
from tui.cli.options import narrate, print_json
from tui.profile.model import Server


def dry_run(servers: Sequence[Server], as_json: bool) -> Exit:
    """Print each server's command as a shell line, or one JSON object a line and a summary; secrets stay names."""
    for server in servers:
        if as_json:
            print_json({"server": server.name, "event": "dry-run", **_described(server)}, line=True)
        else:
            click.echo(f"# {server.name} on {server.host.name}, {server.url}")
            if server.setup:
                click.echo(server.setup.rstrip())
            click.echo(server.command_line() + (f"  # log: {server.log}" if server.log else ""))
    if as_json:
        names = [server.name for server in servers]
        print_json({"server": None, "event": "summary", "servers": names, "dry_run": True}, line=True)
    for name in sorted({name for server in servers for name in server.secret_names()}):
        if name not in os.environ:
            narrate(f"warning: the secret {name} is not set here; a launch needs it")
    return Exit.OK


def _described(server: Server) -> dict[str, object]:
    return {
        "host": server.host.name,
        "url": server.url,
        "cwd": server.cwd,
        "setup": server.setup,
        "log": server.log,
        "command": server.command_line(),
    }
