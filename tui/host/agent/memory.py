"""Memory of the machine, of the cgroups around us, and of processes, in bytes.

All of it is read below the folder that ``HCS_MEMORY_ROOT`` names, instead of below ``/``: a simulated host (the demo's)
keeps its figures there. On a real host nobody sets it.
"""

from __future__ import annotations

import os

from .files import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

ROOT = os.environ.get("HCS_MEMORY_ROOT", "")
CGROUP_V2 = ROOT + "/sys/fs/cgroup"
NO_LIMIT = 1 << 60  # version 1 writes a huge number for "none"


def machine() -> tuple[int, int]:
    """(MemTotal, MemAvailable)."""
    values = {}
    for line in (read_text(ROOT + "/proc/meminfo") or "").splitlines():
        key, _, rest = line.partition(":")
        values[key] = int(rest.split()[0]) * 1024 if rest.split() else 0
    return values.get("MemTotal", 0), values.get("MemAvailable", values.get("MemFree", 0))


def own_cgroups() -> list[str]:
    """Folders of the memory cgroup of this process and of all above it, innermost first."""
    unified = version1 = None
    for line in (read_text(ROOT + "/proc/self/cgroup") or "").splitlines():
        number, controllers, where = ([*line.split(":", 2), "", ""])[:3]
        if number == "0":
            unified = where
        elif "memory" in controllers.split(","):
            version1 = where
    root = CGROUP_V2 + "/memory" if version1 is not None else CGROUP_V2
    folders = []
    path = version1 or unified or "/"
    while True:
        folder = root + path.rstrip("/")
        if os.path.isdir(folder):
            folders.append(folder)
        if path == "/":
            return folders
        path = os.path.dirname(path)


def _number(path: str) -> int | None:
    text = (read_text(path) or "").strip()
    return int(text) if text.isdigit() and int(text) < NO_LIMIT else None


def limits() -> tuple[int | None, int | None]:
    """(limit, left) of the tightest cgroup around us; page cache that can be dropped counts as left."""
    best: tuple[int | None, int | None] = (None, None)
    for folder in own_cgroups():
        limit = _number(folder + "/memory.max") or _number(folder + "/memory.limit_in_bytes")
        used = _number(folder + "/memory.current") or _number(folder + "/memory.usage_in_bytes")
        if limit is None or used is None:
            continue
        left = max(0, limit - used + _droppable(folder))
        if best[1] is None or left < best[1]:
            best = (limit, left)
    return best


def _droppable(folder: str) -> int:
    for line in (read_text(folder + "/memory.stat") or "").splitlines():
        if line.startswith(("inactive_file ", "total_inactive_file ")):
            return int(line.split()[1])
    return 0


def available() -> tuple[int, int]:
    """(total, available) for a server started from here: the machine's, or the cgroup's where that is less."""
    total, free = machine()
    limit, left = limits()
    if limit is not None and left is not None:
        return min(total, limit), min(free, left)
    return total, free


def resident(pids: Iterable[int]) -> int:
    """Bytes: the sum of private anonymous memory plus the largest shared part, since every process that maps a
    shared segment counts it. Grows smoothly while memory is pinned (VmLck and VmPin jump)."""
    private = shared = 0
    for pid in pids:
        text = read_text(ROOT + "/proc/%d/status" % pid) or ""
        private += _kib(text, "RssAnon:")
        shared = max(shared, _kib(text, "RssShmem:"))
    return (private + shared) * 1024


def _kib(text: str, key: str) -> int:
    at = text.find(key)
    return int(text[at + len(key) :].split(None, 1)[0]) if at >= 0 else 0
