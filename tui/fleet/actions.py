"""What can be done to one server: launch, relaunch, restart, kill, smoke test. One of them at a time."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from tui.fleet import translate
from tui.fleet.api import PATIENCE, Outcome
from tui.fleet.ending import after, end, end_launch
from tui.fleet.smoke import smoke_test
from tui.fleet.turns import Turn
from tui.host.api import Hello, HostError, HostErrorKind
from tui.profile.model import Server
from tui.sglang import verdict
from tui.sglang.events import Queued, Refused, StopAsked
from tui.sglang.model import Phase

if TYPE_CHECKING:
    from tui.fleet.supervisor import Supervisor

_LAUNCHES = ("launched", "relaunched", "restarted")


class Actions:
    """The actions on the server of ``supervisor``, whose launches wait for their ``turn``."""

    def __init__(self, supervisor: Supervisor, turn: Turn) -> None:
        self._supervisor = supervisor
        self._link, self._profile = supervisor.link, supervisor.profile
        self._turn = turn
        self._busy = ""
        self._given_up = False  # a kill came while it was being launched

    @property
    def busy(self) -> bool:
        """Whether an action on this server is under way."""
        return bool(self._busy)

    @property
    def _server(self) -> Server:
        return self._supervisor.server

    @property
    def _name(self) -> str:
        return self._supervisor.server.name

    async def launch(self, hello: Hello) -> Outcome:
        """Launch the server unless it runs already."""
        if self._supervisor.running:
            return Outcome(True, f"{self._name} already runs", {"already": True})
        return await self._exclusively("launched", self._launch(hello))

    async def relaunch(self, hello: Hello, server: Server) -> Outcome:
        """End the server if it runs, prove it gone, and launch ``server`` in its place."""
        return await self._exclusively("relaunched", self._relaunch(hello, server))

    async def restart(self, hello: Hello, run: str) -> Outcome:
        """Launch the server again after ``run``, which is over, and of which nothing may be left."""
        return await self._exclusively("restarted", self._restart(hello, run))

    async def kill(self, grace: float | None = None, patience: float = PATIENCE) -> Outcome:
        """End the server and prove that nothing of it is left; a launch that waits its turn is given up."""
        if self._turn.give_up():
            return Outcome(True, f"{self._name}: not launched: nothing left", {"left": []})
        if self._launching():
            return await self._give_up_launch(grace, patience)
        return await self._exclusively("killed", self._kill(grace, patience))

    async def _give_up_launch(self, grace: float | None, patience: float) -> Outcome:
        """End what a launch that is under way has started; it comes to its end by that."""
        self._given_up = True
        try:
            report = await end_launch(self._link, self._profile, self._server, grace, patience, self._launching)
        except HostError as error:
            return self._impossible(error)
        return translate.kill_outcome(self._name, report) if report else await self.kill(grace, patience)

    async def smoke(self) -> Outcome:
        if verdict.phase(self._supervisor.state) is not Phase.READY or self._server.port is None:
            return Outcome(False, f"{self._name} is not ready")
        return await smoke_test(self._link, self._server)

    async def _exclusively(self, what: str, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        if self._busy:
            work.close()
            return Outcome(False, f"{self._name} is being {self._busy} already")
        self._busy, self._given_up = what, False
        try:
            return await work
        except HostError as error:
            return self._impossible(error)
        finally:
            self._busy = ""

    def _launching(self) -> bool:
        return self._busy in _LAUNCHES

    def _impossible(self, error: HostError) -> Outcome:
        return Outcome(False, f"{self._name}: {error}", {"error": error.kind.value})

    async def _launch(self, hello: Hello) -> Outcome:
        if self._given_up or not await self._my_turn():
            return Outcome(False, f"{self._name}: not launched: ended while it waited its turn")
        age: float | None = None
        try:
            record = await self._link.launch(translate.launch_spec(self._profile, self._server))
            age = max(0.0, record.at - record.started) if record.at is not None else 0.0
        except HostError as error:
            if error.kind is HostErrorKind.REFUSED:
                if self._given_up:
                    await self._adopt_newest(hello, alive=False)
                    return Outcome(False, f"{self._name}: ended while it was being launched")
                if await self._adopt_newest(hello, alive=True):
                    return Outcome(True, f"{self._name}: {error.message}", {"already": True})
                self._refused(error)
            raise
        finally:
            self._turn.give(age)
        await self._supervisor.begin(record, hello, adopted=False)
        return Outcome(True, f"{self._name} launched: pid {record.pid}", {"run": record.run, "pid": record.pid})

    async def _my_turn(self) -> bool:
        """Wait until it may be launched; False when it was killed meanwhile."""
        try:
            return await self._turn.take(
                lambda wait: self._supervisor.apply(Queued(self._supervisor.now, self._supervisor.now + wait))
            )
        finally:
            if self._supervisor.state.launch_at is not None:
                self._supervisor.apply(Queued(self._supervisor.now, None))

    def _refused(self, error: HostError) -> None:
        self._supervisor.forget()
        self._supervisor.apply(
            Refused(self._supervisor.now, translate.refusal(error.message, error.remedy, error.failure))
        )

    async def _adopt_newest(self, hello: Hello, *, alive: bool) -> bool:
        """Take over the newest run there is on the host, or that lives: somebody else's that won, or what is left of
        a launch that was ended."""
        for record in await self._link.runs(self._profile, self._name):
            if record.alive or not alive:
                await self._supervisor.adopt(record, hello)
                return True
        return False

    async def _relaunch(self, hello: Hello, server: Server) -> Outcome:
        ended = await (self._kill(None) if self._supervisor.running else self._sweep())
        if ended and not ended.ok:
            return ended
        self._supervisor.server = server
        return after(ended, await self._launch(hello))

    async def _left(self) -> str | None:
        """The run on the host that is over and has left processes."""
        records = await self._link.runs(self._profile, self._name)
        return next((record.run for record in records if record.exit and record.exit.left), None)

    async def _sweep(self) -> Outcome | None:
        """End what a run that is over has left, which would keep the next from being launched."""
        run = await self._left()
        if run is None:
            return None
        report = await self._link.kill(run, self._server.stop_grace, who=translate.who(), sweep=True)
        return translate.kill_outcome(self._name, report)

    async def _restart(self, hello: Hello, run: str) -> Outcome:
        try:
            report = await self._link.kill(run, self._server.stop_grace, who=translate.who(), sweep=True)
            if report.left:
                return translate.kill_outcome(self._name, report)
        except HostError as error:
            if error.kind is not HostErrorKind.REFUSED:
                raise
            # it never got a process, or lives where it cannot be ended: the launch finds out
        return await self._launch(hello)

    async def _kill(self, grace: float | None, patience: float = PATIENCE) -> Outcome:
        run, exit_ = self._supervisor.state.run, self._supervisor.state.exit
        over = run is None or not (self._supervisor.running or exit_ is None or exit_.left)
        if run is None and (left := await self._left()):  # of which a launch was refused
            return translate.kill_outcome(self._name, await end(self._link, left, self._server, grace, patience))
        if run is None or (over and self._server.restart == "never"):
            return Outcome(True, f"{self._name} does not run: nothing left", {"left": []})
        if not over:
            self._supervisor.apply(StopAsked(self._supervisor.now))
        return translate.kill_outcome(self._name, await end(self._link, run.run, self._server, grace, patience))
