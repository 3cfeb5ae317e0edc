"""The fleet on a thread and loop of its own, as a ``Source``: a stuck terminal never stops log intake."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

from tui.fleet.api import Action, HostState, Launch, Outcome
from tui.sglang.model import ServerInfo
from tui.sglang.state import ServerState

if TYPE_CHECKING:
    from tui.fleet.fleet import Fleet
    from tui.profile.model import Profile

SWITCH = 0.0005
"""Seconds that the thread which draws waits at most for one that reads logs; Python's 5 ms are waited several times for
one key."""


class FleetThread:
    """A ``Source`` over a live fleet. ``start`` after the first paint: it imports asyncssh."""

    def __init__(self, profile: Profile, *, read_only: bool = False, launch: bool = False) -> None:
        self.title = profile.name
        self.read_only = read_only
        self._profile = profile
        self._launch = launch  # everything at once when the hosts are up (the demo)
        self._fleet: Fleet | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None
        self._up = threading.Event()
        self._settled = threading.Event()
        self._crash: BaseException | None = None
        self._not_yet = tuple(
            ServerState(ServerInfo(s.name, s.host.name, s.port, s.url, s.model, s.gpus)) for s in profile.servers
        )
        self._hosts_not_yet = tuple(HostState(h.name, h.ssh) for h in profile.hosts)

    def start(self) -> None:
        sys.setswitchinterval(SWITCH)
        self._thread = threading.Thread(target=self._run, name="fleet", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Let go of every host. Servers run on."""
        if self._thread and self._thread.is_alive():
            self._up.wait(timeout)
            if self._loop and self._stop:
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(timeout)

    @property
    def version(self) -> int:
        if self._crash:
            raise RuntimeError("the fleet's thread ended") from self._crash
        return self._fleet.version if self._fleet else -1

    def settled(self) -> bool:
        """Whether every host's first attempt is over and its running servers are known."""
        return (
            self._settled.is_set()
            and self._fleet is not None
            and all(s.known for s in self._fleet.supervisors.values())
        )

    def states(self) -> tuple[ServerState, ...]:
        return self._fleet.states() if self._fleet else self._not_yet

    def hosts(self) -> tuple[HostState, ...]:
        return self._fleet.hosts() if self._fleet else self._hosts_not_yet

    def log_path(self, server: str) -> Path | None:
        return self._fleet.supervisors[server].log_path if self._fleet else None

    def act(self, action: Action) -> Future[Outcome]:
        if self._loop is None or self._fleet is None:
            done: Future[Outcome] = Future()
            done.set_result(Outcome(False, "still starting: try again in a moment"))
            return done
        return asyncio.run_coroutine_threadsafe(self._fleet.act(action), self._loop)

    def now(self) -> float:
        return time.time()

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as crash:
            self._crash = crash
        finally:
            self._up.set()

    async def _live(self) -> None:
        from tui.fleet.fleet import Fleet

        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        fleet = Fleet(self._profile, read_only=self.read_only, restarts=not self.read_only)
        fleet.start()
        self._fleet = fleet
        self._up.set()
        first_look = asyncio.create_task(self._first_look(fleet))
        await self._stop.wait()
        first_look.cancel()
        await fleet.close()

    async def _first_look(self, fleet: Fleet) -> None:
        await fleet.settled()
        if self._launch:
            await asyncio.gather(*(fleet.act(Launch(name)) for name in fleet.supervisors))
        self._settled.set()
