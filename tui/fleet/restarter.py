"""Launches a server again as its policy says, for as long as this session lives and no other one does it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tui.fleet import policy
from tui.fleet.hosts import HostWatch
from tui.fleet.lingering import Lingering
from tui.fleet.policy import Decision, End, Limits
from tui.fleet.supervisor import Supervisor
from tui.host.api import HostError, Lease
from tui.sglang.events import Event, Launched, RestartsTold
from tui.sglang.model import FailureKind
from tui.sglang.restarts import Restarts

ENDED = "not restarted, since somebody ended it"


class Restarter:
    """One server's restarts. It acts only on runs that this session has seen alive: what was found ended, the user
    has seen too, and left."""

    def __init__(self, supervisor: Supervisor, watch: HostWatch, limits: Limits) -> None:
        self.supervisor = supervisor
        self._watch = watch
        self._limits = limits
        self._ends: list[End] = []
        self._alive: str | None = None  # the run that was seen alive last
        self._over: str | None = None  # the run whose end was decided on last
        self._mine = False
        self._held: float | None = None  # since when this session restarted it last
        self._holders: set[str] = set()  # the sessions that were seen to restart it
        self._due: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()  # the lease or the host may be there now
        self._launching = False
        self._lingering = Lingering(supervisor, watch, limits.lingering, self._would_restart, self._tell_ending)
        policy_of = supervisor.server.restart
        self._tell(Restarts(policy_of, limit=limits.restarts if policy_of != policy.NEVER else 0))

    @property
    def waiting(self) -> bool:
        """Whether a restart is to come."""
        return self._task is not None and not self._task.done()

    def see(self, event: Event) -> None:
        """Take notice of what happened to the server."""
        state = self.supervisor.state
        run = state.run.run if state.run else None
        if isinstance(event, Launched):
            self._launched(event)
        if state.alive or (isinstance(event, Launched) and not event.run.adopted):
            self._alive = run
        if state.unreachable_since is None:
            self._news.set()
        if state.stop_asked is not None and self.waiting:
            self.cancel()
        ended = state.exit is not None or state.vanished
        if run is not None and ended and run == self._alive and run != self._over:
            self._over = run
            end = policy.end_of(state, self.supervisor.now)
            self._decide(end if end.asked else self._lingering.end_of(run) or end)
        self._lingering.see()

    def _would_restart(self, end: End) -> bool:
        """Whether this session would launch the server again after ``end``."""
        decision = policy.decide(self.supervisor.server.restart, [*self._ends, end], self._limits)
        if decision.delay is None and decision.why != self.told.why:
            self._tell(replace(self.told, why=decision.why))
        return self._mine and decision.delay is not None

    def _tell_ending(self, at: float | None) -> None:
        self._tell(replace(self.told, ends_at=at))

    def _launched(self, event: Launched) -> None:
        """A run that somebody launched begins a new count; one of a session that restarts may be a restart. Either
        makes ours needless, as the old run does not."""
        if event.run.run == self._over or self._launching:
            return
        self.cancel("")
        if not event.run.adopted or event.run.who not in self._holders:
            self._ends.clear()
            self._tell(replace(self.told, count=0))

    def cancel(self, why: str = ENDED) -> bool:
        """Give up the restart that waits; whether one did."""
        waited = self.waiting
        self._lingering.cancel()
        if self._task and self._task is not asyncio.current_task():
            self._task.cancel()
        self._task = self._due = None
        if waited or self.told.why:
            self._tell(replace(self.told, pending=False, next_at=None, why=why if waited else ""))
        return waited

    def lost(self) -> None:
        """The host is out of reach: our lease ended with the connection, and who restarts now cannot be seen."""
        self._mine = False
        self._lingering.cancel()
        self._tell(replace(self.told, by=None, here=False, since=None, next_at=None))

    def lease(self, lease: Lease) -> None:
        """Take notice of who restarts it."""
        self._mine = lease.mine
        if lease.who:
            self._holders.add(lease.who)
        if lease.mine:
            self._held = lease.since
            self._tell(replace(self.told, by=lease.who, here=True, since=lease.since, next_at=self._shown_due()))
            self._news.set()
            self._lingering.see()
            return
        self._lingering.cancel()
        if lease.since is not None and lease.since == self._held:
            return  # our own agent of a lost connection, which has not ended yet
        told = replace(self.told, by=lease.who, here=False, since=lease.since, next_at=None)
        if lease.told.get("over") == self._current():
            with contextlib.suppress(KeyError, TypeError, ValueError):  # written by another release
                told = self._learn(lease.told, told)
        self._tell(told)

    def _current(self) -> str | None:
        """The run whose end would be decided on, if there is one."""
        state = self.supervisor.state
        over = state.exit is not None or state.vanished
        return state.run.run if state.run and over else self._over

    def for_others(self) -> dict[str, Any]:
        """How the restarts stand here, for sessions that may take them over: JSON."""
        ends = policy.counted(self._ends, self._limits.window) if self._ends else ()
        told = self.told
        return {
            "over": self._over,
            "ends": [[end.reason, end.kind, end.served, end.failed] for end in ends],
            "pending": told.pending,
            "next_at": told.next_at,
            "why": told.why,
            "count": told.count,
        }

    def _learn(self, others: Mapping[str, Any], told: Restarts) -> Restarts:
        """Take over what ``for_others`` of the session that restarts says: this one may have missed short runs."""
        keys = ("pending", "next_at", "why", "count")
        learnt = replace(told, limit=self._limits.restarts, **{key: others[key] for key in keys})
        self._ends = [
            End(reason, kind and FailureKind(kind), served, failed) for reason, kind, served, failed in others["ends"]
        ]
        if self._task and not others["pending"]:
            self._task.cancel()
            self._task = self._due = None
        return learnt

    @property
    def told(self) -> Restarts:
        return self.supervisor.state.restarts

    def _tell(self, restarts: Restarts) -> None:
        if restarts != self.told:
            self.supervisor.apply(RestartsTold(self.supervisor.now, restarts))

    def _shown_due(self) -> float | None:
        return self._due if self._mine else None

    def _decide(self, end: End) -> None:
        self._ends.append(end)
        decision = policy.decide(self.supervisor.server.restart, self._ends, self._limits)
        made = decision.made if decision.why else self.told.count
        self._task = None
        if decision.delay is None:
            self._due = None
            self._tell(replace(self.told, pending=False, next_at=None, why=decision.why, count=made))
            return
        self._due = self.supervisor.now + decision.delay
        self._tell(replace(self.told, pending=True, next_at=self._shown_due(), why=decision.why, count=made))
        assert self._over is not None
        self._task = asyncio.get_running_loop().create_task(self._restart(self._over, decision))

    async def _restart(self, run: str, decision: Decision) -> None:
        await asyncio.sleep(decision.delay or 0.0)
        while True:
            self._news.clear()
            if self._mine and not self._watch.error:
                with contextlib.suppress(HostError):
                    if await self._attempt(run):
                        return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.longest):
                    await self._news.wait()

    async def _attempt(self, run: str) -> bool:
        """Launch again, unless somebody was quicker or wants it ended. False: try again when there is news."""
        supervisor = self.supervisor
        hello = await self._watch.require()
        records = await supervisor.link.runs(supervisor.profile, supervisor.server.name)
        newest = records[0] if records else None
        if newest and (newest.run != run or newest.alive):
            self.cancel("")
            await supervisor.adopt(newest, hello)
            return True
        if newest and (newest.stop_asked or newest.kill_asked):
            self._task = self._due = None
            self._tell(replace(self.told, pending=False, next_at=None, why=ENDED))
            return True
        self._launching, self._due = True, None
        self._tell(replace(self.told, next_at=supervisor.now))
        try:
            outcome = await supervisor.actions.restart(hello, run)
        finally:
            self._launching = False
        refused = supervisor.state.refused
        if outcome.ok:
            count = self.told.count + ("already" not in outcome.details)
            self._tell(replace(self.told, count=count, pending=False, next_at=None, why=""))
        elif refused is not None:
            self._decide(policy.end_of_refusal(refused))
        elif "left" in outcome.details:
            self._decide(End(outcome.message))
        else:
            self._tell(replace(self.told, next_at=None, why=f"could not be restarted: {outcome.message}"))
            return False
        return True

    def close(self) -> None:
        self._lingering.cancel()
        if self._task:
            self._task.cancel()
