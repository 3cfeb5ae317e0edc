"""Waiting for what nobody announces: the one place where tests look again and again.

Where something tells (a link's events, ``Fleet.until``, the end of a pipe), wait for that instead.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable

DEADLINE = 60.0  # seconds; long, for machines are loaded, and only a test that fails takes as long
_PAUSE = 0.01


def until(condition: Callable[[], object], seconds: float = DEADLINE) -> None:
    """Block until ``condition`` holds; fails after the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen within {seconds:g} s"
        time.sleep(_PAUSE)


async def eventually(condition: Callable[[], object], seconds: float = DEADLINE) -> None:
    """The same while the loop goes on; ``condition`` may be a coroutine function."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if await found if inspect.isawaitable(found) else found:
            return
        assert time.monotonic() < deadline, f"it did not happen within {seconds:g} s"
        await asyncio.sleep(_PAUSE)
