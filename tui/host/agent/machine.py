"""A look at the host as a whole: its memory, the disks that matter, and its GPUs with who holds their memory."""

from __future__ import annotations

import os
import pwd

from . import gpus, memory, procs
from .jobs import Job
from .requests import Agent, Request
from .watch import Watcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

PATIENCE = 8.0  # seconds for each question to the driver's tool
_GPU = ("index", "uuid", "name", "memory.used", "memory.total", "utilization.gpu", "power.draw", "power.limit",
        "temperature.gpu")  # fmt: skip
_HOLDER = ("gpu_uuid", "pid", "used_memory")
_FORM = "--format=csv,noheader,nounits"


class Machine:
    """Answers ``machine`` requests. A host without the tool is asked for GPUs once only."""

    def __init__(self, agent: Agent, watcher: Watcher) -> None:
        self._agent, self._watcher = agent, watcher
        self._toolless = False

    def look(self, request: Request) -> None:
        """``paths`` of the request: (what, path) whose file systems are looked at."""
        total, free = memory.machine()
        limit, left = memory.limits()
        asked = [("runs", os.path.dirname(self._agent.runs.root)), *(map(tuple, request.header.get("paths") or ()))]
        told: dict[str, Any] = {
            "total": total,
            "available": free,
            "limit": limit,
            "left": left,
            "disks": [found for what, path in asked for found in [disk(what, path)] if found],
            "gpus": [],
            "trouble": "",
        }

        def no_gpus(trouble: str) -> None:
            told["trouble"] = trouble
            request.answer(told)

        def on_gpus(status: int | None, output: bytes) -> None:
            self._toolless = status == gpus.NO_TOOL
            if status != 0:
                no_gpus(_trouble(status, output))
                return
            told["gpus"] = [gpu(row) for row in rows(output, len(_GPU))]
            self._ask("--query-compute-apps=" + ",".join(_HOLDER), on_holders)

        def on_holders(status: int | None, output: bytes) -> None:
            if status == 0:
                add_holders(told["gpus"], rows(output, len(_HOLDER)), self._watcher.runs_of_pids())
                request.answer(told)
            else:
                no_gpus(_trouble(status, output))

        if self._toolless:
            request.answer(told)
        else:
            self._ask("--query-gpu=" + ",".join(_GPU), on_gpus)

    def _ask(self, query: str, done: Any) -> None:
        Job(self._agent.loop, self._agent.children, ["nvidia-smi", query, _FORM], done, timeout=PATIENCE)


def _trouble(status: int | None, output: bytes) -> str:
    """Why there is no answer; empty where there is no such tool."""
    if status == gpus.NO_TOOL:
        return ""
    if status is None:
        return "nvidia-smi gave no answer within %.0f s" % PATIENCE
    last = (output.decode("utf-8", "replace").strip().splitlines() or ["status %d" % status])[-1]
    return "nvidia-smi failed: %s" % last[:120]


def rows(output: bytes, columns: int) -> list[list[str]]:
    """The lines of a CSV answer that have so many cells; others are remarks."""
    cells = [[cell.strip() for cell in line.split(",")] for line in output.decode("utf-8", "replace").splitlines()]
    return [row for row in cells if len(row) == columns]


def gpu(row: Sequence[str]) -> dict[str, Any]:
    """One GPU; memory in bytes, power in watts, ``None`` for what the driver does not tell (``[N/A]``)."""
    used, total, busy, power, most, warmth = (number(cell) for cell in row[3:])
    return {
        "index": int(row[0]) if row[0].isdigit() else -1,
        "uuid": row[1],
        "name": row[2],
        "used": None if used is None else int(used * (1 << 20)),
        "total": None if total is None else int(total * (1 << 20)),
        "busy": None if busy is None else busy / 100,
        "power": power,
        "power_limit": most,
        "celsius": warmth,
        "holders": [],
    }


def number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def add_holders(found: list[dict[str, Any]], apps: Sequence[Sequence[str]], runs: dict[int, str]) -> None:
    """Who holds each GPU's memory: a watched run's process by the run, anybody else's by owner and name."""
    by_uuid = {one["uuid"]: one["holders"] for one in found}
    for uuid, pid, used in apps:
        holders = by_uuid.get(uuid)
        if holders is None or not pid.isdigit():
            continue
        proc = procs.look(int(pid))
        mebibytes = number(used)
        holders.append({
            "pid": int(pid),
            "used": None if mebibytes is None else int(mebibytes * (1 << 20)),
            "run": runs.get(int(pid)),
            "owner": user(procs.owner(int(pid))),
            "name": proc.name if proc else None,
        })  # fmt: skip


def user(uid: int | None) -> str | None:
    if uid is None:
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return "uid %d" % uid


def disk(what: str, path: str) -> dict[str, Any] | None:
    """The file system of ``path``, or of its nearest folder that is there; ``None`` where even that cannot be told."""
    path = os.path.expanduser(path)
    if not os.path.isabs(path):
        return None
    there = path
    while not os.path.exists(there) and there != "/":
        there = os.path.dirname(there)
    try:
        system = os.statvfs(there)
    except OSError:
        return None
    size = system.f_frsize
    return {"what": what, "path": path, "free": system.f_bavail * size, "total": system.f_blocks * size}
