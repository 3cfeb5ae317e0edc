"""``hcs-tui`` on a pty of its own, driven and measured: keys, paints, CPU and memory, read from outside."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

HCS_TUI = Path(sys.executable).parent / "hcs-tui"
DEADLINE = 60.0  # seconds; what takes longer is an error, not a measurement
_TICKS = os.sysconf("SC_CLK_TCK")
_KEPT = 1 << 20  # bytes of output that are looked at


@dataclass(frozen=True, slots=True)
class Cpu:
    """Seconds of CPU: of all threads, of the one that draws, and how long that one waited for a CPU."""

    all: float
    drawing: float
    waited: float

    def __sub__(self, before: Cpu) -> Cpu:
        return Cpu(self.all - before.all, self.drawing - before.drawing, self.waited - before.waited)


@dataclass
class Program:
    """The program with its terminal, which is read to the last byte at once, as a fast terminal would."""

    arguments: Sequence[str]
    home: Path
    size: tuple[int, int] = (200, 50)  # columns, rows
    output: bytearray = field(default_factory=bytearray)  # the newest of it
    written: int = 0  # bytes in all
    frames: list[float] = field(default_factory=list)  # when output came

    def __post_init__(self) -> None:
        columns, rows = self.size
        self._terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        env = {**os.environ, "HCS_HOME": str(self.home), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            [str(HCS_TUI), *self.arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env
        )
        os.close(theirs)

    @property
    def pid(self) -> int:
        return self._process.pid

    def drain(self, seconds: float, seen: Callable[[], bool] = lambda: False) -> bool:
        """Take output for ``seconds``, or until ``seen``; whether it was."""
        end = time.perf_counter() + seconds
        while not seen():
            left = end - time.perf_counter()
            if left <= 0:
                return False
            if select.select([self._terminal], [], [], left)[0]:
                self._take()
        return True

    def _take(self) -> None:
        try:
            data = os.read(self._terminal, 1 << 18)
        except OSError as error:
            raise RuntimeError(f"the program ended:\n{self.output[-3000:].decode(errors='replace')}") from error
        self.frames.append(time.perf_counter())
        self.written += len(data)
        self.output += data
        del self.output[:-_KEPT]

    def until(self, mark: bytes, seconds: float = DEADLINE) -> None:
        """Take output until ``mark`` is in it."""
        if not self.drain(seconds, lambda: mark in self.output):
            raise RuntimeError(f"no {mark!r}:\n{self.output[-3000:].decode(errors='replace')}")

    def press(self, keys: bytes, mark: re.Pattern[bytes], seconds: float = DEADLINE) -> float:
        """Seconds from a key to the paint that shows ``mark``, which is looked for in what is painted from now on."""
        while select.select([self._terminal], [], [], 0)[0]:
            self._take()
        self.output.clear()
        began = time.perf_counter()
        self.send(keys)
        if not self.drain(seconds, lambda: mark.search(self.output) is not None):
            raise RuntimeError(f"{keys!r} showed no {mark.pattern!r}:\n{self.output[-3000:].decode(errors='replace')}")
        return self.frames[-1] - began

    def send(self, keys: bytes) -> None:
        os.write(self._terminal, keys)

    def cpu(self) -> Cpu:
        main = Path(f"/proc/{self.pid}/task/{self.pid}")
        ran, waited = map(int, (main / "schedstat").read_text().split()[:2])
        return Cpu(_spent(Path(f"/proc/{self.pid}")), ran / 1e9, waited / 1e9)

    def memory(self) -> float:
        """MB of memory of its own (not of files)."""
        told = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"RssAnon:\s+(\d+) kB", told)
        assert found
        return int(found[1]) / 1024

    def longest_gap(self, since: float, until: float) -> float:
        """The longest time without output between two moments, seconds."""
        moments = [since, *(at for at in self.frames if since < at < until), until]
        return max(later - earlier for earlier, later in pairwise(moments))

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        end = time.monotonic() + 10
        while self._process.poll() is None and time.monotonic() < end:
            try:
                self.drain(0.05)
            except RuntimeError:
                break
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._terminal)


def _spent(place: Path) -> float:
    fields = (place / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def percentile(samples: Sequence[float], share: float) -> float:
    """The sample below which ``share`` of all lie."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
