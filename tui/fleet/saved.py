"""Saved logs as a ``Source``: the dashboard and snapshots over files, with no host behind them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

from tui.fleet.api import Action, HostState, Outcome
from tui.sglang.events import LogRead
from tui.sglang.model import ServerInfo
from tui.sglang.parser import read
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

_STEP = 64 * 1024


def read_log(path: Path, name: str | None = None) -> ServerState:
    """The state that a saved log shows at its end. Raises ``OSError``."""
    info = ServerInfo(name or path.stem, log=str(path))
    with path.open("rb") as file:
        facts = read(iter(lambda: file.read(_STEP), b""))
    return reduce(ServerState(info), LogRead(path.stat().st_mtime, facts))


class SavedLogs:
    """A ``Source`` over log files, read whole. One server per file, named after it."""

    read_only = True
    version = 0

    def __init__(self, paths: Sequence[Path], *, clock: float | None = None) -> None:
        self.title = paths[0].name if len(paths) == 1 else f"{len(paths)} saved logs"
        self._paths = dict(zip(_names(paths), paths, strict=True))
        self._states = tuple(read_log(path, name) for name, path in self._paths.items())
        self._now = clock if clock is not None else time.time()

    def states(self) -> tuple[ServerState, ...]:
        return self._states

    def hosts(self) -> tuple[HostState, ...]:
        return ()

    def log_path(self, server: str) -> Path | None:
        return self._paths.get(server)

    def act(self, action: Action) -> Future[Outcome]:
        done: Future[Outcome] = Future()
        done.set_result(Outcome(False, "a saved log: there is nothing to launch or kill"))
        return done

    def now(self) -> float:
        return self._now


def _names(paths: Sequence[Path]) -> list[str]:
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
