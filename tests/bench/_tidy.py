"""How a benchmark ends: whatever it started ends with it, be it over, broken off or killed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.leftovers import none_left


@contextmanager
def tidy() -> Iterator[None]:
    """Around all of a benchmark. SIGTERM and SIGHUP break it off like Ctrl-C, also one in the background, for which
    shells ignore SIGINT: what it would do last, it does. What is left then is ended by a process of its own."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        with none_left():
            yield
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
