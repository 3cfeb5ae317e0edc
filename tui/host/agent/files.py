"""Small files that are whole or absent: written aside and renamed, mode 0600, JSON with a format version."""

from __future__ import annotations

import json
import os
import re
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 1


def read_text(path: str, limit: int = 1 << 20) -> str | None:
    """The file's text, or ``None`` where it cannot be read, or is none. For /proc as well: no seek."""
    try:
        fd = open_regular(path)
        return None if fd is None else read_whole(fd, limit).decode("utf-8", "replace")
    except OSError:
        return None


def open_regular(path: str) -> int | None:
    """A descriptor to read from, or ``None`` where ``path`` is no regular file: a pipe would block whoever opens it.

    Raises ``OSError``."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return None


def read_whole(fd: int, limit: int) -> bytes:
    """At most ``limit`` bytes; closes ``fd``. Raises ``OSError``."""
    parts = []
    try:
        while limit > 0:
            data = os.read(fd, min(limit, 65536))
            if not data:
                break
            parts.append(data)
            limit -= len(data)
        return b"".join(parts)
    finally:
        os.close(fd)


def write_json(path: str, value: dict[str, Any]) -> None:
    """Replace ``path`` atomically. Raises ``OSError``, and then leaves nothing new behind."""
    aside = "%s.%d.tmp" % (path, os.getpid())
    try:
        write_file(aside, json.dumps(dict(value, format=FORMAT), indent=1).encode("ascii") + b"\n")
        os.rename(aside, path)
    except OSError:
        unlink(aside)
        raise


def write_file(path: str, data: bytes) -> None:
    """The whole of ``data``, mode 0600: a disk that is nearly full takes a part without a word. Raises ``OSError``."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(fd)


def unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def private_dirs(path: str) -> None:
    """Make ``path`` and what is missing above it, for this user only. Raises ``OSError``."""
    if not os.path.isdir(path):
        private_dirs(os.path.dirname(path))
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass  # somebody else was quicker


def plain_name(component: str) -> str:
    """The name that ``safe_name`` wrote as ``component``."""
    raw = re.sub(rb"%([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), os.fsencode(component))
    return raw.decode("utf-8", "replace")


def safe_name(name: str) -> str:
    """``name`` as one path component: everything but letters, digits, ``._-`` is written as ``%XX``."""
    raw = name.encode("utf-8", "surrogateescape")
    kept = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
    out = "".join(chr(b) if b in kept or (b == 46 and i) else "%%%02X" % b for i, b in enumerate(raw))
    return out or "%"
