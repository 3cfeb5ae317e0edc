"""A server that somebody else started, in the words of a profile: what is shown of it, and how it would be launched."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tui.fleet.supervisor import Supervisor
from tui.fleet.translate import server_info
from tui.host.api import Found
from tui.host.target import parse_target
from tui.profile.model import Host, Server
from tui.profile.shell import Remote, SimpleCommand
from tui.sglang.mask import mask_words
from tui.sglang.model import ServerInfo, Stranger
from tui.sglang.safe import safe

Flags = Mapping[str, object]


def harmless(one: Found) -> Found:
    """Without what could reach the terminal as an escape, or is a secret: all of it was chosen by somebody else."""
    record = one.record
    argv = tuple(map(safe, mask_words(record.argv)))
    return replace(
        one,
        record=replace(record, argv=argv, log=safe(record.log)),
        owner=safe(one.owner),
        cwd=_safe(one.cwd),
        gpus=_safe(one.gpus),
        container=_safe(one.container),
        job=_safe(one.job),
        elsewhere=_safe(one.elsewhere),
        output=safe(one.output),
    )


def _safe(text: str | None) -> str | None:
    return None if text is None else safe(text)


def described(one: Found, host: Host, taken: Iterable[str] = ()) -> tuple[Server, ServerInfo]:
    """A found server in the words of a profile, and what is shown of it."""
    record = one.record
    name = f"{host.name}:{record.port}" if record.port else f"{host.name}:pid{record.pid}"
    if name in taken:
        name = f"{name}:{record.pid}"
    bare = Server(name=name, host=host, port=record.port or 0, command=record.argv)
    flags = bare.flags
    env = {"CUDA_VISIBLE_DEVICES": one.gpus} if one.gpus else {}
    log = record.log if record.log and not one.output else None
    server = bare.model_copy(update={"gpus": gpus(one.gpus, flags), "cwd": one.cwd, "env": env, "log": log})
    stranger = Stranger(
        one.owner, shlex.join(record.argv), one.kind, one.container, one.job, one.output, _run_of_ours(one)
    )
    told = server_info(server)
    info = ServerInfo(
        name=name,
        host=host.name,
        port=record.port,
        url=_url(flags, record.port),
        model=server.model or _positional(record.argv),
        gpus=server.gpus,
        log=record.log or None,
        ready_timeout=math.inf if _number(flags, "node-rank") else told.ready_timeout,
        stall_after=math.inf if _number(flags, "node-rank") else told.stall_after,
        planned_host_gb=told.planned_host_gb,
        stranger=stranger,
    )
    return server, info


def host_called(text: str, taken: Iterable[str] = ()) -> Host:
    """A host of no profile, by its SSH address. Raises ``HostError`` for a text that is none."""
    name = "local" if text == "local" else parse_target(text).host
    return Host(name=text if name in taken else name, ssh=text)


def as_commands(supervisors: Iterable[Supervisor]) -> tuple[list[SimpleCommand], list[str]]:
    """Found servers as the commands that would launch them again, and why the others cannot be told so."""
    commands, left_out = [], []
    for supervisor in supervisors:
        server, stranger = supervisor.server, supervisor.state.info.stranger
        if stranger is None or stranger.kind != "server" or stranger.container:
            where = f"runs in a container ({stranger.container})" if stranger and stranger.container else ""
            left_out.append(f"{server.name} {where or 'is no launch of a server, but a program around it or a rest'}")
            continue
        remote = None if server.host.is_local else Remote(server.host.ssh)
        env = {name: value for name, value in server.env.items() if isinstance(value, str)}
        commands.append(SimpleCommand(server.command or (), env, server.cwd, server.log, (), remote))
    return commands, left_out


def _run_of_ours(one: Found) -> str | None:
    if one.record.profile:
        return f"{one.record.profile}/{one.record.server}"
    return "another user or state folder" if one.elsewhere else None


def _url(flags: Flags, port: int | None) -> str | None:
    address = flags.get("host")
    if port is None:
        return None
    if not isinstance(address, str) or address in ("0.0.0.0", "::", ""):
        address = "127.0.0.1"
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def _positional(argv: tuple[str, ...]) -> str | None:
    """``sglang serve MODEL``."""
    words = list(argv)
    at = words.index("serve") + 1 if "serve" in words else len(words)
    return words[at] if at < len(words) and not words[at].startswith("-") else None


def gpus(visible: str | None, flags: Flags) -> tuple[int, ...]:
    """The GPUs that a server uses on its host: as many as its ranks there, among the visible ones; none where these
    are told by other than numbers."""
    count = 1
    for names in (("tensor-parallel-size", "tp-size", "tp"), ("pipeline-parallel-size", "pp-size", "pp")):
        count *= next((n for n in (_number(flags, name) for name in names) if n), 1)
    replicas = next((n for n in (_number(flags, name) for name in ("data-parallel-size", "dp-size", "dp")) if n), 1)
    if not flags.get("enable-dp-attention"):
        count *= replicas
    count = max(1, count // (_number(flags, "nnodes") or 1))
    base, step = _number(flags, "base-gpu-id"), _number(flags, "gpu-id-step") or 1
    wanted = [base + n * step for n in range(count)]
    if visible is None:
        return tuple(wanted)
    shown = visible.split(",")
    if not all(part.strip().isdigit() for part in shown):
        return ()
    return tuple(int(shown[n]) for n in wanted if n < len(shown))


def _number(flags: Flags, name: str) -> int:
    value = flags.get(name)
    return int(value) if isinstance(value, str | int) and str(value).isdigit() else 0


def remarks(one: Found, server: Server) -> Iterator[str]:
    """What is worth saying of a found server, the weightiest last."""
    if one.kind == "program" and not _run_of_ours(one):
        yield "a program with SGLang inside"
    if rank := _number(server.flags, "node-rank"):
        yield f"node {rank} of a server on {_number(server.flags, 'nnodes') or 'several'} hosts: node 0 answers for it"
    if one.unreadable:
        yield "its command line cannot be read now: it may be pinning memory"
    if one.elsewhere:
        yield f"launched by hcs-tui of another user or state folder: run {one.elsewhere}"
    if one.record.profile:
        yield f"launched by hcs-tui: server {one.record.server} of profile {one.record.profile}"
    if one.job:
        yield f"belongs to {one.job}" + (", which may start it again" if one.job.startswith("systemd") else "")
    if one.own_network:
        yield "its port is not the host's: it has a network of its own"
    if one.output and not one.record.log:
        yield f"what it prints {one.output}: only HTTP tells how it is"
    elif one.output:
        yield f"its log {one.output}: followed through the process"
    if one.container:
        yield f"runs in a container ({one.container}), which this program cannot end"
    if one.kind == "orphans":
        yield f"its main process is gone: {one.processes} left of it may hold GPU memory"
