"""Launching without a screen: what ``up`` and ``relaunch`` share."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Sequence

from tui.cli.exits import Exit
from tui.cli.options import narrate, print_text
from tui.cli.session import Narrator, host_exit, left_out, open_fleet
from tui.cli.waiting import answer_within
from tui.fleet.api import Launch, Outcome
from tui.fleet.fleet import Fleet
from tui.fleet.outcome import decided, settled
from tui.fleet.supervisor import Supervisor
from tui.profile.model import Profile, Server
from tui.report.events import heartbeat_text, json_line
from tui.report.json import report
from tui.report.restarts import upcoming
from tui.report.text import status_table
from tui.sglang import verdict
from tui.sglang.events import Event, Queued, RestartsTold
from tui.sglang.model import Phase
from tui.sglang.state import ServerState

_HEARTBEAT_SECONDS = 30.0


async def launch_and_wait(
    fleet: Fleet, outcomes: dict[str, Outcome], narrator: Narrator, timeout: float | None
) -> Exit:
    """Wait for the servers of ``outcomes`` and say what they do; a refused launch has failed already."""
    names = list(outcomes)
    for name, outcome in outcomes.items():
        if outcome.ok:
            event = "already" if outcome.details.get("already") else "launched"
            narrator.say(name, event, outcome.message, **outcome.details)
        elif verdict.phase(fleet.supervisors[name].state) is not Phase.FAILED:
            narrator.say(name, "refused", outcome.message, message=outcome.message)
        for note in fleet.supervisors[name].state.notes:
            narrator.say(name, "note", note, note=note)
    waited = [name for name in names if outcomes[name].ok]
    beats = asyncio.create_task(_heartbeats(fleet, waited, narrator))
    fleet.listeners.append(lambda supervisor, _before, _event: narrator.follow(supervisor.state))
    for name in names:
        narrator.follow(fleet.supervisors[name].state)
    try:
        await fleet.until(lambda: _all_decided(fleet, waited), _seconds(fleet, waited, timeout))
    finally:
        beats.cancel()
        fleet.listeners.pop()
    codes = [_exit_of(fleet, name) if outcomes[name].ok else Exit.FAILED for name in names]
    unreachable = host_exit(fleet)
    if unreachable is not Exit.OK:  # their servers did not fail: nobody knows
        lost = {n for n in names if fleet.host_of(n).error}
        codes = [code for name, code in zip(names, codes, strict=True) if name not in lost]
    return Exit.worst([*codes, unreachable])


def _all_decided(fleet: Fleet, names: Sequence[str]) -> bool:
    return all(decided(fleet.supervisors[n].state) or fleet.host_of(n).gone for n in names)


def _seconds(fleet: Fleet, names: Sequence[str], timeout: float | None) -> float | None:
    """The caller's timeout, else the longest of the profile's deadlines."""
    if timeout is not None or not names:
        return timeout
    return max(fleet.supervisors[n].server.ready_timeout for n in names)


def _exit_of(fleet: Fleet, name: str) -> Exit:
    match verdict.phase(fleet.supervisors[name].state):
        case Phase.READY:
            return Exit.OK
        case Phase.STARTING | Phase.STOPPING:
            return Exit.UNDECIDED
        case _:
            return Exit.FAILED


async def _heartbeats(fleet: Fleet, names: Sequence[str], narrator: Narrator) -> None:
    """Every 30 s a line for each server that still starts: stage, age, pinned memory, last line."""
    while True:
        await asyncio.sleep(_HEARTBEAT_SECONDS)
        for name in names:
            state = fleet.supervisors[name].state
            if verdict.phase(state) is Phase.STARTING:
                text, details = heartbeat_text(state, time.time())
                narrator.say(name, "heartbeat", text, **details)


def summarise(fleet: Fleet, as_json: bool) -> None:
    """The last word: the reports, as the last JSON line or as a table."""
    now = time.time()
    if as_json:
        print_text(json_line(now, None, "summary", servers=[report(s, now) for s in fleet.states()]))
    else:
        print_text(status_table(fleet.states(), now))


async def headless_demo(profile: Profile, seconds: float) -> Exit:
    """Launch the demo's servers and wait until they are settled, at most ``seconds``: ``OK`` whatever their phases."""
    narrator = Narrator(as_json=False)
    async with open_fleet(profile, profile.servers, narrator.say) as fleet:
        fleet.listeners.append(lambda supervisor, _before, _event: narrator.follow(supervisor.state))
        await asyncio.gather(*(fleet.act(Launch(name)) for name in fleet.supervisors))
        await fleet.until(lambda: settled(fleet.states(), time.time()), seconds)
        summarise(fleet, as_json=False)
        return host_exit(fleet)


async def up(profile: Profile, servers: Sequence[Server], timeout: float | None, as_json: bool, stay: bool) -> Exit:
    narrator = Narrator(as_json)
    patience = answer_within(timeout)
    async with open_fleet(profile, servers, narrator.say, restarts=stay, patience=patience) as fleet:
        _tell_restarts(fleet, narrator)
        reachable = [n for n in fleet.supervisors if not fleet.host_of(n).error]
        started = await asyncio.gather(*(fleet.act(Launch(name)) for name in reachable))
        outcomes = dict(zip(reachable, started, strict=True))
        code = Exit.worst([await launch_and_wait(fleet, outcomes, narrator, timeout), left_out(fleet, reachable)])
        summarise(fleet, as_json)
        if stay:
            fleet.listeners.append(lambda supervisor, _before, _event: narrator.follow(supervisor.state))
            await asyncio.Event().wait()
        return code


async def stay_up(profile: Profile, servers: Sequence[Server], timeout: float | None, as_json: bool) -> Exit:
    """``up --stay`` until SIGTERM, which is how a service manager ends it well; servers run on."""
    work = asyncio.ensure_future(up(profile, servers, timeout, as_json, stay=True))
    ended = False

    def end() -> None:
        nonlocal ended
        ended = True
        work.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    try:
        return await work
    except asyncio.CancelledError:
        if not ended:
            raise
        narrate("ended by SIGTERM; servers run on")
        return Exit.OK


def _tell_restarts(fleet: Fleet, narrator: Narrator) -> None:
    def told(supervisor: Supervisor, _before: ServerState, event: Event) -> None:
        if isinstance(event, RestartsTold):
            narrator.follow_restarts(supervisor.state, time.time())
        elif isinstance(event, Queued) and event.due is not None:
            text = upcoming(supervisor.state, time.time())
            narrator.say(supervisor.server.name, "queued", text, seconds=round(event.due - event.at, 1))

    fleet.listeners.append(told)
    for state in fleet.states():
        narrator.follow_restarts(state, time.time())
