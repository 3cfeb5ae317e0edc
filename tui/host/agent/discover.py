"""SGLang servers on this host, whoever started them, from /proc: one row per server, with the tree below it.

Reading ``cmdline`` and ``environ`` can block while a process pins memory. So a fresh process reads them, each with a
deadline of its own, and never those of schedulers, whose kernel names (``sglang::schedul``) tell enough.
"""

from __future__ import annotations

import os
import sys
import time

from . import masking, output, patience, place, procs, sockets
from .jobs import Job
from .look import FRESH, blob
from .requests import Agent, Refused, Request
from .subject import MAIN_TITLES, TITLE, found_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

SURVEY_SECONDS = 20.0
DEFAULT_PORT = 30000
_owners: dict[frozenset[str], str] = {}  # who has sockets, by their inodes
VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "HCS_RUN")
_MODULES = ("sglang.launch_server", "sglang_router.launch_server", "sglang", "sglang.cli.main")


def discover(request: Request) -> None:
    """Answer with all servers found here."""

    def done(status: int | None, text: bytes) -> None:
        if status == 0:
            request.raw({}, text)
            return
        why = "it took more than %g s" % SURVEY_SECONDS if status is None else text.decode("utf-8", "replace")[-200:]
        request.refuse(Refused("The processes of this host could not be looked through: %s." % why.strip()))

    agent = request.agent
    Job(agent.loop, agent.children, [sys.executable, "-ISBc", FRESH, "survey"], done,
        stdin=blob(agent), timeout=SURVEY_SECONDS, limit=4 << 20)  # fmt: skip


def listeners(request: Request) -> None:
    """Who listens on each of the ``ports``, ``None`` for a free one. Asked again and again, so it is cheap: the table
    is read once, and an owner is looked for once per socket."""
    ports = {int(port) for port in request.header.get("ports") or ()}
    taken: dict[int, set[str]] = {}
    for listener in sockets.all_listeners():
        if listener.port in ports:
            taken.setdefault(listener.port, set()).add(listener.inode)
    known = dict(_owners)
    _owners.clear()
    for inodes in map(frozenset, taken.values()):
        _owners[inodes] = known.get(inodes) or sockets.owner(set(inodes)) or "a process of another user"
    request.answer({str(port): _owners[frozenset(taken[port])] if port in taken else None for port in ports})


def survey(agent: Agent) -> list[dict[str, Any]]:
    """In the fresh process: a row per server."""
    found = agent.scanner.scan()
    commands = {pid: patience.words(pid, "cmdline") for pid, proc in found.items() if not _titled(proc)}
    ours = _runs_of_ours(agent)
    skip = {os.getpid(), os.getppid()} | set(ours["keepers"])
    mains = _mains(found, commands, skip)
    listening = sockets.all_listeners()
    return [_row(agent, found, pid, commands.get(pid), kind, ours, listening) for pid, kind in sorted(mains.items())]


def _runs_of_ours(agent: Agent) -> dict[str, dict[int, dict[str, Any]]]:
    """Living runs of this user by their main process's pid and by their keeper's."""
    alive = [record for record in agent.runs.records() if record["alive"]]
    keepers = {(record.get("keeper") or {}).get("pid"): record for record in alive}
    return {"mains": {record["pid"]: record for record in alive}, "keepers": keepers}


def _titled(proc: procs.Proc) -> bool:
    return proc.name.startswith(TITLE) and not proc.name.startswith(MAIN_TITLES)


def _mains(found: dict[int, procs.Proc], commands: dict[int, list[str] | None], skip: Iterable[int]) -> dict[int, str]:
    """The process at the top of each server, and what it is: ``server``; ``program``, which has an engine inside; or
    ``orphans``, what was left of one whose main process is gone."""
    launchers = {pid for pid, proc in found.items() if _launches(proc, commands.get(pid))} - set(skip)
    mains = {pid: "server" for pid in launchers if not launchers & _above(pid, found)}
    groups: dict[tuple[int, int], int] = {}
    for pid, proc in sorted(found.items()):
        if not _titled(proc) or launchers & _above(pid, found):
            continue
        above = found.get(proc.parent)
        if above is not None and _titled(above):
            continue
        words = (commands.get(proc.parent) or [""]) if above is not None else [""]
        if above is not None and above.pid not in skip and _is_python(words[0]):
            mains[above.pid] = "program"
        elif (proc.session, proc.parent) not in groups:
            groups[proc.session, proc.parent] = pid
            mains[pid] = "orphans"
    return mains


