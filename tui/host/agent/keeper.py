"""The keeper of one server: starts it, holds the server's lock, waits, and writes down how it ended.

Copied into the run directory and run by itself (``python -ISB keeper.py RUN_DIR SPEC_FD STATUS_FD LOCK_FD``), so it
imports nothing of the agent. It is the subreaper of everything that the server starts, lives as long as any of that
does, and needs nobody to be connected. One thread: children that armed PR_SET_PDEATHSIG would die with theirs.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from typing import Any

FORMAT = 1
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
SETUP_FD = 9  # one digit: sh knows no more


def write_json(path: str, value: dict[str, Any]) -> None:
    """Atomically; on a full disk again and again, since nobody else can tell how the server ended."""
    for attempt in range(720):
        try:
            with open(os.open(path + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump(dict(value, format=FORMAT), file, indent=1)
            os.rename(path + ".tmp", path)
            return
        except OSError:
            time.sleep(min(0.1 * 2**attempt, 5.0))


def read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def start_time(pid: int) -> int:
    return int(read("/proc/%d/stat" % pid).rpartition(")")[2].split()[19])


def prctl(option: int, value: Any) -> None:
    try:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):
        pass


def tell(fd: int, value: dict[str, Any]) -> None:
    """One line to the launcher, if it is still there."""
    try:
        os.write(fd, json.dumps(value).encode() + b"\n")
    except OSError:
        pass


def oom_kills(cgroup: str | None) -> dict[str, int]:
    """Counters of the OOM killer that saw our processes: of the cgroup, and of the machine."""
    found = {}
    for name, path in (("cgroup", (cgroup or "") + "/memory.events"), ("v1", (cgroup or "") + "/memory.oom_control"),
                       ("machine", "/proc/vmstat")):  # fmt: skip
        for line in read(path).splitlines():
            if line.startswith("oom_kill "):
                found[name] = int(line.split()[1])
    return found


def memory_cgroup() -> str | None:
    """The folder whose counters tell of OOM kills among our processes."""
    for line in read("/proc/self/cgroup").splitlines():
        number, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        base = "/sys/fs/cgroup/memory" if "memory" in controllers.split(",") else "/sys/fs/cgroup"
        if (number == "0" or "memory" in controllers) and os.path.exists(base + path + "/cgroup.procs"):
            return (base + path).rstrip("/")
    return None


def own_cgroup(run: str) -> str | None:
    """A cgroup of our own for the server, where version 2 is there and writable; nice to have, not needed."""
    base = memory_cgroup()
    if base is None or not os.path.exists(base + "/cgroup.controllers"):
        return None
    folder = base + "/hcs-" + run
    try:
        os.mkdir(folder)
        return folder
    except OSError:
        return None


def child(spec: dict[str, Any], cgroup: str | None, status: int) -> None:
    """In the child: become the server. Tells a failure through ``status``; does not return."""
    step = "start"
    try:
        os.setsid()
        for number in (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        step = "log"
        log = os.open(spec["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        step = "cwd"
        os.chdir(spec["cwd"])
        enter(cgroup)
        argv = spec["argv"]
        if spec.get("setup"):
            os.dup2(status, SETUP_FD)
            os.set_inheritable(SETUP_FD, True)  # dup2 leaves that alone where both are the same
            argv = setup_command(spec["setup"], argv)
        step = "exec"
        os.execvpe(argv[0], argv, spec["env"])
    except OSError as error:
        tell(status, {"error": error.strerror or str(error), "step": step})
        os.write(2, ("hcs-tui: %s: %s\n" % (spec["argv"][0], error)).encode("utf-8", "replace"))
    finally:
        os._exit(127)


def enter(cgroup: str | None) -> None:
    if cgroup:
        try:
            with open(cgroup + "/cgroup.procs", "w") as file:
                file.write("0")
        except OSError:
            pass


def setup_command(setup: str, argv: list[str]) -> list[str]:
    """A shell that runs the setup lines, ends at the first that fails, and then becomes the server."""
    shell = next((path for path in ("/bin/bash", "/usr/bin/bash") if os.path.exists(path)), "/bin/sh")
    script = 'set -e\n%s\nset +e\necho ok >&%d\nexec %d>&-\nexec "$@"\n' % (setup, SETUP_FD, SETUP_FD)
    return [shell, "-c", script, "hcs-setup", *argv]


def children(pid: int) -> list[int]:
    """Living descendants, by parent."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        fields = read("/proc/%s/stat" % entry).rpartition(")")[2].split() if entry.isdigit() else []
        if len(fields) > 1 and fields[0] not in "ZX":
            parents.setdefault(int(fields[1]), []).append(int(entry))
    found: list[int] = []
    stack = [pid]
    while stack:
        below = parents.get(stack.pop(), [])
        found += below
        stack += below
    return found


def ending(status: int, usage: Any, before: dict[str, int], after: dict[str, int]) -> dict[str, Any]:
    """How the main process ended. ``oom_killed`` is only claimed where the nearest counter there is has moved."""
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    source = next((name for name in ("cgroup", "v1", "machine") if name in before and name in after), None)
    killed = after[source] > before[source] if source else None
    if killed and code == 0:
        killed = False  # somebody else's misfortune in the same cgroup
    return {
        "status": code,
        "signal": signal.Signals(number).name if number in set(signal.Signals) else number and str(number),
        "oom_killed": killed,
        "oom_counter": source,
        "at": time.time(),
        "max_rss_kib": usage.ru_maxrss,
        "left": children(os.getpid()),
    }


def main(folder: str, spec_fd: int, status: int, lock: int) -> None:
    for fd in (status, lock):
        os.set_inheritable(fd, False)  # the server must not keep the lock
    with open(spec_fd) as file:
        spec = json.load(file)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    prctl(PR_SET_NAME, b"hcs-keeper")
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    cgroup = own_cgroup(spec["run"])
    counters = cgroup if cgroup and oom_kills(cgroup).get("cgroup") is not None else memory_cgroup()
    before = oom_kills(counters)
    pid = os.fork()
    if pid == 0:
        child(spec, cgroup, status)
    process = {
        "pid": pid, "start": start_time(pid), "session": pid,
        "keeper": {"pid": os.getpid(), "start": start_time(os.getpid())},
        "boot_id": read("/proc/sys/kernel/random/boot_id").strip(), "pid_namespace": os.readlink("/proc/self/ns/pid"),
        "cgroup": cgroup, "started": time.time(),
    }  # fmt: skip
    write_json(folder + "/process.json", process)
    tell(status, {"process": process})
    if not spec.get("setup"):
        os.close(status)  # the child's copy closes with its exec: the launcher sees the end
        status = -1
    del spec
    wait(folder, pid, status, counters, before)
    if cgroup:
        try:
            os.rmdir(cgroup)
        except OSError:
            pass


def wait(folder: str, main_pid: int, status_fd: int, counters: str | None, before: dict[str, int]) -> None:
    """Reap until nothing is left; write ``exit.json`` when the main process ends, and again when all are gone."""
    exit_info: dict[str, Any] = {}
    while True:
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            break
        if pid == main_pid:
            exit_info = ending(status, usage, before, oom_kills(counters))
            write_json(folder + "/exit.json", exit_info)
            if status_fd >= 0:
                tell(status_fd, {"ended": exit_info})
                os.close(status_fd)
    if exit_info.get("left"):
        write_json(folder + "/exit.json", dict(exit_info, left=[], empty_at=time.time()))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
