"""What the headless commands share: a fleet for the length of a command, narration, and the exit code."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tui.cli.asking import ask_for_hosts
from tui.cli.exits import Exit
from tui.cli.options import narrate, print_text
from tui.cli.waiting import Say, settle, tell_hosts
from tui.fleet.fleet import Fleet
from tui.profile.model import Profile, Server
from tui.report.events import json_line
from tui.report.restarts import upcoming, who_restarts
from tui.sglang import verdict
from tui.sglang.model import Phase
from tui.sglang.restarts import Restarts
from tui.sglang.state import ServerState

_KNOWN_SECONDS = 15.0  # for the log that stands on the host to be read


@dataclass
class Narrator:
    """Says what happens: one JSON object a line on stdout, or a line for people on stderr."""

    as_json: bool
    said: dict[str, set[str]] = field(default_factory=dict)  # run → phases and stages that were told of it
    restarts: dict[str, Restarts] = field(default_factory=dict)  # by server: what was told last

    def say(self, server: str, event: str, text: str, **details: object) -> None:
        if self.as_json:
            print_text(json_line(time.time(), server, event, **details))
        else:
            clock = time.strftime("%H:%M:%S")
            narrate(f"{clock}  {server:<12}  {text}")

    def follow(self, state: ServerState) -> None:
        """Say a server's phase or stage, each once per run: speculation and pools go back and forth between stages."""
        phase = verdict.phase(state)
        stage = verdict.stage(state)
        name = stage.value if phase is Phase.STARTING and stage else phase.value
        said = self.said.setdefault(state.run.run if state.run else state.info.name, set())
        if name in said:
            return
        said.add(name)
        if phase is Phase.FAILED:
            self._failed(state)
        elif phase is Phase.READY:
            self.say(state.info.name, "ready", f"ready  {state.info.url or ''}", url=state.info.url)
        elif phase is Phase.STARTING and stage:
            self.say(state.info.name, "stage", stage.value.replace("_", " "), stage=stage.value)
        else:
            self.say(state.info.name, phase.value, phase.value)

    def follow_restarts(self, state: ServerState, now: float) -> None:
        """Say what will be launched again, what was, what will not be, and when somebody else takes it over."""
        told, name = state.restarts, state.info.name
        before = self.restarts.get(name, Restarts())
        self.restarts[name] = told
        details = {"attempt": told.count + 1, "limit": told.limit, "reason": told.why}
        if told.next_at is not None and told.next_at != before.next_at:
            seconds = round(max(0.0, told.next_at - now), 1)
            self.say(name, "restart", f"{upcoming(state, now)}: {told.why}", **details, seconds=seconds)
        elif told.why and not told.pending and told.why != before.why:
            self.say(name, "not-restarted", told.why, reason=told.why)
        elif told.count > before.count:
            self.say(name, "restarted", f"restarted, {told.count} of {told.limit}", attempt=told.count)
        if told.by and (told.by, told.here) != (before.by, before.here):
            self.say(name, "restarts", who_restarts(told, now), by=told.by, here=told.here)

    def _failed(self, state: ServerState) -> None:
        failure = verdict.failure(state)
        if failure is None:
            self.say(state.info.name, "failed", "failed")
            return
        text = "\n".join(
            [f"failed: {failure.explanation}"]
            + ([f"{'':24}{failure.line.strip()[:200]}"] if failure.line.strip() else [])
            + [f"{'':24}→ {advice}" for advice in failure.advice]
        )
        self.say(
            state.info.name,
            "failed",
            text,
            kind=failure.kind.value,
            line=failure.line,
            explanation=failure.explanation,
            advice=list(failure.advice),
        )


@asynccontextmanager
async def open_fleet(
    profile: Profile,
    servers: Sequence[Server],
    say: Say,
    *,
    read_only: bool = False,
    restarts: bool = False,
    patience: float | None = None,
    waited: float | None = None,
) -> AsyncIterator[Fleet]:
    """A fleet whose hosts have answered or failed, and whose running servers are known with their log's beginning and
    end. A host that has done neither after ``patience`` seconds counts as failed. What is to be said of hosts is said
    by ``say``; ``waited``: how many seconds the command waits for one that is lost meanwhile."""
    fleet = Fleet(profile, servers, read_only=read_only, restarts=restarts)
    fleet.start()
    try:
        await settle(fleet, patience)
        await ask_for_hosts(fleet)
        await fleet.until(lambda: all(s.known for s in fleet.supervisors.values()), _KNOWN_SECONDS)
        for name, error in fleet.errors().items():
            say(name, "host", str(error), kind=error.kind.value, message=str(error))
        telling = asyncio.create_task(tell_hosts(fleet, say, waited))
        try:
            yield fleet
        finally:
            telling.cancel()
    finally:
        await fleet.close()


def say_plainly(host: str, event: str, text: str, **details: object) -> None:
    """What is to be said of a host, on stderr alone."""
    narrate(f"{host}: {text}")


def host_exit(fleet: Fleet) -> Exit:
    """``UNREACHABLE`` when any host of the fleet cannot be used."""
    return Exit.UNREACHABLE if fleet.errors() else Exit.OK


def left_out(fleet: Fleet, done: Sequence[str]) -> Exit:
    """``UNREACHABLE`` when something was done to fewer servers than there are, since their hosts did not answer: even
    if they do by now."""
    return Exit.OK if len(done) == len(fleet.supervisors) else Exit.UNREACHABLE
