"""A long log that stands on the host: its head and end are known at once, its middle soon, and nothing is lost."""

# small files of the test
from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.fleet.rig import DEADLINE
from tests.ports import free_port
from tui.fleet import logreader
from tui.fleet.api import Kill, Launch
from tui.fleet.fleet import Fleet
from tui.fleet.logreader import LogReader
from tui.fleet.places import Places
from tui.fleet.supervisor import Supervisor
from tui.profile.load import loads
from tui.profile.model import Profile
from tui.report.json import report
from tui.report.text import remarks
from tui.sglang import verdict
from tui.sglang.facts import read
from tui.sglang.model import ServerInfo, Stage
from tui.sglang.parser import LogParser
from tui.sglang.state import ServerState

STARTUP = b"""[2026-11-30 10:00:00] server_args=ServerArgs(model_path='/models/tiny', tp_size=1)
[2026-11-30 10:00:05] Init torch distributed begin.
[2026-11-30 10:00:06] Load weight begin. avail mem=78.90 GB
[2026-11-30 10:00:20] KV Cache is allocated. #tokens: 147456, K size: 4.51 GB, V size: 4.51 GB
[2026-11-30 10:00:30] max_total_num_tokens=147456, chunked_prefill_size=8192, max_running_requests=9, context_len=262144
[2026-11-30 10:00:40] The server is fired up and ready to roll!
"""
DECODE = (
    b"[2026-11-30 10:%02d:%02d] Decode batch. #running-req: 48, #token: 123456, token usage: 0.81, "
    b"gen throughput (token/s): %d.25, #queue-req: 12, \n"
)
CLUE = b"""[2026-11-30 10:30:00] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/srt/managers/scheduler.py", line 3000, in run_scheduler_process
    scheduler.event_loop_overlap()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB
"""
SERVER = """
import sys, time
with open(sys.argv[1], "rb") as log:
    sys.stdout.buffer.write(log.read())
sys.stdout.buffer.flush()
time.sleep(600)
"""


