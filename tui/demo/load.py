"""A load generator for the demo: requests to every ready server, more and fewer in turn, so that figures move."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import Sequence

from tui.demo.fleet import MODEL, DemoServer
from tui.demo.http import ask

_ADDRESS = "127.0.0.1"
_LOOK_SECONDS = 0.5
_PERIOD_SECONDS = 48.0  # of the wave
_MOST = {"hicache": 12, "mtp": 6, "plain": 16}  # requests at once, at the crest
_SYSTEM = "You answer questions about a code base. Read the files below and answer briefly. "


async def keep_busy(servers: Sequence[DemoServer]) -> None:
    """Send requests until cancelled. Servers that are not up are asked again; those that fail never are."""
    async with asyncio.TaskGroup() as group:
        for server in servers:
            if server.scenario in _MOST:
                group.create_task(_one_server(server))


async def _one_server(server: DemoServer) -> None:
    """Hold the number of requests in flight at the wave's height, which each server rides at its own phase."""
    rng = random.Random(server.seed)
    loop = asyncio.get_running_loop()
    flying: set[asyncio.Task[bool]] = set()
    began = loop.time()
    while True:
        wave = 0.5 - 0.5 * math.cos(2 * math.pi * ((loop.time() - began) / _PERIOD_SECONDS + 0.12 + server.seed * 0.21))
        most = _MOST[server.scenario]
        wanted = 1 + round((most - 1) * (0.25 + 0.75 * wave))
        up = bool(flying) or await _is_up(server.port)
        if up:
            for _ in range(min(2, wanted - len(flying))):
                flying.add(asyncio.create_task(_request(server, rng)))
        done, flying = (await asyncio.wait(flying, timeout=_LOOK_SECONDS)) if flying else (set(), flying)
        if not done or not all(task.result() for task in done):
            await asyncio.sleep(0 if flying and not done else _LOOK_SECONDS)


async def _is_up(port: int) -> bool:
    """Whether something accepts on ``port``, without asking it anything."""
    try:
        _, writer = await asyncio.open_connection(_ADDRESS, port)
    except OSError:
        return False
    writer.close()
    return True


async def _request(server: DemoServer, rng: random.Random) -> bool:
    """One request of a conversation that often begins as others did; whether it was answered."""
    file = "".join(rng.choices("abcdefghijklmnop ", k=64)) * rng.randint(20, 110)
    prompt = _SYSTEM * 12 + f"Conversation {rng.randrange(6)}. " + file + f"Question {rng.random()}?"
    if rng.random() < 0.35:
        prompt = _SYSTEM * rng.randint(20, 160) + f"Question {rng.random()}?"
    body = json.dumps({"model": MODEL, "prompt": prompt, "max_tokens": rng.randint(80, 420)}).encode()
    try:
        status, _ = await ask(_ADDRESS, server.port, "POST", "/v1/completions", body)
    except OSError:
        return False
    return status == 200
