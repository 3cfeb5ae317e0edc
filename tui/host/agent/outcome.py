"""How a run ended, in the same words for who launched it and for who looks later."""

from __future__ import annotations

import os

from .files import FORMAT, open_regular
from .procs import is_alive, look
from .recorded import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

CHECK = "Check the interpreter or command, the working directory and their permissions."


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
        return {"message": message, "remedy": CHECK, "failure": "bad_argument"}
    return None


def ended(folder: str) -> dict[str, Any] | None:
    """``exit.json``, with ``refused`` where the program never ran."""
    told = load(folder, "exit.json").fields
    if told and told.get("failed_at"):
        asked = load(folder, "run.json").fields or {}
        told["refused"] = not_started(folder, asked, told)
    return told


def fate(
    asked: Mapping[str, Any],
    process: Mapping[str, Any],
    told: Mapping[str, Any] | None,
    boot: str,
    flawed: bool = False,
) -> str:
    """What is known of a run's life, in one word.

    ``running`` · ``unkept`` (it runs, and its keeper was killed: its end will not be recorded) · ``ended`` ·
    ``unstarted`` (no process was ever recorded) · ``rebooted`` (the host was, since) · ``zombie`` and ``reused`` (its
    pid is a dead process's, or another's) · ``unrecorded`` (gone, and nobody saw how) · ``newer`` (written by a later
    release: not read) · ``unreadable`` (it does not live as far as is known, and what is recorded is ``flawed``).
    """
    if asked.get("format", FORMAT) > FORMAT:
        return "newer"
    if process.get("boot_id") == boot and is_alive(process.get("pid"), process.get("start")):
        keeper = process.get("keeper") or {}
        return "running" if is_alive(keeper.get("pid"), keeper.get("start")) else "unkept"
    if told is not None:
        return "ended"
    if flawed:
        return "unreadable"
    if (process.get("boot_id") or asked.get("boot_id")) != boot:
        return "rebooted"
    if not process:
        return "unstarted"
    now = look(process["pid"])
    if now is None:
        return "unrecorded"
    return "zombie" if now.start == process.get("start") else "reused"


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
