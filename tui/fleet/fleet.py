"""The Fleet: the servers of a profile, their hosts, and the actions on them. It lives on one event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from tui.fleet.api import (
    Action,
    Answer,
    Describe,
    Discover,
    FetchLog,
    Forward,
    HostState,
    Kill,
    Launch,
    Outcome,
    PastRuns,
    Reconnect,
    Relaunch,
    SmokeTest,
)
from tui.fleet.discovery import discover
from tui.fleet.forwarding import toggle_forward
from tui.fleet.hosts import HostWatch
from tui.fleet.lookup import describe, look_up
from tui.fleet.places import Places, default_places
from tui.fleet.policy import Limits
from tui.fleet.restarters import Restarters
from tui.fleet.supervisor import Supervisor
from tui.fleet.turns import Turns
from tui.host.answers import answer
from tui.host.api import HostError, Link
from tui.host.connect import open_link
from tui.profile.model import Host, Profile, Server
from tui.profile.secrets import known_values
from tui.sglang.events import Event
from tui.sglang.mask import learn
from tui.sglang.model import ServerInfo
from tui.sglang.state import ServerState

Listener = Callable[[Supervisor, ServerState, Event], None]
_LIMITS = Limits()


class Fleet:
    """Servers and hosts of one profile. Build it inside a running loop; ``close`` leaves every server running.

    ``restarts``: for as long as it lives it carries out the servers' restart policies, within ``limits``.
    """

    def __init__(
        self,
        profile: Profile,
        servers: Sequence[Server] | None = None,
        *,
        places: Places | None = None,
        clock: Callable[[], float] = time.time,
        read_only: bool = False,
        restarts: bool = False,
        limits: Limits = _LIMITS,
        link: Callable[[Host], Link] | None = None,
        hosts: Sequence[Host] = (),
    ) -> None:
        self.profile = profile
        self.read_only = read_only
        self.version = 0
        self._waiting: set[asyncio.Event] = set()
        self.listeners: list[Listener] = []
        self._clock = clock
        self._turns: dict[str, Turns] = {}
        self._restarters = Restarters(limits, active=restarts and not read_only)
        self._hosts: dict[str, HostWatch] = {}
        self._declared: dict[str, Host] = {}
        self._discovering = asyncio.Lock()
        self.supervisors: dict[str, Supervisor] = {}
        self._places = places or default_places()
        learn(known_values(self.profile.servers))
        self._link = link or partial(open_link, read_only=read_only)
        for host in hosts:  # also without a server of the profile
            self._watch(host)
        for server in servers if servers is not None else profile.servers:
            watch = self._watch(server.host)
            supervisor = self._supervisor(server, None, watch)
            watch.supervisors.append(supervisor)
            self.supervisors[server.name] = supervisor
            self._restarters.add(supervisor, watch)

    def _watch(self, host: Host) -> HostWatch:
        """The one watch of a host."""
        if host.name not in self._hosts:
            self._declared[host.name] = host
            self._hosts[host.name] = HostWatch(
                self._link(host), self.profile.name, host.ssh, clock=self._clock, changed=self._host_changed
            )
        return self._hosts[host.name]

    def _supervisor(self, server: Server, info: ServerInfo | None, watch: HostWatch) -> Supervisor:
        return Supervisor(
            self.profile.name, server, watch.link, self._places, clock=self._clock, changed=self._server_changed,
            turns=self._turns.setdefault(server.host.name, Turns(server.host.stagger)), info=info,
        )  # fmt: skip

    def start(self) -> None:
        """Begin to connect; servers that run already are adopted as their hosts answer."""
        for watch in self._hosts.values():
            watch.start()
        self._restarters.start(self._hosts.values())

    async def settled(self) -> None:
        """Every host's first attempt is over, and its running servers, and who restarts them, are known."""
        await asyncio.gather(*(watch.settled.wait() for watch in self._hosts.values()))
        await self._restarters.looked()

    def connecting(self) -> list[HostWatch]:
        """The hosts whose first attempt is not over."""
        return [watch for watch in self._hosts.values() if not watch.settled.is_set()]

    async def until(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until ``condition`` holds, looking after every change; False when ``seconds`` passed first."""
        changed = asyncio.Event()
        self._waiting.add(changed)
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    changed.clear()
                    await changed.wait()
            return True
        except TimeoutError:
            return condition()
        finally:
            self._waiting.discard(changed)

    async def close(self) -> None:
        await self._restarters.close()
        await asyncio.gather(*(watch.close() for watch in self._hosts.values()))

    def states(self) -> tuple[ServerState, ...]:
        return tuple(s.state for s in self.supervisors.values())

    def hosts(self) -> tuple[HostState, ...]:
        return tuple(watch.state for watch in self._hosts.values())

    def errors(self) -> dict[str, HostError]:
        """The hosts that cannot be used now, and why."""
        return {name: watch.error for name, watch in self._hosts.items() if watch.error}

    def host_of(self, server: str) -> HostWatch:
        return self._hosts[self.supervisors[server].server.host.name]

    async def act(self, action: Action) -> Outcome:
        """Carry out an action; failures are told in the outcome, never raised."""
        if isinstance(action, Reconnect):
            self._hosts[action.host].reconnect()
            return Outcome(True, f"{action.host}: trying again")
        if isinstance(action, Answer):
            return await self._answer(action)
        if isinstance(action, Discover):
            return await self._discover(action.host)
        if isinstance(action, Forward):
            return await toggle_forward(self.host_of(action.server), self.supervisors[action.server], action.local)
        if isinstance(action, Describe):
            return describe(self.supervisors[action.server])
        if isinstance(action, PastRuns | FetchLog):
            return await look_up(self.host_of(action.server), self.supervisors[action.server], self._places, action)
        if self.read_only and not isinstance(action, SmokeTest):
            return Outcome(False, "read-only: nothing is launched or killed")
        waited = isinstance(action, Kill) and self._restarters.cancel(action.server)  # even if its host is out of reach
        watch = self.host_of(action.server)
        try:
            hello = await watch.require()
        except HostError as error:
            return Outcome(False, f"{action.server}: {error}", {"error": error.kind.value})
        supervisor = self.supervisors[action.server]
        if supervisor.state.info.stranger and isinstance(action, Launch | Relaunch):
            return Outcome(False, f"{action.server} was found running: this profile has no way to launch it")
        match action:
            case Launch():
                return await supervisor.actions.launch(hello)
            case Relaunch(_, overrides):
                try:
                    server = supervisor.server.with_args(overrides) if overrides else supervisor.server
                except ValueError as error:
                    return Outcome(False, f"{action.server}: {error}")
                return await supervisor.actions.relaunch(hello, server)
            case Kill(name, _, typed, _) if supervisor.state.info.stranger and typed != name:
                return Outcome(False, f"{name} was found running: it is ended only when its name was typed")
            case Kill(_, grace, _, patience):
                outcome = await supervisor.actions.kill(grace, patience)
                return replace(outcome, message=f"{outcome.message}; not restarted") if waited else outcome
            case SmokeTest():
                return await supervisor.actions.smoke()

    async def _answer(self, action: Answer) -> Outcome:
        waiting = [watch for watch in self._hosts.values() if watch.state.question == action.question]
        names = ", ".join(watch.state.name for watch in waiting)
        try:
            if not await answer(action.question, action.reply):
                return Outcome(False, f"{names}: left as it is")
        except HostError as error:
            return Outcome(False, str(error), {"error": error.kind.value})
        for watch in waiting:
            watch.reconnect()
        return Outcome(True, f"{names}: trying again")

    async def _discover(self, host: str) -> Outcome:
        watch, declared = self._hosts[host], self._declared[host]
        async with self._discovering:
            try:
                self.supervisors, outcome = await discover(watch, declared, self.supervisors, self._supervisor)
            except HostError as error:
                return Outcome(False, f"{host}: {error}", {"error": error.kind.value})
        self.version += 1
        return outcome

    def _server_changed(self, supervisor: Supervisor, before: ServerState, event: Event) -> None:
        self._host_changed()
        for listener in self.listeners:
            listener(supervisor, before, event)
        self._restarters.see(supervisor, event)

    def _host_changed(self) -> None:
        self.version += 1
        for waiting in self._waiting:
            waiting.set()
