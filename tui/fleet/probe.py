"""What is asked of a server by HTTP: readiness and figures where its log cannot tell them, a smoke test on request.

Never ``/health``, which makes SGLang generate a token (``lingering`` asks it once, before it ends what has failed);
never more often than every 10 s.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from tui.host.api import HostError, HttpAnswer
from tui.profile.model import Secret, Server
from tui.sglang import http, live, verdict
from tui.sglang.events import HttpRead, Noted
from tui.sglang.model import Phase, Sample
from tui.sglang.state import ServerState

if TYPE_CHECKING:
    from tui.fleet.supervisor import Supervisor

PROBE_SECONDS = 10.0
RECENT = 30.0  # seconds since the last line of a server that works
SECONDS = 5  # with batch lines and without a rate: the first ones after idleness never have one
OK, UNAUTHORIZED = 200, 401


def wants_http(state: ServerState) -> bool:
    """Whether this server's readiness must be asked for: by its profile, or because its log tells nothing."""
    if not state.alive or state.listening != "own" or state.info.ready_by == "log":
        return False
    return state.info.ready_by == "http" or verdict.silent(state.log)


def wants_rate(state: ServerState, now: float) -> bool:
    """Whether a server that works prints no rate, so that it must be asked for one."""
    if verdict.phase(state) is not Phase.READY or state.log_at is None:
        return False
    if not verdict.unrated(state.log) or now - state.log_at > RECENT:
        return False
    lately = state.log.series[-SECONDS:]
    return len(lately) == SECONDS and all(sample.generate is None for sample in lately)


class HttpProbe:
    """Asks one server every 10 s while it must be asked."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._task: asyncio.Task[None] | None = None
        self._before: http.Reading | None = None
        self._gone: dict[str, int] = {}  # paths that this run's server does not have

    def consider(self) -> None:
        """Begin to ask when that became necessary."""
        if self._wanted() and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._ask())

    def stop(self) -> None:
        """The run is over: another may be of another release."""
        if self._task:
            self._task.cancel()
            self._task = None
        self._before, self._gone = None, {}

    async def _ask(self) -> None:
        supervisor, port = self._supervisor, self._supervisor.server.port
        while port is not None and self._wanted():
            ready = await self._ready(port) if wants_http(supervisor.state) else None
            told = supervisor.state.log.latest  # the log comes first
            wanted = ready is not False and (told is None or told.generate is None)
            now = await self._reading(port) if wanted else None
            before, self._before = self._before, now or self._before
            sample = http.rate(before, now) if before and now else now.sample if now else None
            supervisor.apply(HttpRead(supervisor.now, ready, sample, now.facts if now else None))
            await asyncio.sleep(PROBE_SECONDS)

    def _wanted(self) -> bool:
        state = self._supervisor.state
        return wants_http(state) or wants_rate(state, self._supervisor.now)

    async def _get(self, port: int, path: str) -> HttpAnswer:
        """Raises ``HostError`` when nothing answers."""
        supervisor = self._supervisor
        answer = await supervisor.link.get(port, path, headers=authorization(supervisor.server))
        if answer.status in live.GONE:
            self._gone[path] = answer.status
        return answer

    async def _ready(self, port: int) -> bool | None:
        """Whether a readiness path says so; a server that still loads may know none of them. ``None``: one that was
        ready and now is too busy to answer, which proves nothing while it lives and listens."""
        for path in http.READY_PATHS:
            if path in self._gone and path != http.READY_PATHS[-1]:
                continue
            try:
                answer = await self._get(port, path)
            except HostError:
                return None if self._supervisor.state.http_ready else False
            if answer.status == UNAUTHORIZED:
                note = "its HTTP asks for a key: set api-key in the profile, or its readiness cannot be asked for"
                self._supervisor.apply(Noted(self._supervisor.now, note))
            if answer.status not in live.GONE:
                return http.ready(path, answer.status) or False
        return False

    async def _reading(self, port: int) -> http.Reading | None:
        """Live figures from the best sources that the server has, and what it says of itself."""
        run = self._supervisor.state.run
        now = self._supervisor.now + ((run.utc_offset or 0) if run else 0)
        version = verdict.version(self._supervisor.state)
        statuses, readings, before = dict(self._gone), list[http.Reading](), self._before
        try:
            # At first all that the server says of itself, then the best source alone
            while path := live.next_path(version, statuses, before is not None and any(map(_counts, readings))):
                answer = await self._get(port, path)
                statuses[path] = answer.status
                reading = http.read(path, answer.body, now) if answer.status == OK else None
                if reading:
                    readings.append(reading)
                    version = version or reading.facts.version
            if before is None:
                about = http.model_facts("/v1/models", (await self._get(port, "/v1/models")).body)
            else:
                about = before.facts
            readings.append(http.Reading(Sample(now), facts=about))
        except HostError:
            pass
        return live.merged(readings)


def _counts(reading: http.Reading) -> bool:
    return reading.generated is not None


def authorization(server: Server) -> dict[str, str]:
    """The header that SGLang wants where the profile sets an API key."""
    key = server.flags.get("api-key")
    if isinstance(key, Secret):
        key = os.environ.get(key.name)
    return {"Authorization": f"Bearer {key}"} if isinstance(key, str) else {}
