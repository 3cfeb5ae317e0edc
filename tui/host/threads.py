"""Threads for calls that cannot be interrupted: names that are looked up, commands of ~/.ssh/config, remote files.

asyncio, and Python after it, wait for their threads at the end: with a resolver that does not answer, a program that
has given up would stand there for half a minute, whatever keys are pressed.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_prepared: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()


class LooseThreads(ThreadPoolExecutor):
    """A thread for each call, which nobody waits for at the end."""

    def submit(self, call: Callable[P, T], /, *args: P.args, **named: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = call(*args, **named)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=work, daemon=True).start()
        return future


def let_go_at_the_end() -> None:
    """Have the running loop use such threads from now on."""
    loop = asyncio.get_running_loop()
    if loop not in _prepared:
        _prepared.add(loop)
        loop.set_default_executor(LooseThreads())
