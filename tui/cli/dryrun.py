"""``hcs-tui up --dry-run``: what would be launched, without asking a host."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence

from tui.cli.exits import Exit
from tui.cli.options import narrate, print_text
from tui.profile.model import Server
from tui.report.events import json_line


def dry_run(servers: Sequence[Server], as_json: bool) -> Exit:
    """Print each server's command as a shell line, or one JSON object a line and a summary; secrets stay names."""
    now = time.time()
    for server in servers:
        if as_json:
            print_text(json_line(now, server.name, "dry-run", **_described(server)))
        else:
            print_text(f"# {server.name} on {server.host.name}, {server.url}{_policy(server)}")
            if server.setup:
                print_text(
                    f"cd {shlex.quote(server.cwd)}\n{server.setup.rstrip()}" if server.cwd else server.setup.rstrip()
                )
            print_text(server.command_line() + (f"  # log: {server.log}" if server.log else ""))
    if as_json:
        print_text(json_line(now, None, "summary", servers=[], dry_run=[server.name for server in servers]))
    for name in sorted({name for server in servers for name in server.secret_names()}):
        if name not in os.environ:
            narrate(f"warning: the secret {name} is not set here; a launch needs it")
    return Exit.OK


def _policy(server: Server) -> str:
    """What is not the default of how it is launched, and launched again."""
    apart = f", launches {server.host.stagger:g} s apart" if server.host.stagger else ""
    return apart if server.restart == "never" else f", restart: {server.restart}{apart}"


def _described(server: Server) -> dict[str, object]:
    return {
        "host": server.host.name,
        "url": server.url,
        "cwd": server.cwd,
        "setup": server.setup,
        "log": server.log,
        "restart": server.restart,
        "stagger": server.host.stagger,
        "command": server.command_line(),
    }
