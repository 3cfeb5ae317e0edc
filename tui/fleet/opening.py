"""A profile that is still being read, as a ``Source``: its name and nothing else, for the first paint."""

from __future__ import annotations

import time
from concurrent.futures import Future
from pathlib import Path

from tui.fleet.api import Action, HostState, Outcome
from tui.sglang.state import ServerState


class Opening:
    """A ``Source`` without servers."""

    version = 0

    def __init__(self, title: str, *, read_only: bool = False) -> None:
        self.title = title
        self.read_only = read_only

    def states(self) -> tuple[ServerState, ...]:
        return ()

    def hosts(self) -> tuple[HostState, ...]:
        return ()

    def log_path(self, server: str) -> Path | None:
        return None

    def act(self, action: Action) -> Future[Outcome]:
        done: Future[Outcome] = Future()
        done.set_result(Outcome(False, "still reading the profile: try again in a moment"))
        return done

    def now(self) -> float:
        return time.time()
