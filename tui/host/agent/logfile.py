"""Where a run's log is read: at its own path, or through its server's descriptor once it was renamed or removed."""

from __future__ import annotations

import os
import stat

from .tuples import NamedTuple

NAME = "server.log"


class LogFile(NamedTuple):
    """``path`` can be opened, ``None`` where nothing can; ``remark``: what is the matter with the log, in words."""

    path: str | None
    size: int | None = None  # bytes
    inode: int | None = None
    remark: str = ""


def find(folder: str, pid: int | None, began: bool = True) -> LogFile:
    """The log of the run in ``folder``. ``pid``: its main process, if that lives; ``began``: it had one."""
    path = os.path.join(folder, NAME)
    own = _regular(path)
    if own is not None and (own.st_size or pid is None):
        return LogFile(path, own.st_size, own.st_ino)
    for link in ["/proc/%d/fd/%d" % (pid, fd) for fd in (1, 2)] if pid else []:
        held, target = _regular(link), _target(link)
        if held is None or os.path.dirname(target) != os.path.realpath(folder):
            continue
        if own is None or (own.st_dev, own.st_ino) != (held.st_dev, held.st_ino):
            how = "removed" if not held.st_nlink else "renamed to %s" % os.path.basename(target)
            words = "its log file was %s: it is read through its server's descriptor" % how
            return LogFile(link, held.st_size, held.st_ino, words + (", and lost when that ends" * (not held.st_nlink)))
    if own is not None:
        return LogFile(path, own.st_size, own.st_ino)
    if os.path.lexists(path):
        return LogFile(None, remark="its log cannot be read: %s is not a file" % NAME)
    return LogFile(None, remark="its log is gone: %s was removed" % NAME if began else "")


def _regular(path: str) -> os.stat_result | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""
