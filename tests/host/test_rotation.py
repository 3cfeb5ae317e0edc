"""A log that is renamed, cut short, removed, not there yet, or on a full disk; and a machine that slept."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.links import Ear, HostOf, agent_pid, follow, opened, python
from tests.processes import kill_now
from tests.waiting import DEADLINE, eventually
from tui.host import awake, session
from tui.host.api import LinkEvent, LinkLost, LinkUp, LogBytes, RunRecord
from tui.host.link import HostLink, _rest

# writes a line to its stdout for each line of the file named by its first argument, as that grows, and then a byte to
# the second
ECHO = """
import contextlib, os, sys, time
order, done = open(sys.argv[1]), open(sys.argv[2], "wb", 0)
while True:
    line = order.readline()
    if line:
        with contextlib.suppress(OSError):  # a full disk
            os.write(1, line.encode())
        done.write(b".")
    time.sleep(0.005)
"""


class Heard:
    """The log's text as it came: a list of its beginnings."""

    def __init__(self, link: HostLink) -> None:
        self.files = [bytearray()]
        self.ear = Ear(link)
        link.subscribe(self._on_event)

    def _on_event(self, event: LinkEvent) -> None:
        if isinstance(event, LogBytes):
            if event.anew:
                self.files.append(bytearray())
            assert event.offset == len(self.files[-1])
            self.files[-1] += event.data
            self.ear.flaws.clear()

    async def until(self, *files: bytes) -> None:
        await self.ear.until(lambda: [bytes(file) for file in self.files] == list(files))


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    from tui.host import link

    monkeypatch.setattr(link, "FIRST_RETRY_SECONDS", 0.05)


class Rig:
    """A server that says what it is told, and what came of it."""

    def __init__(self, link: HostLink, folder: Path) -> None:
        self.link, self.order, self.done, self.heard = link, folder / "order", folder / "done", Heard(link)
        self.order.touch()
        self.run: RunRecord

    async def start(self) -> Path:
        self.run = await follow(self.link, python(ECHO, str(self.order), str(self.done)))
        self.say("one")
        await self.heard.until(b"one\n")
        return Path(self.run.log)

    def say(self, text: str) -> None:
        with self.order.open("a") as order:
            order.write(text + "\n")

    async def reconnect(self) -> None:
        ups = len(self.heard.ear.of(LinkUp))
        kill_now(agent_pid(self.link))
        await self.heard.ear.until(lambda: len(self.heard.ear.of(LinkUp)) > ups)


@pytest.fixture
def rig(local: HostLink, tmp_path: Path) -> Rig:
    return Rig(local, tmp_path)


async def test_a_renamed_log_is_followed_where_its_server_writes(rig: Rig) -> None:
    log = await rig.start()
    log.rename(log.with_suffix(".1"))
    log.touch()
    rig.say("two")
    await rig.heard.until(b"one\ntwo\n")
    await rig.reconnect()
    rig.say("three")
    await rig.heard.until(b"one\ntwo\nthree\n")


async def test_the_next_file_is_followed_once_it_is_written(rig: Rig) -> None:
    log = await rig.start()
    log.rename(log.with_suffix(".1"))
    log.write_bytes(b"next\n")
    await rig.heard.until(b"one\n", b"next\n")


async def test_a_truncated_log_begins_anew(rig: Rig) -> None:
    log = await rig.start()
    shutil.copy(log, log.with_suffix(".1"))
    os.truncate(log, 0)
    rig.say("2")
    await rig.heard.until(b"one\n", b"2\n")


async def test_a_log_truncated_during_an_outage_begins_anew(rig: Rig) -> None:
    log = await rig.start()
    os.kill(agent_pid(rig.link), signal.SIGSTOP)
    os.truncate(log, 0)
    rig.say("2")
    await eventually(lambda: log.stat().st_size == 2)
    await rig.reconnect()
    await rig.heard.until(b"one\n", b"2\n")


async def test_a_removed_log_is_read_on_even_after_a_reconnect(rig: Rig) -> None:
    log = await rig.start()
    log.unlink()
    rig.say("two")
    await rig.heard.until(b"one\ntwo\n")
    await rig.reconnect()
    rig.say("three")
    await rig.heard.until(b"one\ntwo\nthree\n")


async def test_a_log_that_is_not_there_yet_is_waited_for(rig: Rig) -> None:
    log = await rig.start()
    await rig.link.unfollow(rig.run.run)
    log.unlink()
    rig.heard.files = [bytearray()]
    await rig.link.follow(rig.run.run)
    assert await rig.link.runs()  # it was looked for before it is there
    log.write_bytes(b"there\n")
    await rig.heard.until(b"there\n")


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_a_log_on_a_full_disk_goes_on_when_there_is_room(tiny: Path, tmp_path: Path) -> None:
    async with opened(HostOf(state_dir=str(tiny / "state"))) as link:
        rig = Rig(link, tmp_path)
        log = await rig.start()
        filler = tiny / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass
        rig.say("x" * 8000)  # does not fit whole
        await eventually(lambda: rig.done.stat().st_size == 2)
        filler.unlink()
        rig.say("three")
        await rig.heard.ear.until(lambda: rig.heard.files[-1].endswith(b"three\n"))
        assert [bytes(file) for file in rig.heard.files] == [log.read_bytes()]


async def test_a_machine_that_slept_looks_at_once(local: HostLink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "PING_SECONDS", 0.1)
    monkeypatch.setattr(session, "WAKE_SECONDS", 0.3)
    ear = Ear(local)
    kill_now(agent_pid(local))
    await ear.until(lambda: len(ear.of(LinkUp)) == 1)
    hung = agent_pid(local)
    os.kill(hung, signal.SIGSTOP)
    try:
        real = awake.wall
        monkeypatch.setattr(awake, "wall", lambda: real() + 3600)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await ear.until(lambda: len(ear.of(LinkLost)) == 2)
        assert loop.time() - began < session.SILENCE_SECONDS, "it did not wait as long as for a network that hangs"
    finally:
        kill_now(hung)


async def test_who_wakes_up_tries_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    real, rests = awake.wall, asyncio.Event()

    def seen() -> float:
        rests.set()
        return real()

    monkeypatch.setattr(awake, "wall", seen)
    resting = asyncio.create_task(_rest(3600.0))
    await rests.wait()
    monkeypatch.setattr(awake, "wall", lambda: real() + 3600)
    async with asyncio.timeout(DEADLINE):
        await resting
