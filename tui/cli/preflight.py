"""The part of ``check`` that asks the hosts: would a launch work there?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from tui.cli.asking import Asker
from tui.cli.check import Check
from tui.cli.waiting import heard
from tui.fleet.translate import launch_spec
from tui.host.answers import open_asking
from tui.host.api import HostError, Link
from tui.host.connect import open_link
from tui.profile.model import Host, Profile, Server
from tui.sglang.memory import planned_host_gb


async def host_checks(profile: Profile, servers: Sequence[Server]) -> tuple[list[Check], bool]:
    """The checks of all hosts side by side, and whether one of them cannot be reached."""
    hosts = {server.host.name: server.host for server in servers}
    ask = Asker()
    found = await asyncio.gather(*(
        _of_host(profile.name, host, [s for s in servers if s.host.name == name], ask) for name, host in hosts.items()
    ))  # fmt: skip
    checks = [check for rows in found for check in rows]
    return checks, any(check.check == "connection" and check.result == "fail" for check in checks)


async def _of_host(profile: str, host: Host, servers: Sequence[Server], ask: Asker) -> list[Check]:
    link = open_link(host, read_only=True)
    try:
        try:
            hello = await heard(host, open_asking(link, ask), lambda: ask.asking)
        except HostError as error:
            return [Check(None, host.name, "connection", "fail", error.message, error.remedy)]
        checks = [Check(None, host.name, "connection", "pass", f"{hello.user}@{hello.hostname}, Python {hello.python}")]
        found = [check for server in servers for check in await _of_server(link, profile, server)]
        total = min(hello.memory_total, hello.memory_limit or hello.memory_total)
        versions = {check.server: check.found for check in found if (check.check, check.result) == ("sglang", "pass")}
        return [*checks, _memory(host, servers, total, versions), *found]
    finally:
        await link.close()


async def _of_server(link: Link, profile: str, server: Server) -> list[Check]:
    try:
        rows = await link.check(launch_spec(profile, server))
    except HostError as error:
        return [Check(server.name, server.host.name, "launch", "fail", error.message, error.remedy)]
    return [Check(server.name, server.host.name, *row) for row in rows]


def _memory(host: Host, servers: Sequence[Server], total_bytes: int, versions: Mapping[str | None, str]) -> Check:
    """The host memory that all servers' flags ask for together, by the SGLang that each has there, against what the
    host has at all."""
    planned = [planned_host_gb(server.flags, versions.get(server.name)) for server in servers]
    sizes = [gb for gb in planned if gb is not None]
    asked = sum(sizes)
    total = total_bytes / 1e9
    found = f"{asked:.1f} GB of host cache asked by {len(sizes)} of {len(servers)} servers, {total:.1f} GB in all"
    if asked > total:
        return Check(None, host.name, "host memory", "fail", found, "lower --hicache-size")
    return Check(None, host.name, "host memory", "pass", found)
