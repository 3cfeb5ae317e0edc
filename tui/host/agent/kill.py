"""End a run: SIGTERM to its main process alone, grace, SIGKILL to all that is left, a second look by a fresh process.

SGLang's main process drains requests and unregisters pinned memory before it ends its children; so nobody else gets
SIGTERM. Whom to signal is known by session, tree, subreaper, cgroup, log, and by having been seen as one of the run,
each pid with its start time: never by a name. A kill that has begun is carried through, even when the channel goes.
"""

from __future__ import annotations

import _thread
import os
import signal
import time

from . import look, procs, sockets, subject
from .files import write_json
from .loop import current_trouble, monotonic
from .recorded import load
from .requests import Refused, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

RESCAN = 0.05
CALM = 0.5  # seconds between two scans for new processes, while the main process takes its time
ORPHAN_GRACE = 2.0  # seconds for children to end by themselves after their main process did
SETTLE = 60.0  # seconds until SIGKILL must have worked: the kernel unpins host memory for tens of seconds
BURST = 0.02  # seconds of scans and signals without a pause: some make new processes faster than one scan
LOOK_AGAIN = 1.0  # seconds between two looks at memory and sockets of processes that are gone
FIRST_PATIENCE = 2.0  # seconds for the report of a kill whose link went, when all is gone already
KEEPER_PATIENCE = 5.0  # seconds for the keeper to write the last exit.json and leave


def kill(request: Request) -> None:
    """Answer when nothing is left, or when what is left will not go. Raises ``Refused``."""
    about = subject.subject(request)
    header = request.header
    if about.folder is not None and not (header.get("sweep") or (header.get("again") and asked_before(about.folder))):
        mark(about.folder, "kill.json", request)  # also of a run that is over: it must not be restarted any more
    process = about.process
    if not process:
        flaw = load(about.folder, "process.json").flaw if about.folder else ""
        raise Refused("%s." % flaw if flaw else "Run %s never got a process." % about.run)
    if process.get("boot_id") != request.agent.runs.boot_id:
        about = about._replace(process={})  # the machine has been booted since: none of these pids is ours
    elif about.folder is None:
        subject.refuse_to_end(about)
    elif process.get("pid_namespace") not in (None, procs.pid_namespace()):
        raise Refused(
            "Run %s lives in another pid namespace (a container) of this host." % about.run,
            "Connect to that container, or end it from inside.",
        )
    Kill(request, about, float(header.get("grace", 30.0)), float(header.get("settle", SETTLE)))


def mark(folder: str, name: str, request: Request, **more: Any) -> None:
    """Write down that somebody asked for an end, and who."""
    try:
        write_json(os.path.join(folder, name), dict(more, at=time.time(), who=request.header.get("who", "")))
    except OSError:
        pass  # a full disk must not keep a server alive


def mark_forced(folder: str) -> None:
    """Write down that whoever was asked to stop gets more than SIGTERM."""
    stop = load(folder, "stop.json").fields
    if stop and not stop.get("forced"):
        try:
            write_json(os.path.join(folder, "stop.json"), dict(stop, forced=True))
        except OSError:
            pass


def asked_before(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, "kill.json"))


