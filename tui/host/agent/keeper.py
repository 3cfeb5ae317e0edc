"""The keeper of one server: starts it, holds the server's lock, waits, and writes down how it ended.

Compiled into the run directory and run by itself (``python -ISB keeper.pyc RUN_DIR SPEC_FD STATUS_FD LOCK_FD``), so it
imports nothing of the agent. It is the subreaper of everything that the server starts, lives as long as any of that
does, and needs nobody to be connected. One thread: children that armed PR_SET_PDEATHSIG would die with theirs.
"""

from __future__ import annotations

import errno
import marshal
import os
import select
import sys
import time

TYPE_CHECKING = False  # typing, json, enum (in signal) and ctypes would cost a third of this program's memory
if TYPE_CHECKING:
    from typing import Any

signals: Any = __import__("_signal")
FORMAT = 1
IGNORED = (signals.SIGTERM, signals.SIGINT, signals.SIGHUP, signals.SIGQUIT)
NAMES = {getattr(signals, name): name for name in reversed(dir(signals)) if name[:3] == "SIG" and name[3] != "_"}
SETUP_FD = 9  # one digit: sh knows no more
ROOM = 4096  # bytes, more than any file of ours needs
PERSISTENT = 720  # attempts to write how the server ended, about an hour: nobody else can tell
LOOK = 0.05  # seconds between two looks at a main process whose setup lines run


