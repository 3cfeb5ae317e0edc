"""Files of /proc that can block: read on a thread that is left behind when it takes too long.

Only for processes that end at once afterwards, with ``os._exit``.
"""

from __future__ import annotations

import _thread

from .files import read_text

EACH = 0.3  # seconds for one file
ALL = 4.0  # seconds for all that block together
LIMIT = 1 << 18  # bytes

_left = [ALL]


def words(pid: int, name: str) -> list[str] | None:
    """The words of ``/proc/PID/cmdline`` or ``environ``; ``None`` where it blocks, or cannot be read."""
    text = patiently("/proc/%d/%s" % (pid, name))
    return None if text is None else [word for word in text.split("\0") if word]


def patiently(path: str) -> str | None:
    """The file's text, or ``None``."""
    if _left[0] <= 0:
        return None
    found: list[str | None] = []
    done = _thread.allocate_lock()
    done.acquire()

    def read() -> None:
        found.append(read_text(path, LIMIT))
        done.release()

    _thread.start_new_thread(read, ())
    if not done.acquire(timeout=EACH):
        _left[0] -= EACH
        return None
    return found[0]
