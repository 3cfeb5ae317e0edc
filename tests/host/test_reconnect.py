"""Nothing that happens to the link harms a server or loses a byte of its log."""

# ruff: noqa: ASYNC240  # small files of the test
from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from tests.host.links import Ear, agent_pid, follow, opened, python, ssh_host
from tests.host.sshd import Sshd, start_sshd
from tests.processes import is_running, kill_now
from tests.waiting import DEADLINE, eventually
from tui.host import session
from tui.host.api import HostError, HostErrorKind, LinkLost, LinkUp, RunEnded
from tui.host.link import HostLink

# about 3 MB in 1.5 seconds, of bytes that would show any shift
WRITER = """
import sys, time
for i in range(300):
    sys.stdout.buffer.write((b"%07d " % i) * 1250 + "ü☃\\n".encode())
    sys.stdout.buffer.flush()
    time.sleep(0.005)
"""
WHOLE = b"".join((b"%07d " % i) * 1250 + "ü☃\n".encode() for i in range(300))


async def received(ear: Ear, run: str, share: float) -> None:
    """Wait until more than that share of the log is here."""
    await ear.until(lambda: len(ear.logs.get(run, b"")) > len(WHOLE) * share)


async def back(ear: Ear, ups: int) -> None:
    """Wait for one more connection than ``ups``."""
    await ear.until(lambda: len(ear.of(LinkUp)) > ups)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again sooner than people would."""
    from tui.host import link

    monkeypatch.setattr(link, "FIRST_RETRY_SECONDS", 0.05)


async def test_a_log_is_whole_after_sshd_sessions_were_killed(server: Sshd, tmp_path: Path) -> None:
    dice = random.Random(7)
    async with opened(ssh_host(server, tmp_path / "state")) as link:
        ear = Ear(link)
        run = await follow(link, python(WRITER))
        for drop in range(6):
            await received(ear, run.run, dice.uniform(0.6, 1) * drop / 7)
            ups = len(ear.of(LinkUp))
            assert server.kill_sessions(dice.choice([signal.SIGKILL, signal.SIGTERM]))
            await back(ear, ups)
        assert await ear.log_of_size(run.run, len(WHOLE)) == WHOLE
        assert (await ear.ended(run.run)).exit is not None
        assert len(ear.of(LinkLost)) >= 6
        assert not any(lost.final for lost in ear.of(LinkLost))
    assert Path(run.log).read_bytes() == WHOLE


async def test_a_log_is_whole_after_agents_were_killed(local: HostLink) -> None:
    ear = Ear(local)
    run = await follow(local, python(WRITER))
    for drop in range(12):
        await received(ear, run.run, drop / 13)
        ups = len(ear.of(LinkUp))
        kill_now(agent_pid(local))
        await back(ear, ups)
    assert await ear.log_of_size(run.run, len(WHOLE)) == WHOLE
    assert (await ear.ended(run.run)).exit is not None


async def test_an_end_during_an_outage_is_told_afterwards(local: HostLink) -> None:
    ear = Ear(local)
    run = await follow(local, python("import time; print('up', flush=True); time.sleep(600)"))
    await ear.log_until(run.run, b"up\n")
    kill_now(agent_pid(local))
    assert run.pid
    os.kill(run.pid, signal.SIGTERM)
    ended = await ear.ended(run.run)
    assert ended.exit and ended.exit.signal == "SIGTERM"


async def test_a_hung_agent_is_noticed(local: HostLink, monkeypatch: pytest.MonkeyPatch) -> None:
    assert session.PING_SECONDS + session.SILENCE_SECONDS < 20.0  # what the product promises
    monkeypatch.setattr(session, "PING_SECONDS", 0.2)
    monkeypatch.setattr(session, "SILENCE_SECONDS", 1.0)
    ear = Ear(local)
    kill_now(agent_pid(local))  # a fresh agent pings at the test's pace
    await ear.until(lambda: len(ear.of(LinkUp)) == 1)
    stopped = agent_pid(local)
    os.kill(stopped, signal.SIGSTOP)
    try:
        await ear.until(lambda: len(ear.of(LinkUp)) == 2)
        assert "no answer for 1 s" in ear.of(LinkLost)[1].error.message
        assert await local.runs() == []
    finally:
        kill_now(stopped)


async def test_requests_in_flight_fail_with_the_link(local: HostLink) -> None:
    import asyncio

    ear = Ear(local)
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    run = await follow(local, python(code))
    await ear.log_until(run.run, b"up\n")
    killing = asyncio.create_task(local.kill(run.run, 60))
    await eventually((Path(run.log).parent / "stop.json").exists)
    kill_now(agent_pid(local))
    with pytest.raises(HostError) as found:
        await killing
    assert found.value.kind is HostErrorKind.UNREACHABLE


async def test_no_second_try_after_a_refused_login(server: Sshd, tmp_path: Path) -> None:
    async with opened(ssh_host(server, tmp_path / "state")) as link:
        ear = Ear(link)
        (server.folder / "authorized_keys").write_text("")
        server.kill_sessions()
        await ear.until(lambda: any(lost.final for lost in ear.of(LinkLost)))
        last = ear.of(LinkLost)[-1]
        assert (last.error.kind, last.retry_in) == (HostErrorKind.LOGIN_REFUSED, None)
        with pytest.raises(HostError, match="refused all keys"):
            await link.runs()
        (server.folder / "authorized_keys").write_text((server.folder / "id.pub").read_text())
        assert (await link.open()).python
        assert len(ear.of(LinkUp)) == 1


async def test_sshd_comes_back_after_a_while(server: Sshd, tmp_path: Path) -> None:
    async with opened(ssh_host(server, tmp_path / "state")) as link:
        ear = Ear(link)
        run = await follow(link, python("import time; time.sleep(600)"))
        server.stop()
        await ear.until(lambda: len(ear.of(LinkLost)) >= 3)
        waits = [lost.retry_in or 0.0 for lost in ear.of(LinkLost)]
        assert waits[2] > waits[0]
        again = start_sshd(server.folder, port=server.port)
        try:
            await ear.until(lambda: len(ear.of(LinkUp)) == 1)
            assert (await link.kill(run.run, 5)).left == ()
            await ear.until(lambda: len(ear.of(RunEnded)) == 1)
        finally:
            again.kill_sessions()
            server.process = again.process


async def test_the_agent_leaves_with_its_channel(server: Sshd, tmp_path: Path) -> None:
    async with opened(ssh_host(server, tmp_path / "state")) as link:
        await link.runs()
        below = [pid for pid in server.below() if pid not in server.sessions()]
        assert len(below) == 1
        server.kill_sessions()
        await eventually(lambda: not is_running(below[0]))


async def test_the_agent_leaves_when_nobody_speaks(tmp_path: Path) -> None:
    """A black hole: the channel stands, but nothing comes."""
    import asyncio

    from tui.host.channel import PipeChannel
    from tui.host.source import blob, command

    channel = await PipeChannel.open(command("HA00"))
    while b"HA00" not in await channel.read(4096):
        pass
    channel.write(blob({"state_dir": str(tmp_path), "silence": 0.4}))
    assert b"hello" in await channel.read(65536)
    async with asyncio.timeout(DEADLINE):
        assert await channel.read(65536) == b""
    await channel.close()


STANDING_STILL = """
import asyncio, sys
from tests.host.links import Ear, HostOf, python
from tui.host.api import LinkUp
from tui.host.connect import LocalLink

