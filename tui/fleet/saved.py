"""Saved logs as a ``Source``: the dashboard and snapshots over files, with no host behind them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from tui.fleet.api import Action, HostState, Outcome
from tui.fleet.thread import SWITCH
from tui.sglang.events import LogRead, Noted
from tui.sglang.facts import read
from tui.sglang.model import ServerInfo
from tui.sglang.parser import LogParser
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

_STEP = 64 * 1024
_PIECE = 256 * 1024  # bytes read at once beside an open dashboard
_LARGE = 4 << 20  # bytes that take a moment
_TELL = 0.3  # seconds


def read_log(path: Path, name: str | None = None) -> ServerState:
    """The state that a saved log shows at its end. Raises ``OSError``."""
    info = ServerInfo(name or path.stem, log=str(path))
    with path.open("rb") as file:
        facts = read(iter(lambda: file.read(_STEP), b""))
    return reduce(ServerState(info), LogRead(path.stat().st_mtime, facts))


def unusable(path: Path, name: str, why: str) -> ServerState:
    """A file that shows no server: ``why`` is all that is known of it."""
    return reduce(ServerState(ServerInfo(name, log=str(path))), Noted(time.time(), why))


class SavedLogs:
    """A ``Source`` over log files, read whole. One server per file, named after it.

    ``behind``: large files are read on a thread of their own once ``start`` is called, and what they tell so far is
    there meanwhile; their lines can be looked at from the beginning.
    ``wrong``: files that are no logs, and why; each has its place among the others, and is not read.
    """

    read_only = True

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        clock: float | None = None,
        behind: bool = False,
        wrong: Mapping[Path, str] = MappingProxyType({}),
    ) -> None:
        self.title = paths[0].name if len(paths) == 1 else f"{len(paths)} saved logs"
        self.version = 0
        named = dict(zip(names(paths), paths, strict=True))
        self._paths = {name: path for name, path in named.items() if path not in wrong}
        self._later = [name for name, path in self._paths.items() if behind and path.stat().st_size > _LARGE]
        self._states = {
            name: unusable(path, name, wrong[path])
            if path in wrong
            else ServerState(ServerInfo(name, log=str(path)))
            if name in self._later
            else read_log(path, name)
            for name, path in named.items()
        }
        self._now = clock if clock is not None else time.time()

    def start(self) -> None:
        """Begin to read what was left for later."""
        if self._later:
            sys.setswitchinterval(SWITCH)
            threading.Thread(target=self._read, name="saved logs", daemon=True).start()

    def _read(self) -> None:
        for name in self._later:
            try:
                for state in _growing(self._states[name], self._paths[name]):
                    self._states[name] = state
                    self.version += 1
            except OSError as error:
                told = f"its log cannot be read any further: {(error.strerror or str(error)).lower()}"
                self._states[name] = reduce(self._states[name], Noted(self._now, told))
                self.version += 1

    def states(self) -> tuple[ServerState, ...]:
        return tuple(self._states.values())

    def hosts(self) -> tuple[HostState, ...]:
        return ()

    def log_path(self, server: str) -> Path | None:
        return self._paths.get(server)

    def act(self, action: Action) -> Future[Outcome]:
        return nothing_behind()

    def now(self) -> float:
        return self._now


def _growing(state: ServerState, path: Path) -> Iterator[ServerState]:
    """What a log tells so far, from time to time, and at last all of it."""
    told, parser = path.stat(), LogParser()
    with path.open("rb") as file:
        due = time.monotonic() + _TELL
        while data := file.read(_PIECE):
            parser.feed(data)
            if time.monotonic() >= due:
                missing = max(1, told.st_size - parser.size)
                yield reduce(state, LogRead(told.st_mtime, replace(parser.facts(), missing=missing)))
                due = time.monotonic() + _TELL
    yield reduce(state, LogRead(told.st_mtime, parser.facts(end=True)))


def nothing_behind() -> Future[Outcome]:
    """What becomes of any action."""
    done: Future[Outcome] = Future()
    done.set_result(Outcome(False, "a saved log: there is nothing to launch or kill"))
    return done


def names(paths: Sequence[Path]) -> list[str]:
    """The files' stems; where two are alike, with their folder, then with a number."""
    names: list[str] = []
    for path in paths:
        stem = path.stem or path.name
        name = stem if stem not in names else f"{path.parent.name}/{stem}"
        number = 2
        while name in names:
            name, number = f"{stem}-{number}", number + 1
        names.append(name)
    return names
