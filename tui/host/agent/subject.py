"""What a request is about: a run with its directory, or a server that somebody else started.

The latter has no directory. Its name says which process it is, so nothing has to be kept for it, here or over a
reconnect: ``found-BOOT-PID-START-PORT``.
"""

from __future__ import annotations

import os
import re

from . import output, place, procs
from .recorded import load
from .requests import Refused, Request
from .runs import Runs
from .tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TITLE = "sglang::"  # of the children of a server; a kernel's name for a process is cut to 15 bytes
MAIN_TITLES = ("sglang::server", "sglang::http_ser")  # those of main processes: behind a router, and 0.5.2
_NAME = re.compile(r"found-([0-9a-f]{8})-(\d{1,10})-(\d{1,20})-(\d{1,5})")


class Subject(NamedTuple):
    """``process`` is what ``process.json`` holds; ``log`` is a path to open, ``None`` where there is none; ``held`` is
    the descriptor through which the process writes it."""

    run: str
    folder: str | None
    process: dict[str, Any]
    port: int
    log: str | None = None
    held: str | None = None

    @property
    def pid(self) -> int:
        return int(self.process.get("pid") or 0)

    @property
    def sole_log(self) -> str | None:
        """The log whose every writer is of this run. A log that somebody else made may serve several servers."""
        return os.path.realpath(self.log) if self.folder and self.log else None


def found_name(boot_id: str, pid: int, start: int, port: int) -> str:
    """The run's name of a server that somebody else started."""
    return "found-%s-%d-%d-%d" % (boot_id[:8], pid, start, port)


def subject(request: Request) -> Subject:
    """What the request names as its ``run``. Raises ``Refused``."""
    return named(request.agent.runs, str(request.header.get("run")))


def named(runs: Runs, run: str) -> Subject:
    """The run called ``run``. Raises ``Refused``."""
    parts = _NAME.fullmatch(run)
    if parts is None:
        return _with_folder(runs, run)
    boot, pid, start, port = parts[1], int(parts[2]), int(parts[3]), int(parts[4])
    process: dict[str, Any] = {"pid": pid, "start": start}
    process["boot_id"] = runs.boot_id if runs.boot_id.startswith(boot) else ""
    leader = procs.look(pid)
    alive = leader is not None and leader.start == start and bool(process["boot_id"])
    process["orphans"] = alive and leader is not None and is_orphan(leader)
    written = output.of(pid) if alive else output.Output(None)
    return Subject(run, None, process, port, written.path, written.link)


def _with_folder(runs: Runs, run: str) -> Subject:
    folder = runs.find(run)
    if folder is None:
        raise Refused("There is no run %s on this host." % run, "List the runs; it may have been pruned.")
    process = load(folder, "process.json").fields or {}
    asked = load(folder, "run.json").fields or {}
    held = "/proc/%d/fd/1" % process["pid"] if process.get("pid") else None
    return Subject(run, folder, process, int(asked.get("port") or 0), os.path.join(folder, "server.log"), held)


def is_orphan(proc: procs.Proc) -> bool:
    """Whether a process that has no living main process above it is what was left of a server."""
    return proc.name.startswith(TITLE) and not proc.name.startswith(MAIN_TITLES)


def refuse_to_end(about: Subject) -> None:
    """Raise ``Refused`` where ending a found server would be half done, or is not for this user to do."""
    where = place.container(about.pid)
    if where:
        raise Refused(
            "It runs in a container (%s), which this program cannot end; ending its processes alone would half do it."
            % where,
            "End the container itself%s." % place.ending(where),
        )
    uid = procs.owner(about.pid)
    if os.geteuid() != 0 and uid is not None and uid != os.geteuid():
        raise Refused("It belongs to %s." % procs.user(uid), "Only its owner, or root, can end it.")
