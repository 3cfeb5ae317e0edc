"""Saved logs as a ``Source`` that plays them: each line comes when its time stamp says, as it once did."""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from tui.fleet.api import Action, HostState, Outcome
from tui.fleet.saved import names, nothing_behind, unusable
from tui.sglang.events import LogRead
from tui.sglang.lines import local_seconds
from tui.sglang.model import ServerInfo
from tui.sglang.parser import LogParser
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

_TICK = 0.2  # seconds between two looks at what is due
_PIECE = 256 * 1024  # bytes that one look plays at most, so that others run beside a fast one
_LINE = 1 << 20  # bytes of a line that are read at once
_STAMP = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,](\d{3}))?")


class _Log:
    """One log that is played into a file of its own. Raises ``OSError``."""

    def __init__(self, name: str, path: Path, copy: Path) -> None:
        self.copy = copy
        self.state = ServerState(ServerInfo(name, log=str(path)))
        self._size = path.stat().st_size
        self._parser = LogParser()
        self._lines = _timed(path)
        self._next = next(self._lines, None)
        self._sink = copy.open("wb", buffering=0)

    @property
    def over(self) -> bool:
        return self._next is None

    def play(self, until: float) -> bool:
        """Play what was written up to ``until``, seconds after the log's first time stamp; whether there was any."""
        taken = bytearray()
        while self._next and self._next[0] <= until and len(taken) < _PIECE:
            taken += self._next[1]
            self._next = next(self._lines, None)
        if not taken:
            return False
        self._sink.write(taken)
        self._parser.feed(bytes(taken))
        facts = self._parser.facts(end=self.over)
        if not self.over:
            facts = replace(facts, missing=max(1, self._size - self._parser.size))
        self.state = reduce(self.state, LogRead(time.time(), facts))
        return True

    def close(self) -> None:
        self._lines.close()
        self._sink.close()


class PlayedLogs:
    """``speed`` 1 is as fast as it was; all logs begin at once. What was played is kept in a folder of this user's own
    until ``close``. ``wrong``: files that are no logs, and why; each has its place among the others."""

    read_only = True

    def __init__(
        self,
        paths: Sequence[Path],
        speed: float,
        clock: Callable[[], float] = time.monotonic,
        wrong: Mapping[Path, str] = MappingProxyType({}),
    ) -> None:
        self.title = f"{paths[0].name if len(paths) == 1 else f'{len(paths)} saved logs'} ×{speed:g}"
        self.version = 0
        self._folder = tempfile.TemporaryDirectory(prefix="hcs-tui-replay-")
        self._speed, self._clock = speed, clock
        folder = Path(self._folder.name)
        named = dict(zip(names(paths), paths, strict=True))
        self._logs = {
            name: _Log(name, path, folder / f"{number}.log")
            for number, (name, path) in enumerate(named.items())
            if path not in wrong
        }
        self._states = {name: unusable(path, name, wrong[path]) for name, path in named.items() if path in wrong}
        self._names = tuple(named)
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._play, name="replay", daemon=True)

    def start(self) -> None:
        """Begin to play, on a thread of its own."""
        self._thread.start()

    def close(self) -> None:
        """Stop, and forget what was played."""
        self._left.set()
        if self._thread.ident:
            self._thread.join()
        for log in self._logs.values():
            log.close()
        self._folder.cleanup()

    def _play(self) -> None:
        begun = self._clock()
        while not self._left.is_set() and not all(log.over for log in self._logs.values()):
            until = (self._clock() - begun) * self._speed
            played = [log.play(until) for log in self._logs.values()]
            self.version += any(played)
            self._left.wait(_TICK)

    def states(self) -> tuple[ServerState, ...]:
        return tuple(self._logs[name].state if name in self._logs else self._states[name] for name in self._names)

    def hosts(self) -> tuple[HostState, ...]:
        return ()

    def log_path(self, server: str) -> Path | None:
        return self._logs[server].copy if server in self._logs else None

    def act(self, action: Action) -> Future[Outcome]:
        return nothing_behind()

    def now(self) -> float:
        return time.time()


def _timed(path: Path) -> Generator[tuple[float, bytes]]:
    """Lines with the seconds from the log's first time stamp to their own; one without a stamp, or with an earlier
    one, comes with the line before."""
    first, last = None, 0.0
    with path.open("rb") as file:
        while line := file.readline(_LINE):
            stamp = _STAMP.search(line, 0, 200)
            told = local_seconds(stamp[1].decode(), stamp[2].decode() if stamp[2] else None) if stamp else None
            if told is not None:
                first = told if first is None else first
                last = max(last, told - first)
            yield last, line