def _above(pid: int, found: dict[int, procs.Proc]) -> set[int]:
    """The ancestors of ``pid``."""
    seen: set[int] = set()
    at = found[pid].parent
    while at in found and at not in seen:
        seen.add(at)
        at = found[at].parent
    return seen


def _launches(proc: procs.Proc, words: list[str] | None) -> bool:
    """Whether a process is the main one of a server: by its command line, not by what it was started through."""
    if proc.name.startswith(MAIN_TITLES):
        return True
    if not words:
        return False
    if os.path.basename(words[0]) == "sglang":
        return words[1:2] == ["serve"]
    if not _is_python(words[0]):
        return False
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-m", "-c"):
        at += 2 if words[at] in ("-X", "-W") else 1
    if words[at : at + 1] == ["-m"]:
        module, rest = "".join(words[at + 1 : at + 2]), words[at + 2 : at + 3]
        return module in _MODULES[:2] or (module in _MODULES[2:] and rest == ["serve"])
    script = "".join(words[at : at + 1])
    by_name = os.path.basename(script) == "sglang" and words[at + 1 : at + 2] == ["serve"]
    return by_name or script.endswith("sglang/launch_server.py")


def _is_python(word: str) -> bool:
    return os.path.basename(word).startswith(("python", "pypy"))


def _row(
    agent: Agent, found: dict[int, procs.Proc], pid: int, words: list[str] | None, kind: str,
    ours: dict[str, dict[int, dict[str, Any]]], listening: list[sockets.Listener],
) -> dict[str, Any]:  # fmt: skip
    """What is known of one server; ``record`` as for runs."""
    proc, tree = found[pid], procs.descendants([pid], found)
    environment = _environment(pid)
    uid = procs.owner(pid)
    run = next(
        (r for r in (ours["mains"].get(p) or ours["keepers"].get(p) for p in (pid, *_above(pid, found))) if r), None
    )
    alone = place.own_network(pid)
    port = 0 if alone else _port({pid} | tree, words or [], kind, listening)
    written = output.of(pid)
    return {
        "record": run or _record(agent, proc, words or [proc.name], port, written),
        "kind": kind,
        "owner": procs.user(uid) if uid is not None else "",
        "cwd": _link(pid, "cwd"),
        "gpus": environment.get(VARIABLES[0]) or environment.get(VARIABLES[1]),
        "container": place.container(pid, environment),
        "job": place.job(pid, environment),
        "elsewhere": None if run else environment.get("HCS_RUN"),
        "own_network": alone,
        "output": "" if written.path and written.where == "" else written.where,
        "processes": 1 + len(tree),
        "unreadable": words is None and kind != "orphans",
    }


def _record(
    agent: Agent, proc: procs.Proc, words: list[str], port: int, written: output.Output
) -> dict[str, Any]:  # fmt: skip
    size = inode = None
    if written.path:
        try:
            stat = os.stat(written.path)
            size, inode = stat.st_size, stat.st_ino
        except OSError:
            pass
    return {
        "run": found_name(agent.runs.boot_id, proc.pid, proc.start, port),
        "profile": "",
        "server": "",
        "pid": proc.pid,
        "started": started(proc),
        "boot_id": agent.runs.boot_id,
        "argv": masking.masked({}).argv(words),
        "log": written.shown,
        "log_size": size,
        "log_inode": inode,
        "alive": True,
        "exit": None,
        "port": port or None,
    }


def _port(pids: set[int], words: list[str], kind: str, listening: list[sockets.Listener]) -> int:
    """The port that the server listens on, or will: the flag's, unless its one socket says otherwise."""
    told = masking.value(words, "port")
    wanted = int(told) if told and told.isdigit() and int(told) < 65536 else DEFAULT_PORT if kind == "server" else 0
    inodes = {listener.inode for listener in listening}
    held = {inode for pid in pids for inode in sockets.held(pid, inodes)}
    ports = {listener.port for listener in listening if listener.inode in held}
    if wanted in ports or told or len(ports) != 1:
        return wanted
    return ports.pop()


def _environment(pid: int) -> dict[str, str]:
    pairs = (word.partition("=") for word in patience.words(pid, "environ") or ())
    wanted = (*VARIABLES, *place.APPTAINER_VARIABLES, place.SLURM_VARIABLE)
    return {name: value for name, _, value in pairs if name in wanted}


def _link(pid: int, name: str) -> str | None:
    try:
        return os.readlink("/proc/%d/%s" % (pid, name))
    except OSError:
        return None


def started(proc: procs.Proc) -> float:
    """When a process began, in Unix seconds."""
    uptime = time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    return time.time() - uptime + proc.start / procs.TICKS
