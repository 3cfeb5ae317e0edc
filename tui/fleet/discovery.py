"""Servers that somebody else started, as servers of the fleet: followed and watched like its own, ended on request,
never launched."""

from __future__ import annotations

from collections.abc import Callable

from tui.fleet.api import Outcome
from tui.fleet.found import described, harmless, remarks
from tui.fleet.hosts import HostWatch
from tui.fleet.supervisor import Supervisor
from tui.host.api import Found, HostError, HostErrorKind
from tui.profile.model import Host, Server
from tui.sglang.events import Noted
from tui.sglang.model import ServerInfo

Make = Callable[[Server, ServerInfo, HostWatch], Supervisor]


async def discover(watch: HostWatch, host: Host, known: dict[str, Supervisor], make: Make) -> tuple[
    dict[str, Supervisor], Outcome
]:  # fmt: skip
    """Look for servers on a connected host. Returned are the fleet's ``known`` servers with those that were found, and
    without those that were found earlier and have ended."""
    hello = await watch.require()
    found = await watch.link.discover()
    kept = {name: s for name, s in known.items() if not (s in watch.supervisors and _is_over(s))}
    for name in known.keys() - kept.keys():
        known[name].close()
        watch.supervisors.remove(known[name])
    names = []
    for one in map(harmless, found):
        if any(_is_it(supervisor, one, watch) for supervisor in kept.values()):
            continue
        server, info = described(one, host, kept)
        supervisor = kept[server.name] = make(server, info, watch)
        watch.supervisors.append(supervisor)
        names.append(server.name)
        try:
            await supervisor.find(one.record, hello, remarks(one, server))
        except HostError as error:
            if error.kind is not HostErrorKind.REFUSED:
                return kept, Outcome(False, f"{server.name}: {error}", {"error": error.kind.value})
            supervisor.apply(Noted(supervisor.now, error.message))  # it has ended meanwhile, or its log is gone
    return kept, _outcome(watch.link.name, len(found), names)


def _outcome(host: str, found: int, names: list[str]) -> Outcome:
    if names:
        what = f"{host}: found {', '.join(names)}"
    elif found:
        what = f"{host}: no SGLang server but those shown"
    else:
        what = f"{host}: no SGLang server runs there"
    return Outcome(True, what, {"found": names})


def _is_over(supervisor: Supervisor) -> bool:
    return supervisor.state.info.stranger is not None and not supervisor.running


def _is_it(supervisor: Supervisor, one: Found, watch: HostWatch) -> bool:
    if supervisor not in watch.supervisors:
        return False
    asked = (supervisor.profile, supervisor.server.name) == (one.record.profile, one.record.server)
    return supervisor.follows(one.record.run) or (asked and supervisor.state.info.stranger is None)