class Kill:
    """One kill, as a state machine: ``_term``, ``_wait`` (grace), ``_force``, ``_verify``."""

    def __init__(self, request: Request, about: subject.Subject, grace: float, settle: float) -> None:
        self._request, self._agent, self._about = request, request.agent, about
        self._process = about.process
        self._log = about.sole_log
        self._began = monotonic()
        self._grace_ends = self._began + grace
        self._settle = settle
        self._main_gone: float | None = None
        self._killed: float | None = None
        self._scanned = 0.0
        self._found: dict[tuple[int, int], str] = {}
        self._known = self._agent.seen.pop(about.run, {}) if self._process else {}  # pid -> start: orphans stay ours
        self._sockets: set[str] = set()
        self._signals: list[str] = []
        self._agent.loop.hold()
        self._step(self._term)

    def _step(self, step: Callable[[], None]) -> None:
        """Do a part of the kill; whoever waits for it hears of what must not happen, and does not wait in vain."""
        try:
            step()
        except Exception as error:
            self._agent.loop.send({"t": "trouble"}, current_trouble())
            self._give_up("The kill failed: %s: %s" % (type(error).__name__, error))

    def _later(self, seconds: float, step: Callable[[], None]) -> None:
        self._agent.loop.later(seconds, lambda: self._step(step))

    def _give_up(self, why: str) -> None:
        self._request.refuse(Refused(why, "Some of the run may be left: try again."))
        self._agent.loop.release()

    def _scan(self) -> list[procs.Proc]:
        """The living processes of the run, and of all that were ever seen as such, and below them."""
        if not self._process:
            return []
        self._scanned = monotonic()
        found = self._agent.scanner.scan()
        pids = procs.members(self._process, found, self._log)
        pids |= {pid for pid, start in self._known.items() if pid in found and found[pid].start == start}
        keeper = (self._process.get("keeper") or {}).get("pid")
        pids |= procs.descendants(pids, found)
        pids -= {keeper, os.getpid(), *procs.ancestors(os.getpid(), found)}
        fresh = [found[pid] for pid in sorted(pids) if (pid, found[pid].start) not in self._found]
        for proc in fresh:
            self._found[proc.pid, proc.start] = "pid %d %s" % (proc.pid, proc.name)
            self._known[proc.pid] = proc.start
        if fresh:
            try:
                _thread.start_new_thread(self._name, (fresh,))
            except RuntimeError:
                pass  # no more threads: their short names must do
        return [found[pid] for pid in sorted(pids)]

    def _name(self, fresh: list[procs.Proc]) -> None:
        """On a thread, since a command line cannot be read while its process pins memory."""
        for proc in fresh:
            self._found[proc.pid, proc.start] = procs.title(proc)

    def _main(self) -> procs.Proc | None:
        """The main process, if it lives."""
        proc = procs.look(self._process["pid"]) if self._process else None
        return proc if proc and proc.start == self._process.get("start") and not proc.dead else None

    def _send(self, proc: procs.Proc, number: signal.Signals) -> None:
        if procs.send_signal(proc, number) and number.name not in self._signals:
            self._signals.append(number.name)

    def _term(self) -> None:
        left = self._scan()
        inodes = {one.inode for one in sockets.all_listeners()} if left else set()
        self._sockets = {inode for proc in left for inode in sockets.held(proc.pid, inodes)}
        main = self._main()
        if main is not None:
            if self._about.folder is not None and not self._request.header.get("sweep"):
                before = load(self._about.folder, "stop.json").fields or {}
                mark(self._about.folder, "stop.json", self._request, forced=before.get("forced", False))
            self._send(main, signal.SIGTERM)
            self._wake(main)
        self._wake_keeper()
        if left:
            self._wait()
        else:
            self._verify()

    def _wake(self, main: procs.Proc) -> None:
        """One that is stopped would hear of SIGTERM only when somebody continues it."""
        if main.state == "T":
            self._send(main, signal.SIGCONT)

    def _wake_keeper(self) -> None:
        """A keeper that was stopped neither reaps nor records."""
        keeper = self._process.get("keeper") or {}
        proc = procs.look(keeper["pid"]) if keeper.get("pid") else None
        if proc and proc.start == keeper.get("start") and proc.state == "T":
            procs.send_signal(proc, signal.SIGCONT)

    def _wait(self) -> None:
        """While the main process lives, look at it alone most of the time: a drain can take hours."""
        now, main = monotonic(), self._main()
        lives = main is not None
        if main is not None:
            self._wake(main)
        if not lives or now >= self._scanned + CALM:
            if not self._scan():
                self._verify()
                return
        if not lives:
            self._main_gone = self._main_gone or now
        orphaned = self._main_gone is not None and now >= self._main_gone + ORPHAN_GRACE
        if now >= self._grace_ends or orphaned:
            self._force()
        else:
            self._later(RESCAN, self._wait)

    def _force(self) -> None:
        """SIGKILL to all, again and again without a pause for a moment, then with one, until a scan finds nobody."""
        again = self._killed is not None
        now = monotonic()
        self._killed = self._killed or now
        if self._about.folder is not None and self._main() is not None:
            mark_forced(self._about.folder)
        left = self._scan()
        while left and now < self._killed + self._settle:
            for proc in left:
                self._send(proc, signal.SIGKILL)
            if again:
                self._empty_cgroup()
            self._hunt()
            left = self._scan()
            if monotonic() > now + BURST:
                break
        if not left or now >= self._killed + self._settle:
            self._verify()
        else:
            self._later(RESCAN, self._force)

    def _hunt(self) -> list[procs.Proc]:
        """SIGKILL to whatever has become the keeper's child. A process that lives for a millisecond, just to make the
        next one, is gone before a scan gets to it; but its heirs all come to the keeper, which stays for the last."""
        keeper = self._process.get("keeper") or {}
        if not procs.is_alive(keeper.get("pid"), keeper.get("start")):
            return []
        found = procs.children(keeper["pid"])
        until = monotonic() + BURST
        fresh = found
        while fresh and monotonic() < until:
            for proc in fresh:
                self._send(proc, signal.SIGKILL)
                self._found.setdefault((proc.pid, proc.start), "pid %d %s" % (proc.pid, proc.name))
                self._known[proc.pid] = proc.start
            fresh = procs.children(keeper["pid"])
        return found

    def _empty_cgroup(self) -> None:
        """The kernel kills all at once in the cgroup that the keeper made for this server, the newest forks too."""
        folder = look.own_cgroup(self._process, self._about.run)
        if folder and procs.populated(folder):
            try:
                with open(folder + "/cgroup.kill", "w") as file:
                    file.write("1")
            except OSError:
                return  # before Linux 5.14
            if "cgroup.kill" not in self._signals:
                self._signals.append("cgroup.kill")

    def _verify(self) -> None:
        """Let a process that knows nothing of this kill look for what is left."""
        known = [[pid, start] for pid, start in self._known.items()]
        question = {"run": self._about.run, "known": known, "sockets": sorted(self._sockets)}
        look.ask(self._agent, question, lambda told, why: self._step(lambda: self._on_look(told, why)))

    def _on_look(self, told: dict[str, Any] | None, why: str) -> None:
        if told is None:
            self._give_up("Whether anything of the run is left could not be seen: %s" % why)
            return
        self._killed = self._killed if self._killed or not told["left"] else monotonic()
        settled = monotonic() >= (self._killed or self._main_gone or self._began) + self._settle
        for pid, start, name in told["left"]:
            self._known[pid] = start
            self._found[pid, start] = name
        left = [name for _, _, name in told["left"]]
        if left and not settled:
            self._force()
        elif told["held"] and not settled:
            self._empty_cgroup()
            self._later(LOOK_AGAIN, self._verify)
        else:
            self._await_keeper(monotonic() + KEEPER_PATIENCE, left, told)

    def _await_keeper(self, until: float, left: list[str], told: dict[str, Any]) -> None:
        """The keeper holds the lock that the next launch needs. That it leaves is the kernel's own word that nothing
        below it is left."""
        keeper = self._process.get("keeper") or {}
        if procs.is_alive(keeper.get("pid"), keeper.get("start")) and not left:
            self._wake_keeper()
            missed = self._hunt()
            if monotonic() < until:
                self._later(0.01, lambda: self._await_keeper(until, left, told))
                return
            proc = procs.look(keeper["pid"])
            if missed:
                left = ["pid %d %s, and what makes it anew" % (proc.pid, proc.name) for proc in missed]
            elif proc is not None:
                procs.send_signal(proc, signal.SIGKILL)
        self._report([*left, *told["held"]], told["gpu"])

    def _report(self, left: list[str], gpu: str) -> None:
        port, folder = self._about.port, self._about.folder
        report = {
            "found": list(self._found.values()),
            "signals": self._signals,
            "left": left,
            "seconds": monotonic() - self._began,
            "port_free": not sockets.listeners(port) if port else None,
            "gpu": gpu,
        }
        cgroup = look.own_cgroup(self._process, self._about.run)
        if cgroup and not left:
            try:
                os.rmdir(cgroup)  # a killed keeper could not
            except OSError:
                pass
        if folder is None or self._request.header.get("sweep"):
            self._answer(report)
        elif self._request.header.get("again"):
            self._together(folder, report, monotonic() + FIRST_PATIENCE)
        else:
            mark(folder, "kill.json", self._request, report=report)  # for whoever lost the link before it came
            self._answer(report)

    def _answer(self, report: dict[str, Any]) -> None:
        self._request.answer(report)
        self._agent.loop.release()

    def _together(self, folder: str, report: dict[str, Any], until: float) -> None:
        """Who asks ``again`` gets what the first kill found and took, together with this look. The first may have come
        to its end in this moment, and its report may be about to be written; or nobody is left to write one."""
        first = (load(folder, "kill.json").fields or {}).get("report")
        if first:
            report = dict(report, found=list(dict.fromkeys([*first["found"], *report["found"]])),
                          signals=list(dict.fromkeys([*first["signals"], *report["signals"]])))  # fmt: skip
        elif monotonic() < until:
            self._later(0.05, lambda: self._together(folder, report, until))
            return
        self._answer(report)
