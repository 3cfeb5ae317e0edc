"""Requests that nobody waits for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from tui.host.api import HostError

_TASKS: set[asyncio.Task[None]] = set()  # asyncio keeps only weak references


def later(work: Coroutine[Any, Any, None]) -> None:
    """Send a request whose failure changes nothing: a lost link follows and watches again by itself."""
    task = asyncio.get_running_loop().create_task(_ignore_host_error(work))
    _TASKS.add(task)
    task.add_done_callback(_TASKS.discard)


async def _ignore_host_error(work: Coroutine[Any, Any, None]) -> None:
    with contextlib.suppress(HostError):
        await work