def write_json(path: str, value: dict[str, Any], attempts: int) -> None:
    """Atomically, over the room that was reserved beside ``path``; on trouble again and again, ``attempts`` times."""
    data = json_text(dict(value, format=FORMAT)).encode("ascii").ljust(ROOM - 1) + b"\n"
    for attempt in range(attempts):
        try:
            fd = os.open(path + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if os.write(fd, data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(fd)
            finally:
                os.close(fd)
            os.rename(path + ".tmp", path)
            return
        except FileNotFoundError:
            return  # somebody deleted the run: there is nobody left to tell
        except OSError:
            if attempt == attempts - 1:
                raise
            time.sleep(min(0.1 * 2**attempt, 5.0))


def reserve(path: str) -> None:
    """Take the room for what ``write_json`` will write to ``path``, while there is some. Raises ``OSError``."""
    with open(os.open(path + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(b" " * ROOM)


def forget(path: str) -> None:
    """Remove the file with the server's keys, if it has one (``hiding.NAME``)."""
    try:
        os.unlink(path)
    except OSError:
        pass


def json_text(value: Any) -> str:
    """JSON of plain values, in ASCII and on one line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (json_text(key), json_text(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(map(json_text, value))
    if isinstance(value, str):
        units = value.encode("utf-16-be", "surrogatepass")
        codes = [units[at] << 8 | units[at + 1] for at in range(0, len(units), 2)]
        return '"%s"' % "".join(chr(c) if 31 < c < 127 and c not in (34, 92) else "\\u%04x" % c for c in codes)
    return repr(value)


def read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def start_time(pid: int) -> int:
    return int(read("/proc/%d/stat" % pid).rpartition(")")[2].split()[19])


def tell(fd: int, value: dict[str, Any]) -> None:
    """One line to the launcher, if it is still there."""
    try:
        os.write(fd, json_text(value).encode("ascii") + b"\n")
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
    """A cgroup of our own for the server, where version 2 is there and writable, alone or beside version 1: whatever it
    starts stays in it, even when this keeper is killed. Nice to have, not needed."""
    path = next((line[3:].rstrip("/") for line in read("/proc/self/cgroup").splitlines() if line[:3] == "0::"), None)
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if path is not None and os.path.exists(root + path + "/cgroup.controllers"):
            try:
                os.mkdir(root + path + "/hcs-" + run)
                return root + path + "/hcs-" + run
            except OSError:
                return None
    return None


def child(spec: dict[str, Any], cgroup: str | None, go: int, word: int) -> None:
    """In the child: become the server once ``go`` says so. Tells a failure through ``word``; does not return."""
    step = "start"
    try:
        os.setsid()
        for number in (*IGNORED, signals.SIGPIPE, signals.SIGXFSZ):
            signals.signal(number, signals.SIG_DFL)
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
            os.dup2(word, SETUP_FD)
            os.set_inheritable(SETUP_FD, True)  # dup2 leaves that alone where both are the same
            argv = setup_command(spec["setup"], argv)
        if not os.read(go, 1):
            os._exit(127)
        step = "exec"
        os.execvpe(argv[0], argv, spec["env"])
    except OSError as error:
        os.write(word, ("%s\t%s\n" % (step, error.strerror or error)).encode("utf-8", "replace"))
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


def leave(cgroup: str | None) -> None:
    """Nothing of the server is left, so its cgroup is empty."""
    if cgroup:
        try:
            os.rmdir(cgroup)
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
        "signal": NAMES.get(number, str(number)) if number is not None else None,
        "oom_killed": killed,
        "oom_counter": source,
        "at": time.time(),
        "max_rss_kib": usage.ru_maxrss,
        "left": children(os.getpid()),
    }


def begun(word: int, pid: int, setup: bool) -> dict[str, str]:
    """Wait until the server's program runs: empty; else ``failed_at`` (setup, exec, cwd, log) and ``error``.

    The child's end of ``word`` closes with its exec. Setup lines say when they are through: what they start in the
    background may hold that end open.
    """
    said = b""
    while b"\n" not in said:
        if select.select([word], [], [], LOOK if setup else None)[0]:
            data = os.read(word, 4096)
            if not data:
                break
            said += data
        elif os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            break
    os.close(word)
    step, _, error = said.decode("utf-8", "replace").strip().partition("\t")
    if error:
        return {"failed_at": step, "error": error}
    return {"failed_at": "setup"} if setup and not said else {}


def main(folder: str, spec_fd: int, status: int, lock: int) -> None:
    for fd in (status, lock):
        os.set_inheritable(fd, False)  # the server must not keep the lock
    with open(spec_fd, "rb") as file:
        spec = marshal.load(file)
    for number in IGNORED:
        signals.signal(number, signals.SIG_IGN)
    with open("/proc/self/comm", "w") as name:
        name.write("hcs-keeper")
    cgroup = own_cgroup(spec["run"])
    counters = cgroup if cgroup and oom_kills(cgroup).get("cgroup") is not None else memory_cgroup()
    before = oom_kills(counters)
    (go, say_go), (word, child_word) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(say_go)  # else a killed keeper would leave a child that waits for ever
        child(spec, cgroup, go, child_word)
    os.close(child_word)
    os.close(go)
    try:
        record(folder, pid, cgroup)
        os.write(say_go, b"!")
    except OSError as error:  # no server without its record: the child ends with our end of the pipe
        tell(status, {"unrecorded": error.strerror or str(error), "errno": error.errno})
        os.close(say_go)
        os.waitpid(pid, 0)
        leave(cgroup)
        return
    os.close(say_go)
    setup = bool(spec.get("setup"))
    del spec
    failed = begun(word, pid, setup)
    if not failed:
        tell(status, {"begun": True})
        os.close(status)
        status = -1
    wait(folder, pid, status, counters, before, failed)
    leave(cgroup)


def record(folder: str, pid: int, cgroup: str | None) -> None:
    """``process.json``, and room for ``exit.json``: a disk that fills up later must not hide how it ended."""
    process = {
        "pid": pid, "start": start_time(pid), "session": pid,
        "keeper": {"pid": os.getpid(), "start": start_time(os.getpid())},
        "boot_id": read("/proc/sys/kernel/random/boot_id").strip(), "pid_namespace": os.readlink("/proc/self/ns/pid"),
        "cgroup": cgroup, "started": time.time(),
    }  # fmt: skip
    reserve(folder + "/exit.json")
    write_json(folder + "/process.json", process, 1)


def wait(
    folder: str, main_pid: int, status_fd: int, counters: str | None, before: dict[str, int], failed: dict[str, Any]
) -> None:
    """Reap until nothing is left; write ``exit.json`` when the main process ends, and again when all are gone."""
    exit_info: dict[str, Any] = {}
    while True:
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            break
        if pid == main_pid:
            exit_info = dict(ending(status, usage, before, oom_kills(counters)), **failed)
            write_json(folder + "/exit.json", exit_info, PERSISTENT)
            forget(folder + "/flags.yaml")
            if status_fd >= 0:
                tell(status_fd, {"ended": exit_info})
                os.close(status_fd)
    if exit_info.get("left"):
        write_json(folder + "/exit.json", dict(exit_info, left=[], empty_at=time.time()), 10)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
