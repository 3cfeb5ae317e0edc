"""End a run: SIGTERM to its main process alone, grace, SIGKILL to all that is left, a second look by a fresh process.

SGLang's main process drains requests and unregisters pinned memory before it ends its children; so nobody else gets
SIGTERM. Whom to signal is known by session, tree, subreaper, cgroup and log, each pid with its start time: never by
a name.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

from . import procs, sockets, subject
from .files import write_json
from .jobs import Job
from .loop import monotonic
from .requests import Agent, Refused, Request

RESCAN = 0.05
ORPHAN_GRACE = 2.0  # seconds for children to end by themselves after their main process did
SETTLE = 60.0  # seconds until SIGKILL must have worked: the kernel unpins host memory for tens of seconds
KEEPER_PATIENCE = 5.0  # seconds for the keeper to write the last exit.json and leave
LOOK_TIMEOUT = 20.0
FRESH = "import sys;b=sys.stdin.buffer;exec(b.read(int(b.readline())))"


def kill(request: Request) -> None:
    """Answer when nothing is left, or when what is left will not go. Raises ``Refused``."""
    about = subject.subject(request)
    if about.folder is not None and not request.header.get("sweep"):
        mark(about.folder, "kill.json", request)  # also of a run that is over: it must not be restarted any more
    process = about.process
    if not process:
        raise Refused("Run %s never got a process." % about.run)
    if process.get("boot_id") != request.agent.runs.boot_id:
        about = about._replace(process={})  # the machine has been booted since: none of these pids is ours
    elif about.folder is None:
        subject.refuse_to_end(about)
    elif process.get("pid_namespace") not in (None, procs.pid_namespace()):
        raise Refused(
            "Run %s lives in another pid namespace (a container) of this host." % about.run,
            "Connect to that container, or end it from inside.",
        )
    Kill(request, about, float(request.header.get("grace", 30.0)))


def mark(folder: str, name: str, request: Request) -> None:
    """Write down that somebody asked for an end, and who."""
    try:
        write_json(os.path.join(folder, name), {"at": time.time(), "who": request.header.get("who", "")})
    except OSError:
        pass  # a full disk must not keep a server alive


class Kill:
    """One kill, as a state machine: ``_term``, ``_wait`` (grace), ``_force``, ``_verify``."""

    def __init__(self, request: Request, about: subject.Subject, grace: float) -> None:
        self._request, self._agent, self._about = request, request.agent, about
        self._process = about.process
        self._log = about.sole_log
        self._began = monotonic()
        self._grace_ends = self._began + grace
        self._main_gone: float | None = None
        self._killed: float | None = None
        self._found: dict[tuple[int, int], str] = {}
        self._known: dict[int, int] = {}  # pid -> start, of all ever seen: their orphans stay ours
        self._signals: list[str] = []
        self._term()

    def _scan(self) -> list[procs.Proc]:
        if not self._process:
            return []
        found = self._agent.scanner.scan()
        pids = procs.members(self._process, found, self._log)
        pids |= {pid for pid, start in self._known.items() if pid in found and found[pid].start == start}
        keeper = (self._process.get("keeper") or {}).get("pid")
        pids |= procs.descendants(pids, found) - {keeper, os.getpid()}
        for pid in pids:
            proc = found[pid]
            if (pid, proc.start) not in self._found:
                self._found[pid, proc.start] = procs.title(proc)
                self._known[pid] = proc.start
        return [found[pid] for pid in sorted(pids)]

    def _main(self, procs_left: list[procs.Proc]) -> procs.Proc | None:
        key = (self._process.get("pid"), self._process.get("start"))
        return next((proc for proc in procs_left if (proc.pid, proc.start) == key), None)

    def _note(self, name: str) -> None:
        if name not in self._signals:
            self._signals.append(name)

    def _term(self) -> None:
        left = self._scan()
        main = self._main(left)
        if main is not None:
            if self._about.folder is not None:
                mark(self._about.folder, "stop.json", self._request)
            if procs.send_signal(main, signal.SIGTERM):
                self._note("SIGTERM")
        self._wait()

    def _wait(self) -> None:
        left = self._scan()
        now = monotonic()
        if not left:
            self._verify()
            return
        if self._main(left) is None:
            self._main_gone = self._main_gone or now
        orphaned = self._main_gone is not None and now >= self._main_gone + ORPHAN_GRACE
        if now >= self._grace_ends or orphaned:
            self._force()
        else:
            self._agent.loop.later(RESCAN, self._wait)

    def _force(self) -> None:
        left = self._scan()
        now = monotonic()
        self._killed = self._killed or now
        if not left or now >= self._killed + SETTLE:
            self._verify()
            return
        for proc in left:
            if procs.send_signal(proc, signal.SIGKILL):
                self._note("SIGKILL")
        self._agent.loop.later(RESCAN, self._force)

    def _verify(self) -> None:
        """Let a process that knows nothing of this kill look for what is left."""
        question = {"run": self._about.run, "known": [[pid, start] for pid, start in self._known.items()]}
        argv = [sys.executable, "-ISBc", FRESH, "look", json.dumps(question)]
        Job(self._agent.loop, self._agent.children, argv, self._on_look,
            stdin=blob(self._agent), timeout=LOOK_TIMEOUT)  # fmt: skip

    def _on_look(self, status: int | None, output: bytes) -> None:
        try:
            left: list[list[Any]] | None = json.loads(output)["left"] if status == 0 else None
        except (ValueError, KeyError):
            left = None
        if left is None:
            why = output.decode("utf-8", "replace").strip()[-200:]
            self._request.refuse(Refused("Whether anything of the run is left could not be seen: %s" % why))
            return
        if left and (self._killed is None or monotonic() < self._killed + SETTLE):
            for pid, start, name in left:
                self._known[pid] = start
                self._found[pid, start] = name
            self._force()
            return
        self._await_keeper(monotonic() + KEEPER_PATIENCE, [name for _, _, name in left])

    def _await_keeper(self, until: float, left: list[str]) -> None:
        """The keeper holds the lock that the next launch needs."""
        keeper = self._process.get("keeper") or {}
        if procs.is_alive(keeper.get("pid"), keeper.get("start")) and not left:
            if monotonic() < until:
                self._agent.loop.later(0.01, lambda: self._await_keeper(until, left))
                return
            proc = procs.look(keeper["pid"])
            if proc is not None:
                procs.send_signal(proc, signal.SIGKILL)
        port = self._about.port
        self._request.answer(
            {
                "found": list(self._found.values()),
                "signals": self._signals,
                "left": left,
                "seconds": monotonic() - self._began,
                "port_free": not sockets.listeners(port) if port else None,
            }
        )


def blob(agent: Agent) -> bytes:
    """This very program again, for a fresh process."""
    text = "SOURCES = %r\nCONFIG = %r\n%s" % (dict(agent.sources), dict(agent.config), agent.sources["boot"])
    data = text.encode("utf-8")
    return b"%d\n" % len(data) + data


def look(agent: Agent, question: dict[str, Any]) -> dict[str, Any]:
    """In the fresh process: what of the run lives, by its name, by the pids known of it, and by ``HCS_RUN`` in
    the environment (which reading may block on, so only here)."""
    about = subject.named(agent.runs, question["run"])
    process = about.process
    if process.get("boot_id") != agent.runs.boot_id:
        return {"left": []}
    found = agent.scanner.scan()
    pids = procs.members(process, found, about.sole_log)
    pids |= {pid for pid, start in question["known"] if pid in found and found[pid].start == start}
    if about.folder is not None:
        ours = b"HCS_RUN=" + about.run.encode("utf-8")
        pids |= {pid for pid, proc in found.items() if proc.start >= process.get("start", 0) and carries(pid, ours)}
    keeper = (process.get("keeper") or {}).get("pid")
    pids -= {os.getpid(), os.getppid(), keeper}
    return {"left": [[pid, found[pid].start, procs.title(found[pid])] for pid in sorted(pids)]}


def carries(pid: int, mark: bytes) -> bool:
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False