WRITER = "import time\\nfor n in range(100000): print(n, flush=True); time.sleep(0.01)"

async def main():
    link = LocalLink(HostOf(state_dir=sys.argv[1]), silence=1.0)
    await link.open()
    ear = Ear(link)
    run = await link.launch(python(WRITER))
    try:
        await link.follow(run.run)
        await ear.log_until(run.run, b"\\n50\\n")
        print(run.log, flush=True)
        await ear.until(lambda: ear.of(LinkUp))
        size = len(ear.logs[run.run])
        await ear.log_of_size(run.run, size + 1000)
        with open(run.log, "rb") as log:
            print(log.read().startswith(ear.logs[run.run]), flush=True)
    finally:
        await link.kill(run.run, 0)
        await link.close()

asyncio.run(main())
"""


async def test_a_client_that_stood_still_goes_on_where_it_was(tmp_path: Path) -> None:
    """A laptop that slept: its agent has left meanwhile."""
    import asyncio
    import sys

    root = Path(__file__).parents[2]
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-c", STANDING_STILL, str(tmp_path / "state"), cwd=root, stdout=asyncio.subprocess.PIPE
    )
    assert client.stdout
    try:
        assert await client.stdout.readline()
        agent = _agents_of(client.pid)
        assert len(agent) == 1
        client.send_signal(signal.SIGSTOP)
        await eventually(lambda: not is_running(agent[0]))
        client.send_signal(signal.SIGCONT)
        async with asyncio.timeout(DEADLINE):
            assert await client.stdout.readline() == b"True\n"
        assert await client.wait() == 0
    finally:
        if client.returncode is None:
            client.kill()
            await client.wait()


def _agents_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children]
