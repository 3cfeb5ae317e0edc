"""A launch or restart that is to come, and who restarts, in words."""

from __future__ import annotations

import time

from tui.report.units import span
from tui.sglang.restarts import Restarts
from tui.sglang.state import ServerState


def upcoming(state: ServerState, now: float) -> str:
    """What will be done with the server by itself, and when: ``restart 2 of 5 in 12s``; else empty."""
    restarts = state.restarts
    if state.launch_at is not None:
        return f"waits its turn, launches in {span(state.launch_at - now)}"
    number = f"restart {restarts.count + 1} of {restarts.limit}"
    if restarts.ends_at is not None:
        return f"ends what is left of it in {span(restarts.ends_at - now)}, then {number}"
    if not restarts.pending or restarts.next_at is None:
        return ""
    when = f"in {span(restarts.next_at - now)}" if restarts.next_at > now else "now"
    return f"{number} {when}" if restarts.here else f"{number} {when}, by {restarts.by}"


def who_restarts(restarts: Restarts, now: float) -> str:
    """``restarts on failure, by you since 02:11, 2 so far``; where it has ended for good, that it does so from the next
    launch on. Empty without a policy."""
    if restarts.policy == "never":
        return ""
    words = [f"restarts {'on failure' if restarts.policy == 'on-failure' else restarts.policy}"]
    if restarts.why and not restarts.pending:
        words = [f"once it is launched again, {words[0]}"]
    if restarts.by is not None:
        words.append(f"by {'you' if restarts.here else restarts.by}" if restarts.by else "but no open session does it")
    if restarts.since is not None:
        words[-1] += f" since {_clock(restarts.since, now)}"
    if restarts.count:
        words.append(f"{restarts.count} so far")
    return ", ".join(words)


def restart_remarks(state: ServerState, now: float) -> list[str]:
    """What is to be said of a server's launches to come: the next one with its reason, or why there is none; who."""
    restarts = state.restarts
    next_one = upcoming(state, now)
    if restarts.pending:
        next_one = f"{next_one or 'waits for its restart'}, since it ended: {restarts.why}"
    return [words for words in (next_one or restarts.why, who_restarts(restarts, now)) if words]


def _clock(at: float, now: float) -> str:
    """The time of day on this machine; with its date where that is another one."""
    then = time.localtime(at)
    return time.strftime("%H:%M" if then[:3] == time.localtime(now)[:3] else "%F %H:%M", then)
