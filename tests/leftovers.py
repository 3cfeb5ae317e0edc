"""Nothing that tests start outlives them, however they end: Ctrl-C, SIGTERM, SIGKILL.

Servers, keepers and agents live on when whoever started them is gone: that is what the product is for. So all that a
session of tests starts carries a mark in its environment, and a watcher, a process of its own, waits for the end of the
session and ends what has that mark, and what is below it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.processes import below, kill_now, marked, words
from tests.waiting import until

MARK = "HCS_TESTS"
GRACE = "HCS_TESTS_GRACE"  # seconds for what is about to leave by itself after the last test; 20, if not set
_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


@contextmanager
def none_left() -> Iterator[None]:
    """Mark all that is started within. What is left at the end is ended, and named by an ``AssertionError``."""
    mark, former = f"{os.getpid()}-{time.time_ns()}", os.environ.get(MARK)
    watcher = subprocess.Popen(
        [sys.executable, "-m", "tests.leftovers", mark],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1], start_new_session=True,
    )  # fmt: skip
    os.environ[MARK] = mark
    try:
        yield
    finally:
        if former is None:
            del os.environ[MARK]
        else:
            os.environ[MARK] = former
        left, _ = watcher.communicate("the session has ended\n")
    assert not left, f"the tests left processes behind, which were ended now:\n{left}"


def with_parent() -> None:
    """Of a child before its program runs: SIGTERM when its parent is gone. For those who write their title over their
    environment, as sshd does."""
    _LIBC.prctl(_PDEATHSIG, signal.SIGTERM)


def main() -> None:
    """The watcher. A session that ends in order says so first, and its last processes get time to leave."""
    mark = f"{MARK}={sys.argv[1]}".encode()
    if sys.stdin.read():
        with suppress(AssertionError):
            until(lambda: not marked(mark), float(os.environ.get(GRACE, "20")))
    told: set[int] = set()
    until(lambda: not _ended(mark, told))


def _ended(mark: bytes, told: set[int]) -> list[int]:
    """One round: who is there is killed, and told once."""
    found = marked(mark)
    for pid in [*found, *below(*found)]:
        if pid not in told:
            told.add(pid)
            with suppress(OSError):  # nobody listens when the session was killed
                os.write(1, f"{pid} {words(pid)[:200]}\n".encode())
        kill_now(pid)
    return found


if __name__ == "__main__":
    main()
