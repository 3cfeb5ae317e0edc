"""A server's port on this machine's loopback: opened and taken away."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from tui.fleet.api import ForwardState, Outcome
from tui.fleet.hosts import HostWatch
from tui.fleet.supervisor import Supervisor
from tui.host.api import Hello, HostError, HostErrorKind
from tui.sglang import verdict
from tui.sglang.model import Phase
from tui.sglang.state import ServerState

WARNING = "every user of this machine can reach it"


async def toggle_forward(watch: HostWatch, supervisor: Supervisor, local: int = 0) -> Outcome:
    """Forward the server's port, or end that. ``local`` 0: the same port here if it is free, else any; always
    another where the host is this machine."""
    info = supervisor.state.info
    if info.port is None or info.url is None:
        return Outcome(False, f"{info.name}: which port it listens on is not known")
    if watch.state.address == "local":
        return Outcome(True, f"{info.name} is on this machine already: {info.url}", {"url": info.url, "local": True})
    if any(one.server == info.name for one in watch.state.forwards):
        watch.link.unforward(info.port)
        watch.show_forwards(tuple(one for one in watch.state.forwards if one.server != info.name))
        return Outcome(True, f"{info.name}: its port is no longer on this machine", {"url": None})
    try:
        same = _is_here(await watch.require())
        if same and local == info.port:
            where = f"{watch.state.name} is this machine, where port {local} is the server's own"
            return Outcome(False, f"{info.name}: {where}", {"error": HostErrorKind.CONFIG.value})
        wanted = local or (0 if same else info.port)
        port = await _open(watch, info.port, urlsplit(info.url).hostname or "127.0.0.1", wanted, bool(local))
    except HostError as error:
        return Outcome(False, f"{info.name}: {error}", {"error": error.kind.value})
    forward = ForwardState(info.name, info.port, port)
    watch.show_forwards((*watch.state.forwards, forward))
    where = ", which ".join(filter(None, (watch.link.name, nothing_there(supervisor.state))))
    return Outcome(True, f"{forward.url} leads to {info.name} on {where}; {WARNING}", {"url": forward.url})


def nothing_there(state: ServerState) -> str:
    """Why a request to the server's port is not answered by it now; empty when it is."""
    if state.info.stranger is not None and state.alive:
        return ""  # of a found server less is known
    match verdict.phase(state):
        case Phase.READY:
            return ""
        case Phase.STARTING:
            return "is still starting: its port is not open yet"
        case Phase.STOPPING:
            return "is ending"
        case Phase.FAILED if state.alive:
            return "has failed: what is left of it may not answer"
        case _:
            taken = verdict.port_taken(state)
            return f"does not run: {taken}" if taken else "does not run: its port is not open"


def _is_here(hello: Hello) -> bool:
    """Whether the host is this very machine, behind SSH. The server's port may be free while the server does not run;
    a forward that listened there would lead to itself, and its first connection would make more without end."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() == hello.boot_id
    except OSError:
        return False  # no Linux, as all hosts are


async def _open(watch: HostWatch, port: int, address: str, wanted: int, must: bool) -> int:
    try:
        return await watch.link.forward(port, address=address, local=wanted)
    except HostError as error:
        if must or error.kind is not HostErrorKind.CONFIG:
            raise
        return await watch.link.forward(port, address=address)
