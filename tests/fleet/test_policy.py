"""The restart policy as a function: which ends are followed by a launch, how soon, and when it is given up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tui.fleet.policy import REPEATS, Decision, End, Limits, decide, end_of
from tui.sglang.model import Exit, FailureKind, RunInfo, ServerInfo
from tui.sglang.state import ServerState

LIMITS = Limits(first=5.0, factor=2.0, longest=60.0, restarts=5, window=3600.0)
CRASH = End("process died", FailureKind.CHILD_DIED)
CLEAN = End("ended by itself, status 0", failed=False)
STATE = ServerState(ServerInfo("gpu0"), RunInfo("r1", 7, 100.0, ("sglang",), "/log"))


@pytest.mark.parametrize(
    ("policy", "end", "again"),
    [
        ("never", CRASH, False),
        ("on-failure", CRASH, True),
        ("on-failure", CLEAN, False),
        ("always", CRASH, True),
        ("always", CLEAN, True),
        ("always", replace(CLEAN, asked=True), False),
        ("on-failure", replace(CRASH, asked=True), False),
    ],
)
def test_what_is_launched_again(policy: str, end: End, again: bool) -> None:
    decision = decide(policy, [end], LIMITS)
    assert (decision.delay is not None) is again
    assert bool(decision.why) is again, "what nobody expects to be restarted needs no explanation"


def test_delays_grow_to_their_cap_and_then_it_is_given_up_with_the_reasons() -> None:
    other = End("scheduler: boom", FailureKind.SCHEDULER_EXCEPTION)
    ends = [CRASH, CRASH, other, CRASH, CRASH]
    assert [decide("on-failure", ends[:n], LIMITS).delay for n in range(1, 6)] == [5.0, 10.0, 20.0, 40.0, 60.0]
    assert [decide("on-failure", ends[:n], LIMITS).made for n in range(1, 6)] == [0, 1, 2, 3, 4]
    assert decide("on-failure", [*ends, other], LIMITS) == Decision(
        None, "given up after 5 restarts: 4 × process died; 2 × scheduler: boom", 5
    )


def test_a_server_that_served_long_begins_anew() -> None:
    crashes = [CRASH] * 5
    assert decide("on-failure", [*crashes, replace(CRASH, served=3600.0)], LIMITS).delay is None
    anew = decide("on-failure", [*crashes, replace(CRASH, served=3601.0)], LIMITS)
    assert (anew.delay, anew.made) == (5.0, 0), "the count agrees with the delay"
    twice = [*crashes, replace(CRASH, served=2000.0), replace(CRASH, served=2000.0)]
    assert decide("on-failure", twice, LIMITS).delay == 10.0, "its two last runs served longer than the window"


@pytest.mark.parametrize("kind", sorted(REPEATS))
def test_what_would_fail_again_is_not_tried_again(kind: FailureKind) -> None:
    for policy in ("on-failure", "always"):
        decision = decide(policy, [End("that", kind)], LIMITS)
        assert decision == Decision(None, "not restarted, since it would fail again: that")
    assert decide("on-failure", [End("that", kind, served=1.0)], LIMITS).delay == 5.0, "it had started with these flags"


def test_the_end_of_a_run() -> None:
    crash = end_of(replace(STATE, exit=Exit(None, "SIGKILL"), alive=False, ready_at=200.0), 260.0)
    assert (crash.kind, crash.served, crash.failed, crash.asked) == (FailureKind.CHILD_DIED, 60.0, True, False)
    clean = end_of(replace(STATE, exit=Exit(0), alive=False), 260.0)
    assert (clean.failed, clean.reason) == (False, "ended by itself, status 0")
    lost = end_of(replace(STATE, vanished=True, alive=False), 260.0)
    assert lost.failed and "reboot" in lost.reason
    asked = end_of(replace(STATE, exit=Exit(None, "SIGKILL"), alive=False, stop_asked=250.0), 260.0)
    assert asked.asked
