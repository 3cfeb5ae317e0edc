"""Ends as they are told afterwards: whether the keeper saw them, what has outlived the server, who sent what."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.host.links import Ear, follow, python, refusal
from tests.processes import is_running, kill_now
from tests.waiting import eventually
from tui.host.api import RunRecord, RunWatch
from tui.host.link import HostLink

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
DAEMON = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(os.getpid(), flush=True)
    os.execve("/bin/sleep", ["sleep", "600"], {})
os.wait()
time.sleep(600)
"""
ON_TERM = "import signal, os, time; signal.signal(signal.SIGTERM, %s); print('up', flush=True); time.sleep(600)"
OWN_SIGKILL = ON_TERM % "lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
STUBBORN = ON_TERM % "signal.SIG_IGN"


def keeper_of(run: RunRecord) -> int:
    return int(json.loads((Path(run.log).parent / "process.json").read_text())["keeper"]["pid"])


async def record_of(link: HostLink, run: str) -> RunRecord:
    return next(record for record in await link.runs() if record.run == run)


def warned(ear: Ear, run: str) -> list[tuple[str, ...]]:
    return [seen.warnings for seen in ear.of(RunWatch) if seen.run == run]


@pytest.mark.parametrize("code", ["raise SystemExit(0)", "raise SystemExit(3)", SLEEP])
async def test_a_proper_end_is_never_blamed_on_the_keeper(local: HostLink, code: str) -> None:
    ear = Ear(local)
    run = await follow(local, python(code))
    if code == SLEEP:
        assert run.pid
        await ear.log_until(run.run, b"up")
        kill_now(run.pid)
    assert (await ear.ended(run.run)).exit is not None
    before = len(warned(ear, run.run))
    await local.watch(run.run)  # as by a session that comes later
    other = await follow(local, python(SLEEP, server="other"))  # which is looked at together with whoever is watched
    await ear.until(lambda: len(warned(ear, other.run)) >= 3)
    assert len(warned(ear, run.run)) == before and not any(warned(ear, run.run))
    assert (await record_of(local, run.run)).fate == "ended"


async def test_an_end_that_is_about_to_be_written_is_not_blamed_on_the_keeper(local: HostLink) -> None:
    run = await local.launch(python(SLEEP))
    assert run.pid
    keeper = keeper_of(run)
    os.kill(keeper, signal.SIGSTOP)
    kill_now(run.pid)
    await eventually(lambda: not is_running(run.pid or 0))
    record = await record_of(local, run.run)
    assert (record.alive, record.fate, record.exit) == (False, "ended", None)
    os.kill(keeper, signal.SIGCONT)
    await eventually(lambda: not is_running(keeper))
    record = await record_of(local, run.run)
    assert record.fate == "ended" and record.exit and record.exit.signal == "SIGKILL"


async def test_what_outlives_a_server_is_named_until_it_is_gone(local: HostLink) -> None:
    ear = Ear(local)
    run = await follow(local, python(DAEMON))
    await ear.log_until(run.run, b"\n")
    daemon = int(ear.logs[run.run])
    assert run.pid
    kill_now(run.pid)
    ended = await ear.ended(run.run)
    assert ended.exit and ended.exit.left == (daemon,)
    named = f"pid {daemon} ("
    await ear.until(lambda: any(named in word for seen in warned(ear, run.run) for word in seen))
    exit = (await record_of(local, run.run)).exit
    assert exit and exit.left == (daemon,) and named in exit.leftover and "down" in exit.leftover
    refused = await refusal(local, python(DAEMON))
    assert named in refused.message and "hcs-tui down" in refused.remedy
    rows = {row[0]: row[1:] for row in await local.check(python(DAEMON))}
    assert rows["running"][0] == "fail" and named in rows["running"][1]
    kill_now(daemon)
    await ear.until(lambda: warned(ear, run.run)[-1] == ())
    exit = (await record_of(local, run.run)).exit
    assert exit and (exit.left, exit.leftover) == ((), "")
    assert (await local.launch(python(SLEEP))).alive


async def test_a_session_that_comes_later_hears_at_once_what_is_left(local: HostLink) -> None:
    ear = Ear(local)
    run = await follow(local, python(DAEMON))
    await ear.log_until(run.run, b"\n")
    daemon = int(ear.logs[run.run])
    assert run.pid
    kill_now(run.pid)
    await ear.ended(run.run)
    ear.events.clear()
    await local.watch(run.run)
    ended = await ear.ended(run.run)
    assert ended.exit and f"pid {daemon} (" in ended.exit.leftover


def _kill_by_hand(run: RunRecord) -> None:
    assert run.pid
    kill_now(run.pid)


@pytest.mark.parametrize(
    ("code", "grace", "by_hand", "unforced"),
    [
        (OWN_SIGKILL, 60.0, None, True),  # SGLang ends itself this way
        (STUBBORN, 0.2, None, False),
        (SLEEP, 0.0, _kill_by_hand, False),  # nobody asked
    ],
)
async def test_a_sigkill_is_told_as_forced_only_where_it_was(
    local: HostLink, code: str, grace: float, by_hand: Callable[[RunRecord], None] | None, unforced: bool
) -> None:
    ear = Ear(local)
    run = await follow(local, python(code))
    await ear.log_until(run.run, b"up")
    if by_hand:
        by_hand(run)
    else:
        report = await local.kill(run.run, grace)
        assert report.signals == (("SIGTERM",) if unforced else ("SIGTERM", "SIGKILL"))
    ended = await ear.ended(run.run)
    exit = (await record_of(local, run.run)).exit
    assert ended.exit and exit and ended.exit.signal == exit.signal == "SIGKILL"
    assert ended.exit.unforced is exit.unforced is unforced