def batches(first: int, last: int) -> bytes:
    return b"".join(DECODE % (1 + n // 1200 % 59, n // 20 % 60, n % 500) for n in range(first, last))


LOG = STARTUP + batches(0, 14_000) + CLUE + batches(14_000, 28_000)


def profile(folder: Path, *logs: bytes) -> Profile:
    """Servers that write their log at once and live on."""
    servers = {}
    for number, log in enumerate(logs):
        (folder / f"log{number}").write_bytes(log)
        command = [sys.executable, "-c", SERVER, str(folder / f"log{number}")]
        servers[f"gpu{number}"] = {"command": command, "port": free_port()}
    hosts = {"here": {"ssh": "local", "python": sys.executable, "state_dir": str(folder / "state")}}
    text = {"name": "rig", "hosts": hosts, "defaults": {"host": "here", "stop_grace": "5s"}, "servers": servers}
    return loads(json.dumps(text))


@asynccontextmanager
async def session(rig: Profile, spool: Path) -> AsyncIterator[Fleet]:
    fleet = Fleet(rig, places=Places(spool, spool / "history"))
    fleet.start()
    try:
        await fleet.settled()
        yield fleet
    finally:
        await fleet.close()


def is_whole(supervisor: Supervisor) -> bool:
    return supervisor.state.log.size == len(LOG) and not supervisor.state.log.missing


@asynccontextmanager
async def written(rig: Profile, folder: Path) -> AsyncIterator[None]:
    """The servers of ``rig`` live, and their logs stand on the host."""
    async with session(rig, folder / "first") as fleet:
        try:
            for name, supervisor in fleet.supervisors.items():
                assert (await fleet.act(Launch(name))).ok
                assert await fleet.until(partial(is_whole, supervisor), DEADLINE)
            yield
        finally:
            for name in fleet.supervisors:
                await fleet.act(Kill(name, 0.0))


async def test_head_and_end_first_then_the_whole_as_if_read_in_order(tmp_path: Path) -> None:
    rig = profile(tmp_path, LOG)
    async with written(rig, tmp_path), session(rig, tmp_path / "second") as fleet:
        supervisor = fleet.supervisors["gpu0"]
        sketches = []
        fleet.listeners.append(lambda *_: sketches.append(supervisor.state))
        assert await fleet.until(lambda: supervisor.known, DEADLINE)
        assert await fleet.until(lambda: supervisor.state.log.size == len(LOG), DEADLINE)
        assert await fleet.until(lambda: not supervisor.state.log.missing, DEADLINE)
        whole = replace(read([LOG]), series=())
        assert replace(supervisor.state.log, series=()) == whole and whole.failure and whole.fatal
        assert tuple(supervisor.state.log.series) == tuple(read([LOG]).series)
        sketched = [s.log for s in sketches if s.log.missing]
        assert sketched, "the log is long enough for its middle to come later"
        for log in sketched:
            assert log.ready and log.pools == whole.pools and log.failure is None
            assert log.lines < whole.lines
        assert [log.missing for log in sketched] == sorted((log.missing for log in sketched), reverse=True)
        assert sketched[-1].latest == whole.latest and sketched[-1].last_line == whole.last_line
        path = supervisor.log_path
        assert path and path.read_bytes() == LOG and not list(path.parent.glob("*.tail-*"))


async def test_while_the_middle_is_missing_the_end_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = profile(tmp_path, LOG)
    from tui.fleet.intake import LogIntake

    stretches = LogIntake._fill

    async def no_middle(self: LogIntake, stretch: tuple[int, int], *, middle: bool) -> None:
        if not middle:
            await stretches(self, stretch, middle=middle)

    monkeypatch.setattr(LogIntake, "_fill", no_middle)
    async with written(rig, tmp_path), session(rig, tmp_path / "second") as fleet:
        supervisor = fleet.supervisors["gpu0"]
        assert await fleet.until(lambda: supervisor.known, DEADLINE)
        assert supervisor.state.log.ready
        assert Stage.KV_CACHE in [s.stage for s in verdict.stages(supervisor.state)]
        assert supervisor.state.log.missing > 1_000_000
        shown = supervisor.log_path
        assert shown and LOG.endswith(b"\n" + shown.read_bytes()) and shown.stat().st_size > logreader.TAIL - 1000
        assert shown.stat().st_mode & 0o777 == 0o600
    assert not shown.exists()
    monkeypatch.undo()
    async with session(rig, tmp_path / "second") as fleet:  # what was left half-read is no gap
        supervisor = fleet.supervisors["gpu0"]
        assert await fleet.until(lambda: supervisor.state.log.lines == LOG.count(b"\n"), DEADLINE)
        assert supervisor.log_path and supervisor.log_path.read_bytes() == LOG


async def test_two_sessions_share_one_spool(tmp_path: Path) -> None:
    rig = profile(tmp_path, LOG)
    async with (
        written(rig, tmp_path),
        session(rig, tmp_path / "shared") as one,
        session(rig, tmp_path / "shared") as two,
    ):
        for fleet in (one, two):
            supervisor = fleet.supervisors["gpu0"]
            assert await fleet.until(partial(is_whole, supervisor), DEADLINE)
            assert supervisor.state.log.lines == LOG.count(b"\n") and supervisor.state.log.failure
        assert one.supervisors["gpu0"].log_path == two.supervisors["gpu0"].log_path
        path = one.supervisors["gpu0"].log_path
        assert path and path.read_bytes() == LOG


def test_no_order_of_stretches_changes_what_is_known(tmp_path: Path) -> None:
    """The reader alone: the end grows while the middle comes, and bytes come twice."""
    reader = LogReader(tmp_path / "a.log")
    reader.open()
    size = len(LOG) - 50_000
    while stretch := reader.head(size):
        reader.feed(stretch[0], LOG[slice(*stretch)])
    start = reader.leap(size)
    assert start == size - logreader.TAIL and reader.reach == start
    at, grown = start, size
    while middle := reader.middle():
        reader.feed(middle[0], LOG[middle[0] : middle[0] + 100_000])
        facts = reader.feed(at, LOG[at:grown])
        assert facts is None or facts.size == grown
        at, grown = max(start, grown - 10), min(grown + 7_000, len(LOG))
    reader.feed(reader.offset, LOG[reader.offset :])
    parser = LogParser()
    parser.feed(LOG)
    assert replace(reader._parser.facts(), series=()) == replace(parser.facts(), series=())
    assert (tmp_path / "a.log").read_bytes() == LOG


def test_the_end_is_shown_from_a_whole_line_on(tmp_path: Path) -> None:
    """Half a line may hold half a secret."""
    reader = LogReader(tmp_path / "a.log")
    reader.open()
    while stretch := reader.head(len(LOG)):
        reader.feed(stretch[0], LOG[slice(*stretch)])
    start = reader.leap(len(LOG))
    assert LOG[start - 1 : start] != b"\n"
    for at in range(start, start + 1000):
        reader.feed(at, LOG[at : at + 1])
    assert reader.shown and LOG[: start + 1000].endswith(b"\n" + reader.shown.read_bytes())
    assert reader.shown.read_bytes()


def test_a_failure_at_the_end_has_no_line_number_until_the_middle_is_counted(tmp_path: Path) -> None:
    log = STARTUP + batches(0, 14_000) + CLUE
    reader = LogReader(tmp_path / "a.log")
    reader.open()
    reader.feed(0, log[: len(STARTUP)])
    start = reader.leap(len(log))
    facts = reader.feed(start, log[start:])
    assert facts and facts.failure and facts.fatal and facts.failure.line_number == 0
    whole = reader.feed(reader.offset, log[reader.offset :])
    assert whole and whole.failure and whole.failure.line_number > 14_000


def test_a_log_that_begins_anew_keeps_what_was_known_and_spooled(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    reader = LogReader(path)
    reader.open()
    reader.feed(0, STARTUP + batches(0, 100))
    facts = reader.feed(0, batches(100, 200), anew=True)
    assert facts and facts.ready and facts.lines == STARTUP.count(b"\n") + 200
    assert path.read_bytes() == batches(100, 200)
    assert (tmp_path / "a.log.1").read_bytes() == STARTUP + batches(0, 100)
    reader.close()
    again = LogReader(path)
    facts = again.open()
    assert facts and facts.ready and facts.lines == STARTUP.count(b"\n") + 200 and again.offset == path.stat().st_size


def test_a_log_that_begins_anew_before_its_middle_was_read(tmp_path: Path) -> None:
    reader = LogReader(tmp_path / "a.log")
    reader.open()
    reader.feed(0, LOG[:100_000])
    start = reader.leap(len(LOG))
    reader.feed(start, LOG[start:])
    facts = reader.feed(0, batches(0, 10), anew=True)
    assert facts and facts.ready and not facts.missing and reader.lost == start - 100_000
    assert reader.middle() is None and reader.offset == reader.reach == len(batches(0, 10))


async def test_a_tail_of_a_program_that_is_gone_is_dropped(tmp_path: Path) -> None:
    from tui.fleet.spool import run_spool

    path = run_spool(tmp_path, "p", "s", "run1")
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()
    orphan, alive = (
        path.with_name(f"{path.name}.tail-{process.pid}"),
        path.with_name(f"{path.name}.tail-{os.getppid()}"),
    )
    orphan.touch()
    alive.touch()
    run_spool(tmp_path, "p", "s", "run1")
    assert alive.exists() and not orphan.exists()


def test_what_is_not_read_yet_is_said(tmp_path: Path) -> None:
    reader = LogReader(tmp_path / "a.log")
    reader.open()
    reader.feed(0, LOG[:100_000])
    start = reader.leap(len(LOG))
    facts = reader.feed(start, LOG[start:])
    assert facts
    state = ServerState(ServerInfo("gpu0"), log=facts)
    words = f"{(start - 100_000) / 1e6:.1f} MB in the middle of its log are still to be read"
    assert words in str(report(state, 0.0)["warnings"]) and f"gpu0: {words}" in remarks(state, 0.0)
    whole = reader.feed(100_000, LOG[100_000:])
    assert whole and not verdict.unread(replace(state, log=whole))


async def test_a_long_spool_is_read_like_a_long_log(tmp_path: Path) -> None:
    """A session that comes back to the same machine: nothing long is read at once, nothing is fetched again."""
    rig = profile(tmp_path, LOG)
    async with written(rig, tmp_path), session(rig, tmp_path / "first") as fleet:
        supervisor = fleet.supervisors["gpu0"]
        sizes: list[int] = []
        fleet.listeners.append(lambda *_: sizes.append(supervisor.state.log.missing))
        assert await fleet.until(partial(is_whole, supervisor), DEADLINE)
        assert max(sizes) > 1_000_000, "the middle came later"
        assert supervisor.state.log == read([LOG])
        assert supervisor._intake and supervisor._intake._until == 0, "no middle was asked of the host"


def test_a_spool_that_the_host_contradicts_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(LOG)
    for size in (None, len(LOG) - 1):
        reader = LogReader(tmp_path / "a.log")
        facts = reader.open(size)
        assert facts and facts.lines == LOG.count(b"\n") and reader.offset == len(LOG)
    reader = LogReader(tmp_path / "a.log")
    facts = reader.open(len(LOG))
    assert facts and facts.ready and reader.offset < 100_000


def test_a_spool_that_was_cut_is_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(LOG)
    reader = LogReader(tmp_path / "a.log")
    reader.open(len(LOG))
    start = reader.leap(len(LOG))
    reader.feed(start, LOG[start:])
    os.truncate(tmp_path / "a.log", reader.offset)
    assert reader.middle_is_spooled and reader.catch_up() is None and not reader.middle_is_spooled
    facts = reader.feed(reader.offset, LOG[reader.offset :])
    assert facts and facts.lines == LOG.count(b"\n") and (tmp_path / "a.log").read_bytes() == LOG
