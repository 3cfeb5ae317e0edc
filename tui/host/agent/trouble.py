"""What the operating system refuses, in words with a remedy."""

from __future__ import annotations

import errno

from .requests import Refused

OWN_FOLDER = "or set state_dir of the host to a folder of yours."
PRUNE = "(`hcs-tui runs prune PROFILE` drops old runs), "
REMEDIES = {
    errno.ENOSPC: "Free space there " + PRUNE + OWN_FOLDER,
    errno.EDQUOT: "Your quota is used up: delete something " + PRUNE + OWN_FOLDER,
    errno.EROFS: "The file system can only be read: have it mounted for writing, " + OWN_FOLDER,
    errno.EACCES: "Fix its permissions, " + OWN_FOLDER,
    errno.EPERM: "Fix its owner and permissions, " + OWN_FOLDER,
    errno.ENAMETOOLONG: "Give the profile or the server a shorter name, " + OWN_FOLDER,
    errno.ENOTDIR: "Something on the way there is a file: move it away, " + OWN_FOLDER,
    errno.ELOOP: "Symlinks on the way there lead in a circle: mend them, " + OWN_FOLDER,
    errno.EIO: "The disk or its server fails: look at `dmesg`, " + OWN_FOLDER,
    errno.ESTALE: "The network file system was lost: have it mounted again, " + OWN_FOLDER,
    errno.EMFILE: "Too many files are open: connect anew.",
    errno.ENFILE: "Too many files are open on the whole host: end something there.",
    errno.ENOMEM: "The host has no memory left: end something there.",
    errno.EAGAIN: "The user may have no more processes (`ulimit -u`): end something there.",
}


def cannot_write(error: OSError, path: str, what: str = "run directory") -> Refused:
    """``what`` at ``path`` (where the error names none) cannot be written."""
    where = error.filename or path
    why = (error.strerror or str(error)).lower()
    remedy = REMEDIES.get(error.errno or 0, "Look at it on the host, " + OWN_FOLDER)
    return Refused("The %s cannot be written: %s: %s." % (what, where, why), remedy)
