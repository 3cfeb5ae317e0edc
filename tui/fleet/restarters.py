"""The restarts of a fleet's servers, and on each host who carries them out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping

from tui.fleet import policy
from tui.fleet.hosts import HostWatch
from tui.fleet.policy import Limits
from tui.fleet.restarter import Restarter
from tui.fleet.supervisor import Supervisor
from tui.fleet.translate import who
from tui.host.api import HostError
from tui.sglang.events import Event, HostBack, HostLost, RestartsTold


class Restarters:
    """Those servers of a fleet that have a policy. ``active``: this session restarts them where no other one does;
    else it only looks who does."""

    def __init__(self, limits: Limits, *, active: bool) -> None:
        self._limits = limits
        self._active = active
        self._of: dict[str, Restarter] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._looks: list[asyncio.Event] = []  # per host: it has been asked once
        self._back: dict[str, asyncio.Event] = {}  # per host: it answers again, or there is something to tell there

    def add(self, supervisor: Supervisor, watch: HostWatch) -> None:
        if supervisor.server.restart != policy.NEVER:
            self._of[supervisor.server.name] = Restarter(supervisor, watch, self._limits)

    def see(self, supervisor: Supervisor, event: Event) -> None:
        """Take notice of what happened to a server."""
        restarter = self._of.get(supervisor.server.name)
        if restarter is None:
            return
        if isinstance(event, RestartsTold):
            if event.restarts.here:
                self._back[supervisor.server.host.name].set()  # to tell the others
            return
        if isinstance(event, HostLost):
            restarter.lost()
        elif isinstance(event, HostBack):
            self._back[supervisor.server.host.name].set()
        if self._active:
            restarter.see(event)

    def cancel(self, server: str) -> bool:
        """Give up the restart of ``server`` that waits; whether one did."""
        return server in self._of and self._of[server].cancel()

    def start(self, hosts: Iterable[HostWatch]) -> None:
        for watch in hosts:
            restarters = {
                s.server.name: self._of[s.server.name] for s in watch.supervisors if s.server.name in self._of
            }
            if restarters:
                self._back[watch.link.name], looked = asyncio.Event(), asyncio.Event()
                self._looks.append(looked)
                self._tasks.append(asyncio.create_task(self._poll(watch, restarters, looked)))

    async def looked(self) -> None:
        """Every host has been asked once who restarts its servers, or could not be."""
        for looked in self._looks:
            await looked.wait()

    async def _poll(self, watch: HostWatch, restarters: Mapping[str, Restarter], looked: asyncio.Event) -> None:
        profile, back = next(iter(restarters.values())).supervisor.profile, self._back[watch.link.name]
        while True:
            back.clear()
            with contextlib.suppress(HostError):
                await watch.require()
                told = {name: restarter.for_others() for name, restarter in restarters.items()}
                leases = await watch.link.leases(profile, list(restarters), take=self._active, who=who(), told=told)
                for name, lease in leases.items():
                    restarters[name].lease(lease)
            looked.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.poll):
                    await back.wait()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for restarter in self._of.values():
            restarter.close()
