"""What must be right before a launch. Each raises ``Refused`` with one clear message and a remedy."""

from __future__ import annotations

import os
import time

from . import outcome
from .requests import Refused
from .runs import Runs
from .sockets import who_listens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping


def working_directory(cwd: str | None) -> str:
    """The absolute working directory; the home where none is asked for."""
    path = os.path.join(os.path.expanduser("~"), os.path.expanduser(cwd or "~"))
    if not os.path.isdir(path):
        what = "is not a directory" if os.path.exists(path) else "does not exist"
        raise Refused("The working directory %s %s." % (path, what), "Create it, or correct `cwd`.", "bad_argument")
    if not os.access(path, os.X_OK):
        raise Refused(
            "The working directory %s may not be entered." % path, "Fix its permissions, or `cwd`.", "bad_argument"
        )
    return path


def program(name: str, cwd: str, env: Mapping[str, str]) -> str:
    """The absolute path of the interpreter or command."""
    remedy = "Correct `python` or `command` of the server, or its PATH."
    if "/" in name:
        path = os.path.join(cwd, os.path.expanduser(name))
        if not os.path.exists(path):
            raise Refused("The interpreter %s does not exist." % path, remedy, "bad_argument")
        if os.path.isdir(path) or not os.access(path, os.X_OK):
            raise Refused("The interpreter %s is not executable." % path, remedy, "bad_argument")
        return path
    for folder in env.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder or cwd, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise Refused("%s is not on the PATH of this host." % name, remedy, "bad_argument")


def running(runs: Runs, spec: Mapping[str, Any]) -> dict[str, Any] | None:
    """The living run of the server, if there is one."""
    return next((record for record in runs.records(spec["profile"], spec["server"]) if record["alive"]), None)


def nobody_runs(runs: Runs, spec: Mapping[str, Any]) -> None:
    """A server may live without a lock: its keeper was killed."""
    record = running(runs, spec)
    if record:
        raise Refused(already(spec, record), "Watch that one, or kill it first.")


def already(spec: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """That the server runs, who launched it, and when."""
    return "%s already runs as pid %s (run %s), launched by %s at %s." % (
        spec["server"], record["pid"], record["run"], record["who"] or "somebody", clock(record["started"])
    )  # fmt: skip


def left(runs: Runs, spec: Mapping[str, Any]) -> dict[str, Any] | None:
    """The run that is over and whose keeper stays, and keeps the server's lock, since some of its processes live."""
    found = runs.records(spec["profile"], spec["server"])
    return next((one for one in found if (one["exit"] or {}).get("leftover") and outcome.keeper_lives(one)), None)


def nobody_left(runs: Runs, spec: Mapping[str, Any]) -> None:
    record = left(runs, spec)
    if record:
        raise Refused(*outlived(spec, record))


def outlived(spec: Mapping[str, Any], record: Mapping[str, Any]) -> tuple[str, str]:
    """What is left of a server that has ended, and what ends that."""
    words, remedy = record["exit"]["leftover"]
    return "%s has ended, but %s." % (spec["server"], words), remedy + "."


def clock(at: float) -> str:
    """A time of this host for people."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def port_free(port: int | None) -> None:
    who = who_listens(port) if port else None
    if who:
        raise Refused(
            "Port %s is taken by %s." % (port, who), "End that process, or give the server another port.", "port_in_use"
        )


def log_link(link: str | None, cwd: str, make: bool = True) -> str | None:
    """The absolute path of the link to the run's log; its folder exists afterwards, or could (``make=False``)."""
    if not link:
        return None
    path = os.path.join(cwd, os.path.expanduser(link))
    folder = os.path.dirname(path)
    remedy = "Correct `log` of the server, or the permissions of its folder."
    try:
        if make:
            os.makedirs(folder, exist_ok=True)
        while not os.path.isdir(folder) and not os.path.lexists(folder):
            folder = os.path.dirname(folder)
    except OSError as error:
        raise Refused(
            "The log path %s cannot be written: %s." % (path, error.strerror), remedy, "bad_argument"
        ) from error
    if os.path.isdir(path) and not os.path.islink(path):
        raise Refused("The log path %s is a directory." % path, remedy, "bad_argument")
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
        raise Refused("The log path %s cannot be written: no permission." % path, remedy, "bad_argument")
    return path


def place_link(path: str | None, log: str) -> None:
    """Point ``path`` at the new log, atomically. A regular file there is renamed aside, never lost."""
    if path is None:
        return
    aside = "%s.%d.tmp" % (path, os.getpid())
    try:
        if os.path.lexists(path) and not os.path.islink(path):
            os.rename(path, "%s.%s" % (path, time.strftime("%Y%m%dT%H%M%S")))
        if os.path.lexists(aside):
            os.unlink(aside)
        os.symlink(log, aside)
        os.rename(aside, path)
    except OSError as error:
        raise Refused(
            "The log path %s cannot be written: %s." % (path, error.strerror), "Correct `log` of the server."
        ) from error
