"""A clean end when the terminal or the system says so: signals, Ctrl-Z, and a terminal that went away or reads no more.

Exit codes are the shell's: 128 + the signal's number. Only a signal's handler can help while the terminal reads
nothing: the event loop then waits in a write, and so does whatever it would have called.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TextIO, cast

from textual import events
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size

from tui.view.keyboard import read_keys

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
PATIENCE = 2.0  # seconds for a terminal to take what was drawn, before that is thrown away
_CLEAN = (
    b"\x1b[?2026l\x1b[0m\x1b[?2004l\x1b[?2048l\x1b[?1016l\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1004l\x1b[<u"
    b"\x1b[?7h\x1b[?1049l\x1b[?25h"
)


class Endings:
    """Calls ``leave`` with 128 + the number of a signal, on the loop, from ``watch`` to ``stop``."""

    def __init__(self, leave: Callable[[int], None]) -> None:
        self._leave = leave
        self._former: dict[signal.Signals, Any] = {}  # handlers, as the signal module gives them
        self._over = threading.Event()
        self._drain: threading.Thread | None = None
        self._drained = False

    def watch(self) -> None:
        """Begin. Elsewhere than on the main thread nothing is done."""
        if threading.current_thread() is threading.main_thread():
            self._former = {number: signal.signal(number, self._handle) for number in SIGNALS}

    def _handle(self, number: int, frame: FrameType | None) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # nothing has been drawn yet, or all of it has been taken away
            raise SystemExit(128 + number) from None
        loop.call_soon_threadsafe(self._leave, 128 + number)
        if self._drain is None:
            self._drain = threading.Thread(target=self._throw_away, daemon=True)
            self._drain.start()

    def stop(self) -> None:
        """End, with the handlers of before; a terminal whose output was thrown away is told again to be clean."""
        self._over.set()
        if self._drain is not None:
            self._drain.join()
        if self._drained and _flush():
            with contextlib.suppress(OSError):
                os.write(cast(TextIO, sys.__stderr__).fileno(), _CLEAN)
        for number, former in self._former.items():
            signal.signal(number, former)
        self._former = {}

    def _throw_away(self) -> None:
        """After a while, nothing that waits for the terminal waits any longer."""
        wait = PATIENCE
        while not self._over.wait(wait):
            self._drained = _flush()
            wait = 0.05


def _flush() -> bool:
    """Throw away what the terminal has not read yet; whether there is a terminal."""
    try:
        file = cast(TextIO, sys.__stderr__).fileno()
        termios.tcflush(file, termios.TCOFLUSH)
        termios.tcflow(file, termios.TCOOFF)
        termios.tcflow(file, termios.TCOON)  # wakes the thread that waits in a write, which Linux's flush does not
    except (AttributeError, OSError, ValueError, termios.error):
        return False
    return True


class TerminalDriver(LinuxDriver):
    """Textual's driver, which survives a terminal that hung up, a stop that nobody announced, and a size that changes
    while it is looked at."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._file = cast(Any, _Surviving(cast(TextIO, self._file)))  # what else a file does, nobody asks for

    def run_input_thread(self) -> None:
        read_keys(self.fileno, self.exit_event.is_set, self.process_message)

    def start_application_mode(self) -> None:
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual's has no annotations
        self._hear_of_sizes()

    def _hear_of_sizes(self) -> None:
        """By the loop: Textual's own handler can be interrupted by the next signal, and then the older size is told
        last, and stays."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGWINCH, self._tell_size)

    def _tell_size(self) -> None:
        if not self._in_band_window_resize:
            size = Size(*self._get_terminal_size())
            self._app.post_message(events.Resize(size, size))

    def stop_application_mode(self) -> None:
        if self._mouse_pixels:
            self.write("\x1b[?1016l")
        super().stop_application_mode()

    def _sigtstp_application(self, *_: object) -> None:
        """Stop the whole job, as the terminal would: a shell waits for a wrapper, where one started us."""
        if self._auto_restart:
            self.suspend_application_mode()
            self._must_signal_resume = True
        os.killpg(0, signal.SIGSTOP)

    def _sigcont_application(self, *_: object) -> None:
        """Draw again. After a SIGSTOP the modes are still on: off first, or their end would not be the beginning's."""
        if self._auto_restart and not self._must_signal_resume:
            self.suspend_application_mode()
            self._must_signal_resume = True
        super()._sigcont_application()


class _Surviving:
    """A terminal's file; what cannot be written, because nobody is there, is lost."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        try:
            self._file.write(text)
        except OSError:
            return

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError:
            return

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()


def has_shell() -> bool:
    """Whether a shell with job control started this program: in the group of the session's leader, nobody could
    bring it back."""
    return os.getpgrp() != os.getsid(0)


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
