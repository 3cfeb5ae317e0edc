"""The second look of a kill: a fresh process, which knows the run's name and the pids that were seen, and nothing of
what was done to them, looks for whatever is left."""

from __future__ import annotations

import json
import os
import sys

from . import gpus, patience, procs, sockets, subject
from .jobs import Job
from .requests import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

TIMEOUT = 30.0  # seconds
FRESH = "import sys;b=sys.stdin.buffer;exec(b.read(int(b.readline())))"


def ask(agent: Agent, question: dict[str, Any], done: Callable[[dict[str, Any] | None, str], None]) -> None:
    """``done(what look() found, "")`` from a fresh process, or ``done(None, why it could not be seen)``."""

    def on_end(status: int | None, output: bytes) -> None:
        agent.looks.leave()
        try:
            found = json.loads(output) if status == 0 else None
        except ValueError:
            found = None
        done(found, output.decode("utf-8", "replace").strip()[-200:])

    def begin() -> None:
        argv = [sys.executable, "-ISBc", FRESH, "look", json.dumps(question)]
        try:
            Job(agent.loop, agent.children, argv, on_end, stdin=blob(agent), timeout=TIMEOUT)
        except OSError as error:  # no more processes or descriptors: the next in line must not wait for ever
            on_end(None, str(error).encode("utf-8", "replace"))

    agent.looks.enter(begin)


def blob(agent: Agent) -> bytes:
    """This very program again, for a fresh process."""
    text = agent.sources["boot"].encode("utf-8")
    more = json.dumps([dict(agent.sources), dict(agent.config)]).encode("ascii")
    return b"%d\n%s%s\n" % (len(text), text, more)


def look(agent: Agent, question: dict[str, Any]) -> dict[str, Any]:
    """In the fresh process, of ``question``'s ``run``, ``known`` [pid, start] and ``sockets`` (inodes):

    ``left``: [pid, start, words] of the processes that live; ``held``: words on sockets and GPU memory that outlived
    theirs; ``gpu``: how the GPUs were asked, or why not.
    """
    about = subject.named(agent.runs, question["run"])
    if about.process.get("boot_id") != agent.runs.boot_id:
        return {"left": [], "held": [], "gpu": ""}
    found = agent.scanner.scan()
    pids = procs.members(about.process, found, about.sole_log)
    pids |= {pid for pid, start in question["known"] if pid in found and found[pid].start == start}
    if about.folder is not None:
        pids |= marked(about, found)
    keeper = (about.process.get("keeper") or {}).get("pid")
    pids -= {keeper, os.getpid(), *procs.ancestors(os.getpid(), found)}
    held, gpu = on_gpus(question["known"], found)
    held += listening(set(question["sockets"]))
    cgroup = own_cgroup(about.process, about.run)
    if not pids and cgroup and procs.populated(cgroup):
        held.append("the cgroup %s is not empty" % cgroup)
    return {"left": [[pid, found[pid].start, words(found[pid])] for pid in sorted(pids)], "held": held, "gpu": gpu}


def own_cgroup(process: dict[str, Any], run: str) -> str | None:
    """The cgroup that the keeper made for this run alone."""
    folder = process.get("cgroup")
    return folder if folder and os.path.basename(folder) == "hcs-" + run else None


def marked(about: subject.Subject, found: dict[int, procs.Proc]) -> set[int]:
    """Processes with the run's ``HCS_RUN`` in their environment, those below them, and, once one of them proves that
    it is still the run's, the session of the main process. Reading an environment can block: so only here."""
    ours, start, main = "HCS_RUN=" + about.run, about.process.get("start", 0), about.process.get("pid")
    me = os.geteuid()
    pids = {
        pid
        for pid, proc in found.items()
        if proc.start >= start
        and (me == 0 or procs.owner(pid) == me)
        and ours in (patience.words(pid, "environ") or ())
    }
    if any(found[pid].session == main for pid in pids):
        pids |= {proc.pid for proc in found.values() if proc.session == main and proc.start >= start}
    return pids | procs.descendants(pids, found)


def words(proc: procs.Proc) -> str:
    """The process, and what keeps it from ending."""
    text = procs.title(proc, patience.words(proc.pid, "cmdline") or ())
    if proc.state == "D":
        return text + " (in the kernel, state D: SIGKILL works once that lets go of it)"
    if proc.state == "Z":
        return text + " (ending: %d threads give back its memory)" % (proc.threads - 1)
    return text


def on_gpus(known: list[list[int]], found: dict[int, procs.Proc]) -> tuple[list[str], str]:
    """GPU memory that is still held in the name of processes that are gone; and how that was seen."""
    if not known:
        return [], ""
    asked = gpus.holders()
    if asked.trouble:
        return [], asked.trouble
    gone = sorted({pid for pid, _ in known if pid in asked.mebibytes and pid not in found})
    sizes = [(pid, asked.mebibytes[pid]) for pid in gone]
    held = ["pid %d (gone) holds %s of GPU memory" % (p, "some" if m is None else "%d MiB" % m) for p, m in sizes]
    return held, "no GPU memory held" if not held else "GPU memory held"


def listening(inodes: set[str]) -> list[str]:
    """The run's own sockets that somebody still listens on."""
    return [
        "port %d: its socket is open in %s" % (one.port, sockets.owner({one.inode}) or "a process of another user")
        for one in sockets.all_listeners()
        if one.inode in inodes
    ]
