"""``hcs-tui check``: is the profile right, and (on the hosts) would a launch work?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from tui.cli.exits import Exit
from tui.cli.options import json_option, open_profile, print_json, print_text, profile_argument, servers_argument

if TYPE_CHECKING:
    from tui.profile.model import Profile, Server

MAX_ARG_STRLEN = 128 * 1024  # bytes of one argument or variable with its NUL: 32 pages, include/uapi/linux/binfmts.h


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. ``result`` is pass, warn or fail."""

    server: str | None
    host: str | None
    check: str
    result: str
    found: str
    advice: str = ""


def offline_checks(profile: Profile, servers: Sequence[Server]) -> list[Check]:
    """What can be said without a host: the file's warnings, secrets, a launchable command per server."""
    hosts = "1 host" if len(profile.hosts) == 1 else f"{len(profile.hosts)} hosts"
    checks = [
        Check(None, None, "profile", "warn", f"{warning.key}: {warning.message}", f"see {warning.file}:{warning.line}")
        for warning in profile.warnings
    ] or [Check(None, None, "profile", "pass", f"{len(profile.servers)} servers on {hosts}")]
    for server in servers:
        missing = [name for name in server.secret_names() if name not in os.environ]
        if missing:
            advice = "export " + " ".join(f"{name}=…" for name in missing)
            checks.append(Check(server.name, None, "secrets", "warn", f"not set here: {', '.join(missing)}", advice))
        elif server.secret_names():
            checks.append(Check(server.name, None, "secrets", "pass", "all are set"))
        checks.append(_command(server))
    return checks


def _command(server: Server) -> Check:
    """What a launch would run, and whether Linux takes it."""
    words = [
        *((f"argument {number}", word) for number, word in enumerate(server.argv())),
        *((f"variable {name}", f"{name}={value}") for name, value in server.environment().items()),
        ("setup", server.setup or ""),
    ]
    for what, word in words:
        size = len(word.encode("utf-8", "surrogateescape"))
        if size >= MAX_ARG_STRLEN:
            found = f"{what} has {size} bytes, and Linux takes at most {MAX_ARG_STRLEN - 1} in one"
            return Check(server.name, server.host.name, "command", "fail", found, "give what is long in a file")
    return Check(server.name, server.host.name, "command", "pass", server.command_line())


def show(checks: Iterable[Check], as_json: bool) -> Exit:
    """Print the checks; ``FAILED`` if one of them failed."""
    checks = list(checks)
    if as_json:
        print_json({"checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            where = check.server or check.host or "profile"
            advice = f" -> {check.advice}" if check.advice else ""
            print_text(f"{check.result:<5} {where:<12} {check.check}: {check.found}{advice}")
    return Exit.FAILED if any(check.result == "fail" for check in checks) else Exit.OK


@click.command("check")
@profile_argument
@servers_argument
@json_option
@click.option("--offline", is_flag=True, help="Ask no host.")
def command(profile: str, servers: tuple[str, ...], as_json: bool, offline: bool) -> Exit:
    """Validate PROFILE, say what a launch would run, and look on the hosts whether it would work."""
    loaded = open_profile(profile, quiet=True)
    selected = loaded.select(servers)
    checks = offline_checks(loaded, selected)
    if offline:
        return show(checks, as_json)
    import asyncio

    from tui.cli.preflight import host_checks

    on_hosts, unreachable = asyncio.run(host_checks(loaded, selected))
    return Exit.worst([show([*checks, *on_hosts], as_json), Exit.UNREACHABLE if unreachable else Exit.OK])
