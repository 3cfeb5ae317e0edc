"""What is left of a server that has failed while its processes live on: ended, so that the server can be restarted.

SGLang that has lost a scheduler serves nothing, yet may hold its port and its GPU memory for as long as somebody lets
it. It gets the time that it takes for its own diagnostics (65 s with core dumps), and whoever still answers requests
is left alone, whatever the log says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tui.fleet import policy
from tui.fleet.hosts import HostWatch
from tui.fleet.policy import End
from tui.fleet.supervisor import Supervisor
from tui.fleet.translate import who
from tui.host.api import HostError, HostErrorKind
from tui.sglang import verdict
from tui.sglang.events import Noted

HEALTH_SECONDS = 25.0  # SGLang answers 503 after 20 s
SERVES = "its log says that it failed, yet it answers requests: it is left alone"


class Lingering:
    """One server's. ``may``: whether this session restarts it, and would after that end. ``tell(at)``: it is to be
    ended at that time; ``None``: it is not."""

    def __init__(
        self,
        supervisor: Supervisor,
        watch: HostWatch,
        seconds: float,
        may: Callable[[End], bool],
        tell: Callable[[float | None], None],
    ) -> None:
        self._supervisor = supervisor
        self._watch = watch
        self._seconds = seconds
        self._may = may
        self._tell = tell
        self._task: asyncio.Task[None] | None = None
        self._run = ""  # that was ended here
        self._end: End | None = None  # how, as it was seen before

    def see(self) -> None:
        """Take notice of what happened to the server."""
        if not verdict.lingers(self._supervisor.state):
            self.cancel()
        elif self._task is None and self._may(self._now()):
            self._task = asyncio.get_running_loop().create_task(self._wait())

    def end_of(self, run: str) -> End | None:
        """How ``run`` ended, if it was ended here: what SIGTERM made of it is no clean end."""
        return self._end if run == self._run else None

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
            self._tell(None)

    def _now(self) -> End:
        return policy.end_of(self._supervisor.state, self._supervisor.now)

    async def _wait(self) -> None:
        over = False
        while not over:
            self._tell(self._supervisor.now + self._seconds)
            await asyncio.sleep(self._seconds)
            try:
                over = await self._attempt()
            except HostError:
                continue

    async def _attempt(self) -> bool:
        """End it; False: look again later. Raises ``HostError``."""
        supervisor, run = self._supervisor, self._supervisor.state.run
        if run is None or self._watch.error or not self._may(self._now()):
            return False
        if await self._serves():
            if SERVES not in supervisor.state.notes:
                supervisor.apply(Noted(supervisor.now, SERVES))
            return False
        if not supervisor.follows(run.run) or not verdict.lingers(supervisor.state):
            return True
        self._run, self._end = run.run, self._now()
        report = await supervisor.link.kill(run.run, supervisor.server.stop_grace, who=who(), sweep=True)
        for one in report.left:
            supervisor.apply(Noted(supervisor.now, f"failed, and could not be ended: {one}"))
        return not report.left

    async def _serves(self) -> bool:
        """Whether it answers requests. A healthy SGLang generates one token for this."""
        port = self._supervisor.server.port
        if port is None:
            return False
        try:
            return (await self._supervisor.link.get(port, "/health", timeout=HEALTH_SECONDS)).status < 500
        except HostError as error:
            if error.kind is not HostErrorKind.REFUSED:
                raise
            return False  # nobody listens, or nobody answered
