"""Processes, from /proc. Only ``stat`` is read in passing (and ``status``, for memory): ``cmdline``, ``environ`` and
``smaps`` can block while a process pins memory."""

from __future__ import annotations

import os
import signal

from .files import read_text
from .tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator

TICKS = os.sysconf("SC_CLK_TCK")
TITLE = 8  # letters of ``sglang::``, which the children of a server have before their names


class Proc(NamedTuple):
    """One line of ``/proc/PID/stat``: ``start`` in clock ticks since boot tells a reused pid apart."""

    pid: int
    name: str
    state: str
    parent: int
    session: int
    start: int
    threads: int = 1

    @property
    def dead(self) -> bool:
        """Whether nothing of it is left but its status. A zombie that has threads is not: its main thread has ended,
        the others run on, or are about to give back the memory that the process has pinned."""
        return self.state in "Xx" or (self.state == "Z" and self.threads <= 1)


def parse_stat(pid: int, text: str) -> Proc | None:
    """A process's name may hold spaces and brackets; the fields start after the last bracket."""
    left, right = text.find("("), text.rfind(")")
    fields = text[right + 2 :].split()
    if left < 0 or right < 0 or len(fields) < 20:
        return None
    name, (state, parent, session) = text[left + 1 : right], (fields[0], int(fields[1]), int(fields[3]))
    return Proc(pid, name, state, parent, session, int(fields[19]), int(fields[17]))


def look(pid: int) -> Proc | None:
    """The process ``pid``, zombies included."""
    text = read_text("/proc/%d/stat" % pid)
    return parse_stat(pid, text) if text else None


def is_alive(pid: int | None, start: int | None) -> bool:
    """Whether that very process lives: a zombie is dead, a reused pid is somebody else."""
    proc = look(pid) if pid else None
    return proc is not None and proc.start == start and not proc.dead


def boot_id() -> str:
    return (read_text("/proc/sys/kernel/random/boot_id") or "").strip()


def pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


class Scanner:
    """All living user processes. Kernel threads are remembered, since a big host has thousands of them."""

    def __init__(self) -> None:
        self._kernel: set[int] = {2}
        self._scans = 0

    def scan(self) -> dict[int, Proc]:
        self._scans += 1
        if self._scans % 60 == 0:
            self._kernel = {2}  # pids get reused in the end
        found = {}
        for entry in reversed(os.listdir("/proc")):  # the newest first: they may be the first to go
            if not entry.isdigit() or int(entry) in self._kernel:
                continue
            proc = look(int(entry))
            if proc is None or proc.dead:
                continue
            if proc.parent == 2:
                self._kernel.add(proc.pid)
            else:
                found[proc.pid] = proc
        return found


def glance(pids: Iterable[int]) -> dict[int, Proc]:
    """Those of ``pids`` that live: what a scan would find of them, without the rest of the machine."""
    found = {pid: look(pid) for pid in pids}
    return {pid: proc for pid, proc in found.items() if proc is not None and not proc.dead}


def descendants(roots: Iterable[int], procs: dict[int, Proc]) -> set[int]:
    """Everything below ``roots``, without them."""
    children: dict[int, list[int]] = {}
    for proc in procs.values():
        children.setdefault(proc.parent, []).append(proc.pid)
    found: set[int] = set()
    stack = list(roots)
    while stack:
        for child in children.get(stack.pop(), ()):
            if child not in found:
                found.add(child)
                stack.append(child)
    return found


def children(pid: int) -> list[Proc]:
    """The living children of a process with one thread, in one read: quicker than a scan. None where the kernel does
    not list them."""
    found = map(look, map(int, (read_text("/proc/%d/task/%d/children" % (pid, pid)) or "").split()))
    return [proc for proc in found if proc is not None and proc.parent == pid and not proc.dead]


def ancestors(pid: int, procs: dict[int, Proc]) -> Iterator[int]:
    """The parent of ``pid``, that one's parent, and so on."""
    while pid in procs:
        pid = procs[pid].parent
        yield pid


