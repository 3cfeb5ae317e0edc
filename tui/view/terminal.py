"""A clean end when the terminal or the system says so: signals, and a terminal that went away without one."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from collections.abc import Callable

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def on_signals(leave: Callable[[], None]) -> None:
    """Call ``leave`` for SIGTERM, SIGHUP and SIGQUIT. Elsewhere than on the main thread nothing is done."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        try:
            loop.add_signal_handler(number, leave)
        except (RuntimeError, ValueError, NotImplementedError):
            return


class Watchdog:
    """Tells when the terminal hung up, or this program's parent changed, without any signal."""

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._poll: select.poll | None = None
        stdin = sys.__stdin__
        if stdin is not None and not stdin.closed and stdin.isatty():
            self._poll = select.poll()
            self._poll.register(stdin.fileno(), 0)

    def gone(self) -> bool:
        """Whether nobody is left to draw for: the terminal hung up, or, without one (a browser), the parent ended."""
        if self._poll is None:
            return os.getppid() != self._parent
        return any(flags & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, flags in self._poll.poll(0))
