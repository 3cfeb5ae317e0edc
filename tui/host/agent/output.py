"""Where a process that somebody else started writes: the file to follow, or words for what is no file."""

from __future__ import annotations

import os
import stat

from .procs import look
from .tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

LOGGED = ("2", "1")  # SGLang logs to stderr


class Output(NamedTuple):
    """``path`` can be opened and followed, ``shown`` is its name for people; without a file ``where`` says why."""

    path: str | None
    shown: str = ""
    where: str = ""
    link: str | None = None  # another way to the same file: the descriptor that is written


def of(pid: int) -> Output:
    """The log of a process: the file behind its stderr or stdout, also through a ``tee``."""
    told = ""
    for fd in LOGGED:
        link = "/proc/%d/fd/%s" % (pid, fd)
        try:
            target, mode = os.readlink(link), os.stat(link).st_mode
        except PermissionError:
            return Output(None, where="cannot be seen: the process belongs to another user")
        except OSError:
            continue
        if stat.S_ISREG(mode):
            return _file(link, target)
        if stat.S_ISFIFO(mode):
            reader, teed = _reader(target)
            if teed:
                return _file(teed, os.readlink(teed))
            told = told or "goes to a pipe" + (" of %s" % reader if reader else "")
        else:
            told = told or _device(target, mode)
    return Output(None, where=told or "is closed")


def _file(link: str, target: str) -> Output:
    """The file by its own path where that leads to it; by the process's descriptor when it is deleted, or lies in
    another mount namespace."""
    here = os.stat(link)
    shown = target[: -len(" (deleted)")] if here.st_nlink == 0 and target.endswith(" (deleted)") else target
    try:
        there = os.stat(shown)
        same = (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
    except OSError:
        same = False
    if same:
        return Output(shown, shown, "", link)
    return Output(link, shown, "is deleted" if here.st_nlink == 0 else "", link)


def _device(target: str, mode: int) -> str:
    if target == "/dev/null":
        return "is thrown away (/dev/null)"
    if stat.S_ISSOCK(mode):
        return "goes to a socket, such as the journal's"
    return "goes to a terminal (%s)" % target if stat.S_ISCHR(mode) else "goes to %s" % target


def _reader(pipe: str) -> tuple[str, str | None]:
    """Who reads ``pipe:[…]``, and the descriptor of the file that a ``tee`` there writes."""
    for pid, folder in _descriptors():
        for fd, target in _links(folder):
            if target == pipe and not _writable(folder + "/" + fd):
                proc = look(pid)
                name = proc.name if proc else "?"
                return "pid %d (%s)" % (pid, name), _written_by(folder) if name == "tee" else None
    return "", None


def _written_by(folder: str) -> str | None:
    """The one file that a ``tee`` writes beside its own output."""
    for fd, _ in _links(folder):
        path = folder + "/" + fd
        try:
            if fd not in ("0", "1", "2") and _writable(path) and stat.S_ISREG(os.stat(path).st_mode):
                return path
        except OSError:
            continue
    return None


def _writable(link: str) -> bool:
    """A descriptor's link has the write bit when it was opened for writing."""
    try:
        return bool(os.lstat(link).st_mode & stat.S_IWUSR)
    except OSError:
        return False


def _descriptors() -> Iterator[tuple[int, str]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            yield int(entry), "/proc/%s/fd" % entry


def _links(folder: str) -> Iterator[tuple[str, str]]:
    try:
        entries = os.listdir(folder)
    except OSError:
        return
    for fd in sorted(entries, key=lambda name: int(name)):
        try:
            yield fd, os.readlink(folder + "/" + fd)
        except OSError:
            continue