def cgroup_pids(path: str | None) -> set[int]:
    text = read_text(os.path.join(path, "cgroup.procs")) if path else None
    return {int(word) for word in (text or "").split()}


def populated(cgroup: str) -> bool:
    """The kernel's word on whether anything lives in a cgroup of version 2, however briefly."""
    return "populated 1" in (read_text(cgroup + "/cgroup.events") or "")


def members(process: dict[str, Any], procs: dict[int, Proc], log: str | None = None) -> set[int]:
    """The living processes of the run that ``process.json`` describes, its keeper not among them.

    Session of the main process, tree below it and below the keeper (a subreaper: nothing escapes it), the run's
    cgroup, and, given ``log``, whoever has the run's log as its output: that finds daemons even when the keeper was
    killed.
    """
    main, start = process.get("pid"), process.get("start", 0)
    keeper = process.get("keeper") or {}
    leader = procs.get(main) if main else None
    roots = []
    found: set[int] = set()
    if leader is not None and leader.start == start:
        roots.append(leader.pid)
        found.add(leader.pid)
    if is_alive(keeper.get("pid"), keeper.get("start")):
        roots.append(keeper["pid"])
    if leader is None or leader.start == start:  # else the pid is reused, so the old session is empty
        in_session = {p.pid for p in procs.values() if p.session == main and p.start >= start}
        if roots or any(writes_to(pid, log) for pid in in_session):
            found |= in_session
    if process.get("orphans") and leader is not None:  # what a dead main process left: one session, one new parent
        found |= {p.pid for p in procs.values() if (p.session, p.parent) == (leader.session, leader.parent)
                  and p.name.startswith(leader.name[:TITLE])}  # fmt: skip
    found |= {pid for pid in cgroup_pids(process.get("cgroup")) if pid in procs}
    if log:
        found |= {p.pid for p in procs.values() if p.start >= start and writes_to(p.pid, log)}
    found |= descendants(roots + sorted(found), procs)
    return found - {keeper.get("pid"), os.getpid()}


def writes_to(pid: int, log: str | None) -> bool:
    """Whether the process's stdout or stderr is the file ``log``."""
    for fd in ("1", "2"):
        try:
            if log and os.readlink("/proc/%d/fd/%s" % (pid, fd)) == log:
                return True
        except OSError:
            return False
    return False


def send_signal(proc: Proc, number: int) -> bool:
    """Signal that very process, never another that got its pid in the meantime. False: it is gone, or not ours."""
    opener, sender = getattr(os, "pidfd_open", None), getattr(signal, "pidfd_send_signal", None)
    try:
        fd = opener(proc.pid) if opener and sender else None
    except OSError:
        fd = None
    try:
        now = look(proc.pid)
        if now is None or now.start != proc.start:
            return False
        if fd is not None and sender is not None:
            sender(fd, number)
        else:
            os.kill(proc.pid, number)
        return True
    except OSError:
        return False
    finally:
        if fd is not None:
            os.close(fd)


def title(proc: Proc, words: Iterable[str] | None = None) -> str:
    """``pid 123 sglang::scheduler``: the command line's first words where the name is cut or just ``python``."""
    if words is None:
        words = (read_text("/proc/%d/cmdline" % proc.pid, 4096) or "").split("\0")
    words = [word for word in words if word]
    shown = words[0].rpartition("/")[2] if words else proc.name
    if shown.startswith("python") and len(words) > 1:
        shown = " ".join([shown, *words[1:3]])
    return "pid %d %s" % (proc.pid, shown[:60])


def owner(pid: int) -> int | None:
    """The user id that the process belongs to."""
    try:
        return os.stat("/proc/%d" % pid).st_uid
    except OSError:
        return None


def user(uid: int) -> str:
    """The login name of a user id."""
    try:
        import pwd

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return "uid %d" % uid
