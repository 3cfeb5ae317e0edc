"""What is asked of a server by HTTP: readiness where its log cannot tell, and a smoke test on request.

Never ``/health``, which makes SGLang generate a token; never more often than every 10 s.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING

from tui.fleet.api import Outcome
from tui.host.api import HostError, HttpAnswer, Link
from tui.profile.model import Secret, Server
from tui.sglang import http
from tui.sglang.events import HttpRead
from tui.sglang.model import Sample, Stage
from tui.sglang.state import ServerState

if TYPE_CHECKING:
    from tui.fleet.supervisor import Supervisor

PROBE_SECONDS = 10.0
_READY_PATHS = ("/ready", "/model_info", "/get_model_info")  # /ready from 0.5.20, /model_info from 0.5.6


def wants_http(state: ServerState) -> bool:
    """Whether this server's readiness must be asked for: by its profile, or because its log tells nothing."""
    if not state.alive or state.listening != "own" or state.info.ready_by == "log":
        return False
    silent = not state.log.ready and state.log.stage in (None, Stage.LAUNCHING)
    return state.info.ready_by == "http" or silent


class HttpProbe:
    """Asks one server every 10 s while it must be asked."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._task: asyncio.Task[None] | None = None
        self._before: tuple[str, http.Reading] | None = None

    def consider(self) -> None:
        """Begin to ask when that became necessary."""
        if wants_http(self._supervisor.state) and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._ask())

    def stop(self) -> None:
        if self._task:
            self._task.cancel()
            self._task = None

    async def _ask(self) -> None:
        supervisor, port = self._supervisor, self._supervisor.server.port
        while port is not None and wants_http(supervisor.state):
            ready = await self._ready(port)
            sample = await self._figures(port) if ready else None
            supervisor.apply(HttpRead(supervisor.now, ready=ready, sample=sample))
            await asyncio.sleep(PROBE_SECONDS)

    async def _ready(self, port: int) -> bool:
        """Whether one of the readiness paths says so; a server that still loads may know none of them."""
        for path in _READY_PATHS:
            try:
                answer = await self._supervisor.link.get(port, path, headers=authorization(self._supervisor.server))
            except HostError:
                return False
            ready = http.ready(path, answer.status)
            if ready is not None:
                return ready
        return False

    async def _figures(self, port: int) -> Sample | None:
        """Live figures from the best source that the server has; rates from the counters of two readings."""
        supervisor = self._supervisor
        run = supervisor.state.run
        now = supervisor.now + ((run.utc_offset or 0) if run else 0)
        for path in http.best_source(supervisor.state.log.version):
            try:
                answer = await supervisor.link.get(port, path, headers=authorization(supervisor.server))
            except HostError:
                return None
            reading = http.read(path, answer.body, now) if answer.status == 200 else None
            if reading:
                before, self._before = self._before, (path, reading)
                if before and before[0] == path:
                    return http.rate(before[1], reading, before[1].sample.at_local)
                return reading.sample
        return None


def authorization(server: Server) -> dict[str, str]:
    """The header that SGLang wants where the profile sets an API key."""
    key = server.flags.get("api-key")
    if isinstance(key, Secret):
        key = os.environ.get(key.name)
    return {"Authorization": f"Bearer {key}"} if isinstance(key, str) else {}


async def smoke_test(link: Link, server: Server) -> Outcome:
    """One short completion: its text and how long it took."""
    assert server.port is not None
    body = json.dumps({"model": server.model or "default", "prompt": "The capital of France is", "max_tokens": 16})
    headers = {"Content-Type": "application/json", **authorization(server)}
    answer = await link.post(server.port, "/v1/completions", body.encode(), headers=headers)
    return _read_completion(server.name, answer)


def _read_completion(name: str, answer: HttpAnswer) -> Outcome:
    try:
        reply = json.loads(answer.body)
        text = str(reply["choices"][0]["text"]).strip()
        tokens = int(reply["usage"]["completion_tokens"])
    except (ValueError, KeyError, IndexError, TypeError):
        return Outcome(False, f"{name}: HTTP {answer.status}: {answer.body[:200].decode(errors='replace')}")
    rate = tokens / answer.seconds if answer.seconds > 0 else 0.0
    message = f"{name}: {tokens} tokens in {answer.seconds:.2f} s ({rate:.0f} tok/s): {text[:80]!r}"
    return Outcome(answer.status == 200, message, {"text": text, "tokens": tokens, "seconds": answer.seconds})
