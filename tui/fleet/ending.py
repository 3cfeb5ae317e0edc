"""Ending what runs on a host: over a link that may go meanwhile, and while a launch is still under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from tui.fleet import translate
from tui.fleet.api import PATIENCE, Outcome
from tui.host.api import HostError, HostErrorKind, KillReport, Link
from tui.profile.model import Server

PAUSE = 0.2  # seconds between two questions


async def end(link: Link, run: str, server: Server, grace: float | None, patience: float = PATIENCE) -> KillReport:
    """Kill ``run``, after ``grace`` or else the server's own. A kill that was asked is carried through on the host:
    when the link goes before the report comes, that is asked for once the link is back, within ``patience`` seconds.
    Raises ``HostError``."""
    lost: float | None = None
    grace = server.stop_grace if grace is None else grace
    while True:
        try:
            return await link.kill(run, grace, who=translate.who(), again=lost is not None)
        except HostError as error:
            now = asyncio.get_running_loop().time()
            lost = now if lost is None else lost
            if error.kind is not HostErrorKind.UNREACHABLE:
                raise
            if now > lost + patience:
                raise HostError(
                    HostErrorKind.UNREACHABLE,
                    f"{link.name} was lost and did not come back within {patience:g} s: what became of the kill is not"
                    " known here.",
                    "A host that was asked carries it through by itself; ask again when it is back.",
                ) from error
        await asyncio.sleep(PAUSE)


async def end_launch(
    link: Link, profile: str, server: Server, grace: float | None, patience: float, launching: Callable[[], bool]
) -> KillReport | None:
    """End what a launch that is under way has started so far, its setup lines for one, as soon as there is something;
    ``None`` when the launch has come to its end by itself. Raises ``HostError``."""
    while launching():
        for record in await link.runs(profile, server.name):
            if record.alive:
                return await end(link, record.run, server, grace, patience)
        await asyncio.sleep(PAUSE)
    return None


def after(ended: Outcome | None, launched: Outcome) -> Outcome:
    """A launch that came after an end: the proof that nothing was left is told with it."""
    if ended is None:
        return launched
    details = {**launched.details, "ended": ended.details}
    return replace(launched, message=f"{ended.message}; {launched.message}", details=details)
