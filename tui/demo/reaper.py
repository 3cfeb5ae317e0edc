"""The descendants of this process: what detaches on the demo's host hangs under it, is reaped, and ends with it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Set
from pathlib import Path

_LOOK_SECONDS = 1.0
_GRACE_SECONDS = 2.0


def children_of() -> dict[int, list[tuple[int, str]]]:
    """Parent → (pid, state) of every process that can be seen."""
    found: dict[int, list[tuple[int, str]]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it is gone
        found.setdefault(int(fields[1]), []).append((int(entry.name), fields[0]))
    return found


def descendants(root: int) -> list[int]:
    """Living descendants of ``root``, parents first."""
    tree = children_of()
    found: list[int] = []
    parents = [root]
    while parents:
        for pid, state in tree.get(parents.pop(), []):
            parents.append(pid)
            if state not in "ZX":
                found.append(pid)
    return found


def end_descendants() -> None:
    """SIGTERM, then SIGKILL, to everything below this process, until nothing is left (2 s, then 2 s more)."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _GRACE_SECONDS
        asked: set[int] = set()
        while left := descendants(os.getpid()):
            for pid in left:
                if pid not in asked or number == signal.SIGKILL:
                    asked.add(pid)
                    _signal(pid, number)
            _reap_all()
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
    _reap_all()


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _reap_all() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


async def reap_orphans(own: Set[int]) -> None:
    """Reap what was left to this process by parents that died. ``own``: children that somebody else waits for.

    A zombie is taken at the second look only, so that a child just started is in ``own`` by then.
    """
    seen: set[int] = set()
    while True:
        zombies = {pid for pid, state in children_of().get(os.getpid(), []) if state == "Z"} - own
        for pid in zombies & seen:
            _reap(pid)
        seen = zombies
        await asyncio.sleep(_LOOK_SECONDS)
