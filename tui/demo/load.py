"""A load generator for the demo: requests to every ready server, more and fewer in turn, so that figures move."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections import deque
from collections.abc import Sequence
from enum import Enum

from tui.demo.fleet import MODEL, DemoServer
from tui.demo.http import DRAINING, ask

_ADDRESS = "127.0.0.1"
_LOOK_SECONDS = 0.5
_PERIOD_SECONDS = 48.0  # of the wave
_MOST = {"hicache": 12, "mtp": 6, "plain": 16, "host-memory": 12}  # requests at once, at the crest
_LONGEST = 4 * 15_000  # characters of a prompt
_SYSTEM = "You answer questions about a code base. Read the files below and answer briefly. " * 10


class Reply(Enum):
    """What became of a request. A draining server would never end while requests keep coming."""

    ANSWERED = "answered"
    FAILED = "failed"
    DRAINING = "draining"


async def keep_busy(servers: Sequence[DemoServer]) -> None:
    """Send requests until cancelled. Servers that are not up are asked again."""
    async with asyncio.TaskGroup() as group:
        for server in servers:
            group.create_task(_one_server(server))


async def _one_server(server: DemoServer) -> None:
    """Hold the number of requests in flight at the wave's height, which each server rides at its own phase."""
    rng = random.Random(server.seed)
    most = _MOST[server.scenario]
    talks = Talks(rng, most + 4)
    loop = asyncio.get_running_loop()
    flying: set[asyncio.Task[Reply]] = set()
    resting = False
    began = loop.time()
    while True:
        wave = 0.5 - 0.5 * math.cos(2 * math.pi * ((loop.time() - began) / _PERIOD_SECONDS + 0.12 + server.seed * 0.21))
        wanted = 1 + round((most - 1) * (0.25 + 0.75 * wave))
        up = bool(flying) or await _is_up(server.port)
        if up and not resting:
            for _ in range(min(2, wanted - len(flying))):
                flying.add(asyncio.create_task(_request(server, rng, talks)))
        done, flying = (await asyncio.wait(flying, timeout=_LOOK_SECONDS)) if flying else (set(), flying)
        replies = {task.result() for task in done}
        resting = Reply.DRAINING in replies or (resting and await _is_up(server.port))
        if replies != {Reply.ANSWERED}:
            await asyncio.sleep(0 if flying and not done else _LOOK_SECONDS)


async def _is_up(port: int) -> bool:
    """Whether something accepts on ``port``, without asking it anything."""
    try:
        _, writer = await asyncio.open_connection(_ADDRESS, port)
    except OSError:
        return False
    writer.close()
    return True


async def _request(server: DemoServer, rng: random.Random, talks: Talks) -> Reply:
    """One turn of one conversation."""
    body = {"model": MODEL, "prompt": talks.turn(), "max_tokens": rng.randint(80, 300)}
    try:
        status, headers, _ = await ask(_ADDRESS, server.port, "POST", "/v1/completions", json.dumps(body).encode())
    except OSError:
        return Reply.FAILED
    if DRAINING.encode() in headers:
        return Reply.DRAINING
    return Reply.ANSWERED if status == 200 else Reply.FAILED


class Talks:
    """Conversations that go on: each turn is all that was said before and something new, so most of it is cached."""

    def __init__(self, rng: random.Random, count: int) -> None:
        self._rng = rng
        self._talks = deque(self._opening(index) for index in range(count))

    def turn(self) -> str:
        """The prompt of the next conversation's next turn. A conversation that grew long begins anew."""
        talk = self._talks.popleft()
        talk += self._text(self._rng.randint(200, 1400))
        self._talks.append(talk if len(talk) < _LONGEST else self._opening(self._rng.randrange(1 << 30)))
        return talk

    def _opening(self, index: int) -> str:
        return f"{_SYSTEM}Conversation {index}.\n" + self._text(self._rng.randint(600, 2400))

    def _text(self, tokens: int) -> str:
        """Text of about so many tokens that nobody has sent before."""
        line = f"{self._rng.getrandbits(64):016x} and what follows from it; "
        return line * (4 * tokens // len(line) + 1)
