"""Processes of this machine, as /proc shows them."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def _stat(pid: int | str) -> list[str]:
    """The fields of ``/proc/PID/stat`` from the state on; none of a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _all() -> dict[int, list[str]]:
    return {int(entry.name): fields for entry in Path("/proc").glob("[0-9]*") if (fields := _stat(entry.name))}


def is_running(pid: int) -> bool:
    """Alive and no zombie."""
    fields = _stat(pid)
    return bool(fields) and fields[0] not in "ZX"


def below(*roots: int) -> list[int]:
    """Living descendants of ``roots``."""
    children: dict[int, list[int]] = {}
    for pid, fields in _all().items():
        children.setdefault(int(fields[1]), []).append(pid)
    found: list[int] = []
    parents = list(roots)
    while parents:
        young = children.get(parents.pop(), [])
        found += young
        parents += young
    return [pid for pid in found if is_running(pid)]


def in_session(leader: int) -> list[int]:
    """Processes of a session, also those that its leader's death left to somebody else."""
    return [pid for pid, fields in _all().items() if int(fields[3]) == leader]


def marked(mark: bytes) -> list[int]:
    """Living processes that were started with ``mark`` (``NAME=value``) in their environment."""
    return [pid for pid in _all() if mark in _environment(pid).split(b"\0") and is_running(pid)]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # gone, or another user's
        return b""


def words(pid: int) -> str:
    """The command line."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def kill_now(pid: int) -> None:
    """SIGKILL, where there is still somebody to get it."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
