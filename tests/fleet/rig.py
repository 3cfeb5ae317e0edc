"""A fleet of simulated servers on this machine: real processes through the real agent, over a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.ports import free_port
from tui.fleet.api import Kill
from tui.fleet.fleet import Fleet
from tui.fleet.places import Places
from tui.profile.load import loads
from tui.profile.model import Profile
from tui.sglang import verdict
from tui.sglang.model import Phase

ROOT = Path(__file__).parents[2]
DEADLINE = 60.0  # seconds for anything to happen; a broken fleet must not hang the suite


def profile(folder: Path, scenarios: Sequence[str], *, flags: Sequence[str] = (), **keys: object) -> Profile:
    """A profile of ``local`` servers gpu0, gpu1, … that play ``scenarios`` fast; ``keys`` go to every server."""
    servers = {}
    for number, scenario in enumerate(scenarios):
        command = [sys.executable, "-m", "tui.demo.server", "--scenario", scenario, "--speed", "50", *flags]
        servers[f"gpu{number}"] = {
            "command": [*command, "--model-path", "/models/tiny", "--port", "{port}"],
            "port": free_port(),
            "gpus": [number],
            **keys,
        }
    text = {
        "name": "rig",
        "hosts": {"here": {"ssh": "local", "python": sys.executable, "state_dir": str(folder / "state")}},
        "defaults": {"host": "here", "env": {"PYTHONPATH": str(ROOT)}, "stop_grace": "5s"},
        "servers": servers,
    }
    return loads(json.dumps(text))


@asynccontextmanager
async def session(profile: Profile, folder: Path, **options: Any) -> AsyncIterator[Fleet]:
    """One session of hcs-tui on ``profile``: connected, and all that runs adopted. Ends nothing.

    ``options`` are the fleet's.
    """
    fleet = Fleet(profile, places=Places(folder / "spool", folder / "history"), **options)
    fleet.start()
    try:
        await fleet.settled()
        assert await fleet.until(lambda: all(s.known for s in fleet.supervisors.values()), DEADLINE)
        yield fleet
    finally:
        await fleet.close()


@asynccontextmanager
async def running(profile: Profile, folder: Path, **options: Any) -> AsyncIterator[Fleet]:
    """A session at whose end every server is killed."""
    async with session(profile, folder, **options) as fleet:
        try:
            yield fleet
        finally:
            for name in fleet.supervisors:
                await fleet.act(Kill(name, 0.0))


async def reach(fleet: Fleet, server: str, *phases: Phase) -> Phase:
    """Wait until ``server`` is in one of ``phases``, and return it."""
    state = fleet.supervisors[server]
    assert await fleet.until(lambda: verdict.phase(state.state) in phases, DEADLINE), verdict.phase(state.state)
    return verdict.phase(state.state)
