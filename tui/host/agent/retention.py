"""Old runs are dropped: by count and size, never a living one, never a server's last, never beyond the state folder."""

from __future__ import annotations

import os

from .procs import is_alive
from .requests import Request
from .runs import Runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEEP = 20  # runs of a server, the newest among them
KEEP_BYTES = 10 * 10**9  # of all that a server keeps
LATER = 1.0  # seconds after a launch: its answer must not wait for large files to go


def size(folder: str) -> int:
    """Bytes of the files in a run directory."""
    total = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                total += entry.stat(follow_symlinks=False).st_size
    except OSError:
        pass
    return total


def surplus(runs: Runs, profile: str, server: str, keep: int = KEEP, keep_bytes: float = KEEP_BYTES) -> list[Any]:
    """The runs of a server that may go, newest first: ``{"run", "folder", "bytes", "started"}``."""
    found: list[dict[str, Any]] = []
    total = 0
    for at, record in enumerate(runs.records(profile, server)):
        folder = os.path.dirname(record["log"])
        taken = size(folder)
        total += taken
        wanted = at < keep and total <= keep_bytes
        if at > 0 and not wanted and record["fate"] != "newer" and not lives(record) and below(runs.root, folder):
            found.append({"run": record["run"], "folder": folder, "bytes": taken, "started": record["started"]})
            total -= taken
    return found


def prune(request: Request) -> None:
    """Delete, or with ``dry`` only name, a server's surplus runs."""
    header = request.header
    profile, server = str(header["profile"]), str(header["server"])
    keep, keep_bytes = header.get("keep"), header.get("keep_bytes")
    found = surplus(
        request.agent.runs,
        profile,
        server,
        KEEP if keep is None else keep,
        KEEP_BYTES if keep_bytes is None else keep_bytes,
    )
    for run in found:
        if not header.get("dry"):
            remove(run["folder"])
        run.update(server=server, gone=not os.path.lexists(run["folder"]))
    request.answer(found)


def lives(record: dict[str, Any]) -> bool:
    """Whether anything of the run lives: its main process, or its keeper, who stays for what is left."""
    keeper = record["keeper"] or {}
    return record["alive"] or is_alive(keeper.get("pid"), keeper.get("start"))


def below(root: str, folder: str) -> bool:
    """Whether ``folder`` is really there: no symlink leads from ``root`` to it."""
    return os.path.realpath(folder) == os.path.join(os.path.realpath(root), os.path.relpath(folder, root))


def tidy(runs: Runs, profile: str, server: str) -> None:
    """What every launch does for its server."""
    for run in surplus(runs, profile, server):
        remove(run["folder"])


def remove(folder: str) -> None:
    """Delete a run directory as far as that can be done; ``run.json`` last, so that a half-deleted run is still seen.

    Everything is named relative to an open directory: a symlink is deleted, never followed.
    """
    try:
        parent = os.open(os.path.dirname(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    name = os.path.basename(folder)
    try:
        for _, folders, files, fd in os.fwalk(name, topdown=False, dir_fd=parent):
            for file in sorted(files, key=lambda file: file == "run.json"):
                os.unlink(file, dir_fd=fd)
            for below_it in folders:
                _remove_folder(below_it, fd)
        os.rmdir(name, dir_fd=parent)
    except OSError:
        pass
    finally:
        os.close(parent)


def _remove_folder(name: str, parent: int) -> None:
    try:
        os.rmdir(name, dir_fd=parent)
    except NotADirectoryError:
        os.unlink(name, dir_fd=parent)
