"""What a command waits for, said on stderr: at first, and again from time to time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tui.cli.options import narrate
from tui.fleet.api import HostState
from tui.fleet.fleet import Fleet
from tui.host.wording import FINAL
from tui.profile.model import Host
from tui.report.units import span

T = TypeVar("T")
Say = Callable[..., None]  # of a host: its name, what happened, the same in words, and details by name

PATIENCE_SECONDS = 15.0  # for a host to answer, where a command does not wait for as long as it takes
QUIET_SECONDS = 1.0  # before it is said what we wait for
AGAIN_SECONDS = 10.0  # before it is said again
RARELY_SECONDS = 600.0  # between two words on a host that stays away: each wait is twice the one before
_LOOK_SECONDS = 0.25


def answer_within(timeout: float | None) -> float | None:
    """Seconds for the hosts to answer of a command that may take ``timeout``; ``None``: as long as it takes."""
    return None if timeout is None else max(timeout, PATIENCE_SECONDS)


def connecting(name: str, address: str, seconds: float = 0.0) -> str:
    """That a host has not answered yet."""
    return f"connecting to {name} ({address}) …" + (f" for {span(seconds)}" if seconds >= AGAIN_SECONDS else "")


async def heard(host: Host, work: Awaitable[T], hush: Callable[[], bool] = lambda: False) -> T:
    """``work`` with a host, which is named after a second and then every ten, but for while ``hush`` holds: a question
    stands on the terminal."""
    task = asyncio.ensure_future(work)
    clock = asyncio.get_running_loop().time
    began, pause = clock(), QUIET_SECONDS
    try:
        while not (await asyncio.wait([task], timeout=pause))[0]:
            if not hush():
                narrate(connecting(host.name, host.ssh, clock() - began))
            pause = AGAIN_SECONDS
        return await task
    finally:
        task.cancel()


async def settle(fleet: Fleet, patience: float | None = None) -> None:
    """Every host has answered or failed; one that has done neither after ``patience`` seconds counts as failed."""
    settling = asyncio.ensure_future(fleet.settled())
    clock = asyncio.get_running_loop().time
    began, pause = clock(), QUIET_SECONDS
    try:
        while True:
            left = None if patience is None else max(0.0, began + patience - clock())
            done, _ = await asyncio.wait([settling], timeout=pause if left is None else min(pause, left))
            if done or left == 0.0:
                break
            for watch in fleet.connecting():
                narrate(connecting(watch.state.name, watch.state.address, clock() - began))
            pause = AGAIN_SECONDS
        for watch in fleet.connecting():
            watch.give_up(patience or 0.0)
    finally:
        settling.cancel()


async def tell_hosts(fleet: Fleet, say: Say, patience: float | None = None) -> None:
    """Say of each host that goes out of reach from now on that it does, how long it has been waited for, and when it is
    back; for ever. ``patience``: seconds after which the command waits for it no longer."""
    clock = asyncio.get_running_loop().time
    lost: dict[str, tuple[float, float]] = {host.name: (clock(), float("inf")) for host in fleet.hosts() if _away(host)}
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        for host in fleet.hosts():
            since, due = lost.get(host.name, (clock(), 0.0))
            if not _away(host):
                if lost.pop(host.name, None):
                    say(host.name, "host-back", "is back", seconds=round(clock() - since, 1))
            elif clock() >= due:
                again = _say_away(fleet, host, clock() - since, say, patience)
                lost[host.name] = since, clock() + again


def _away(host: HostState) -> bool:
    return host.phase in ("unreachable", "refused")


def _say_away(fleet: Fleet, host: HostState, seconds: float, say: Say, patience: float | None) -> float:
    """Seconds after which it is to be said again."""
    error = fleet.errors()[host.name]
    details: dict[str, object] = {"kind": error.kind.value, "message": str(error), "seconds": round(seconds, 1)}
    if error.kind in FINAL:
        say(host.name, "host", host.message, **details)
        return float("inf")
    if seconds < AGAIN_SECONDS:
        most = f", {span(patience)} at most" if patience is not None else ""
        words = f"{host.message} Waiting for it to come back{most}."
    else:
        most = f" of {span(patience)}" if patience is not None else ""
        words = f"still out of reach after {span(seconds)}{most}: {error.message}"
    say(host.name, "host", words, **details)
    return min(max(AGAIN_SECONDS, seconds), RARELY_SECONDS)
