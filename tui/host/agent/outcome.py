"""How a run ended and what has outlived it, in the same words for who launched it and for who looks later."""

from __future__ import annotations

import errno
import os

from .files import FORMAT, open_regular
from .procs import Scanner, is_alive, look, members
from .recorded import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

TOO_LONG = (
    "Linux takes at most 131071 bytes in one argument or variable, and a few MB in all: give what is long in a file."
)
CHECK = "Check the interpreter or command, the working directory and their permissions."
LEFT_REMEDY = "`hcs-tui down` or `relaunch` ends what is left"
NAMED = 5  # processes


def not_started(folder: str, asked: Mapping[str, Any], ended: Mapping[str, Any]) -> dict[str, str] | None:
    """Why the server's program never ran (message, remedy, failure), of an ``exit.json`` that says so."""
    step = ended.get("failed_at")
    stop = load(folder, "stop.json").fields if step else None
    if stop is not None:
        who = " by %s" % stop["who"] if stop.get("who") else ""
        return {"message": "It was ended%s before its program ran." % who, "remedy": "", "failure": "other"}
    if step == "setup":
        last = tail(os.path.join(folder, "server.log"))
        how = ended.get("signal") or "status %s" % ended.get("status")
        message = "The setup lines failed with %s%s" % (how, ": " + last if last else ".")
        remedy = "Their whole output is in %s; a command that may fail needs `|| true`." % folder
        return {"message": message, "remedy": remedy, "failure": "other"}
    if step:
        name = (asked.get("argv") or ["The server"])[0]
        message = "%s cannot be started: %s." % (name, ended.get("error"))
        remedy = TOO_LONG if ended.get("error") == os.strerror(errno.E2BIG) else CHECK
        return {"message": message, "remedy": remedy, "failure": "bad_argument"}
    return None


def ended(folder: str, process: Mapping[str, Any], boot: str) -> dict[str, Any] | None:
    """``exit.json``, with ``refused`` where the program never ran; ``left``: those that live now; ``leftover``: words
    on them, and what to do; ``unforced``: whether it ended by a SIGKILL, though it was sent SIGTERM alone."""
    told = load(folder, "exit.json").fields
    if told is None:
        return None
    if told.get("failed_at"):
        asked = load(folder, "run.json").fields or {}
        told["refused"] = not_started(folder, asked, told)
    if told.get("left"):
        left = _living(folder, process) if process.get("boot_id") == boot else {}
        told["left"] = sorted(left)
        told["leftover"] = [_living_words(left), LEFT_REMEDY] if left else []
    if told.get("signal") == "SIGKILL" and not told.get("oom_killed"):
        stop = load(folder, "stop.json").fields or {}
        told["unforced"] = stop.get("forced") is False
    return told


def _living(folder: str, process: Mapping[str, Any]) -> dict[int, str]:
    """What lives of a run whose main process is gone: names by pid."""
    found = Scanner().scan()
    log = os.path.realpath(os.path.join(folder, "server.log"))
    return {pid: found[pid].name for pid in members(dict(process), found, log) if pid in found}


def _living_words(left: Mapping[int, str]) -> str:
    """``pid 12 (sleep) of it lives on``."""
    names = ["pid %d (%s)" % (pid, left[pid]) for pid in sorted(left)]
    more = ["%d more" % (len(names) - NAMED)] if len(names) > NAMED else []
    return "%s of it %s on" % (", ".join(names[:NAMED] + more), "lives" if len(names) == 1 else "live")


def fate(
    asked: Mapping[str, Any],
    process: Mapping[str, Any],
    told: Mapping[str, Any] | None,
    boot: str,
    flawed: bool = False,
) -> str:
    """What is known of a run's life, in one word.

    ``running`` · ``unkept`` (it runs, and its keeper was killed: its end will not be recorded) · ``ended`` (its keeper
    wrote down how, or is about to) · ``unstarted`` (no process was ever recorded) · ``rebooted`` (the host was, since)
    · ``zombie`` and ``reused`` (its pid is a dead process's, or another's) · ``unrecorded`` (gone, and nobody saw how)
    · ``newer`` (written by a later release: not read) · ``unreadable`` (it does not live as far as is known, and what
    is recorded is ``flawed``).
    """
    if asked.get("format", FORMAT) > FORMAT:
        return "newer"
    here = process.get("boot_id") == boot
    kept = here and keeper_lives(process)  # looked at first: it leaves when the server has ended
    if here and is_alive(process.get("pid"), process.get("start")):
        return "running" if kept else "unkept"
    if told is not None:
        return "ended"
    if flawed:
        return "unreadable"
    if (process.get("boot_id") or asked.get("boot_id")) != boot:
        return "rebooted"
    if not process:
        return "unstarted"
    now = look(process["pid"])
    if now is not None and now.start != process.get("start"):
        return "reused"
    if kept:
        return "ended"
    return "unrecorded" if now is None else "zombie"


def keeper_lives(process: Mapping[str, Any]) -> bool:
    """Of a process of this boot. Ask before whether the server lives: a keeper that ends properly ends after it."""
    keeper = process.get("keeper") or {}
    return is_alive(keeper.get("pid"), keeper.get("start"))


def tail(path: str) -> str:
    """The last line of a small file."""
    try:
        fd = open_regular(path)
        if fd is None:
            return ""
        try:
            data = os.pread(fd, 4096, max(0, os.fstat(fd).st_size - 4096))
        finally:
            os.close(fd)
    except OSError:
        return ""
    lines = data.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else ""
