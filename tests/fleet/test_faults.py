"""Faults between a fleet and a real sshd: what was promised of each stands in the fault table of tests/README.md."""

# ruff: noqa: ASYNC240  # small files of the test
from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fleet.rig import DEADLINE, ROOT
from tests.host.sshd import Sshd, require_sshd, running_sshd, start_sshd
from tests.host.weather import Weather, namespace, weather
from tests.ports import free_port
from tests.processes import is_running, kill_now
from tests.waiting import eventually
from tui.fleet import hosts
from tui.fleet.api import Kill, Launch, Reconnect
from tui.fleet.fleet import Fleet
from tui.fleet.places import Places
from tui.host import link, session
from tui.profile.load import loads
from tui.profile.model import Profile
from tui.sglang import verdict
from tui.sglang.facts import read
from tui.sglang.model import Phase

SEED = int(os.environ.get("HCS_SEED", "1"))
READY = b"[2026-11-30 10:00:40] The server is fired up and ready to roll!\n"
LINE = "[2026-11-30 10:%02d:%02d] Decode batch. #running-req: %d, gen throughput (token/s): 100.0, #queue-req: 12, é\n"
WHOLE = READY + b"".join((LINE % (n // 600 % 60, n // 10 % 60, n)).encode() for n in range(24_000))
WRITER = """
import sys, time
with open(sys.argv[1], "rb") as log:
    while data := log.read(20_011):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        time.sleep(0.025)
time.sleep(600)
"""
IDLE = f"import time; print({READY.decode().strip()!r}, flush=True); time.sleep(600)"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    with running_sshd(tmp_path / "sshd") as running:
        yield running


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again, and lose patience, sooner than people would."""
    monkeypatch.setattr(link, "FIRST_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(link, "LAST_RETRY_SECONDS", 0.4)
    monkeypatch.setattr(hosts, "_FIRST_RETRY_SECONDS", 0.1)
    monkeypatch.setattr(session, "PING_SECONDS", 0.2)
    monkeypatch.setattr(session, "SILENCE_SECONDS", 1.5)


def profile(server: Sshd, folder: Path, code: str, **addresses: str) -> Profile:
    """One server that is a few lines of Python on each host; hosts are given by their addresses."""
    (folder / "log").write_bytes(WHOLE)
    login = {"identity": server.identity, "known_hosts": server.known_hosts, "state_dir": str(folder / "state")}
    there = {name: {"ssh": address, "python": sys.executable, **login} for name, address in addresses.items()}
    command = [sys.executable, "-c", code, str(folder / "log")]
    servers = {f"on-{name}": {"host": name, "command": command, "port": free_port()} for name in there}
    return loads(json.dumps({"name": "rig", "hosts": there, "defaults": {"stop_grace": "5s"}, "servers": servers}))


@asynccontextmanager
async def running(rig: Profile, folder: Path) -> AsyncIterator[Fleet]:
    """All servers of ``rig`` launched; killed at the end, over a network that works."""
    fleet = Fleet(rig, places=Places(folder / "spool", folder / "history"))
    fleet.start()
    try:
        await fleet.settled()
        for name in fleet.supervisors:
            launched = await fleet.act(Launch(name))
            assert launched.ok, launched.message
        yield fleet
    finally:
        for host in fleet.hosts():
            if host.phase != "connected":
                await fleet.act(Reconnect(host.name))
        await fleet.until(lambda: all(host.phase == "connected" for host in fleet.hosts()), DEADLINE)
        for name in fleet.supervisors:
            await fleet.act(Kill(name, 0.0))
        await fleet.close()


def rolls(seed: int, proxy: Weather) -> None:
    """Twelve connections are cut at random bytes, early in their log or late, half of them by a reset."""
    dice = random.Random(seed)
    proxy.fate = lambda: (dice.randint(8_000, 300_000), dice.random() < 0.5) if proxy.cuts < 12 else None


async def test_the_spool_is_the_hosts_log_after_twelve_random_cuts(server: Sshd, tmp_path: Path, soon: None) -> None:
    async with weather(server.port) as proxy:
        rig = profile(server, tmp_path, WRITER, box=server.address_at(proxy.port))
        async with running(rig, tmp_path) as fleet:
            supervisor = fleet.supervisors["on-box"]
            rolls(SEED, proxy)
            server.kill_sessions()  # the first connection had no fate
            assert await fleet.until(lambda: supervisor.state.log.size == len(WHOLE), DEADLINE)
            assert proxy.cuts == 12, f"the log was over after {proxy.cuts} cuts (HCS_SEED={SEED})"
            run, spool = supervisor.state.run, supervisor.log_path
            assert run and spool and spool.read_bytes() == Path(run.log).read_bytes() == WHOLE
            assert supervisor.state.log.lines == read([WHOLE]).lines
            assert run.pid and is_running(run.pid)


async def test_a_long_log_is_whole_after_twelve_cuts_from_the_first_byte_on(
    server: Sshd, tmp_path: Path, soon: None
) -> None:
    at_once = WRITER.replace("time.sleep(0.025)", "pass")
    straight = profile(server, tmp_path, at_once, box=server.address)
    async with weather(server.port) as proxy, running(straight, tmp_path) as one:
        first = one.supervisors["on-box"]
        assert await one.until(lambda: first.state.log.size == len(WHOLE), DEADLINE)
        rolls(SEED, proxy)
        rig = profile(server, tmp_path, at_once, box=server.address_at(proxy.port))
        two = Fleet(rig, places=Places(tmp_path / "empty", tmp_path / "history"))
        two.start()
        try:
            again = two.supervisors["on-box"]

            def whole() -> bool:
                return again.state.log.size == len(WHOLE) and not again.state.log.missing

            assert await two.until(whole, DEADLINE), f"{again.state.log.size} {again.state.log.missing} {proxy.cuts}"
            assert proxy.cuts == 12, f"the log was whole after {proxy.cuts} cuts (HCS_SEED={SEED})"
            assert again.state.log == first.state.log
            assert again.log_path and again.log_path.read_bytes() == WHOLE
        finally:
            await two.close()


async def test_a_black_hole_is_shown_with_what_was_known_and_slows_nobody(
    server: Sshd, tmp_path: Path, soon: None
) -> None:
    async with weather(server.port) as proxy:
        rig = profile(server, tmp_path, WRITER, hole=server.address_at(proxy.port), fine=server.address)
        async with running(rig, tmp_path) as fleet:
            hole, fine = fleet.supervisors["on-hole"], fleet.supervisors["on-fine"]
            assert await fleet.until(lambda: hole.state.log.ready and fine.state.log.ready, DEADLINE)
            proxy.open.clear()
            before = hole.state.log
            assert await fleet.until(lambda: hole.state.unreachable_since is not None, DEADLINE)
            assert hole.state.log.size >= before.size and hole.state.log.ready and hole.state.alive
            assert verdict.phase(hole.state) is verdict.phase(fine.state)
            state = next(host for host in fleet.hosts() if host.name == "hole")
            assert state.phase == "unreachable" and "no answer" in state.message and state.retry_at
            assert await fleet.until(lambda: fine.state.log.size == len(WHOLE), DEADLINE)  # meanwhile
            assert fine.state.unreachable_since is None
            proxy.open.set()
            assert await fleet.until(lambda: hole.state.log.size == len(WHOLE), DEADLINE)
            assert hole.state.unreachable_since is None
            spool = hole.log_path
            assert spool and spool.read_bytes() == WHOLE


async def test_no_packets_are_noticed_within_twenty_seconds(tmp_path: Path) -> None:
    """The program's own patience, over a link that is taken down: no reset, no end, nothing."""
    require_sshd()
    with namespace() as space:
        server = start_sshd(tmp_path / "sshd", ip=space.ip, within=space.within)
        try:
            async with running(profile(server, tmp_path, IDLE, box=server.address), tmp_path) as fleet:
                supervisor = fleet.supervisors["on-box"]
                assert await fleet.until(lambda: supervisor.state.log.ready, DEADLINE)
                space.link("down")
                began = time.monotonic()
                assert await fleet.until(lambda: supervisor.state.unreachable_since is not None, DEADLINE)
                assert time.monotonic() - began < 20.0
                space.link("up")
                assert (await fleet.act(Reconnect("box"))).ok
                assert await fleet.until(lambda: supervisor.state.unreachable_since is None, DEADLINE)
        finally:
            server.stop()


async def test_each_part_is_killed_in_turn_and_the_server_outlives_all(
    server: Sshd, tmp_path: Path, soon: None
) -> None:
    rig = profile(server, tmp_path, IDLE, box=server.address)
    async with running(rig, tmp_path) as fleet:
        supervisor = fleet.supervisors["on-box"]
        assert await fleet.until(lambda: supervisor.state.log.ready, DEADLINE)
        run = supervisor.state.run
        assert run and run.pid
        lost, up = 0, 0

        def count(_supervisor: object, before: object, event: object) -> None:
            nonlocal lost, up
            lost += type(event).__name__ == "HostLost"
            up += type(event).__name__ == "HostBack"

        fleet.listeners.append(count)
        server.kill_sessions()  # sshd's children
        assert await fleet.until(lambda: (lost, up) == (1, 1), DEADLINE)
        for pid in [pid for pid in server.below() if pid not in server.sessions()]:
            kill_now(pid)  # the agent
        assert await fleet.until(lambda: (lost, up) == (2, 2), DEADLINE)
        assert is_running(run.pid)

        folder = Path(run.log).parent
        process = json.loads((folder / "process.json").read_text())
        kill_now(process["keeper"]["pid"])
        await eventually(lambda: not is_running(process["keeper"]["pid"]))
        assert is_running(run.pid)
        kill_now(run.pid)  # the server: nobody is left who could tell how it ended
        assert await fleet.until(lambda: supervisor.state.vanished, DEADLINE)
        assert verdict.phase(supervisor.state) in (Phase.LOST, Phase.FAILED)
        assert (await fleet.act(Launch("on-box"))).ok
        assert await fleet.until(lambda: supervisor.state.log.ready, DEADLINE)
        again = supervisor.state.run
        assert again and again.pid
        kill_now(again.pid)
        assert await fleet.until(lambda: supervisor.state.exit is not None, DEADLINE)
        assert supervisor.state.exit and supervisor.state.exit.signal == "SIGKILL"


def client(rig: Path, home: Path, *words: str) -> subprocess.Popen[str]:
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "XDG_STATE_HOME": str(home),
        "XDG_CACHE_HOME": str(home),
    }
    command = [sys.executable, "-m", "tui", *words[:1], str(rig), *words[1:]]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def written(server: Sshd, folder: Path, address: str) -> Path:
    rig = profile(server, folder, IDLE, box=address)
    login = {"identity": server.identity, "known_hosts": server.known_hosts, "state_dir": str(folder / "state")}
    command = [sys.executable, "-c", IDLE]
    text = {
        "name": "rig", "hosts": {"box": {"ssh": address, "python": sys.executable, **login}},
        "servers": {"on-box": {"host": "box", "command": command, "port": rig.servers[0].port}},
    }  # fmt: skip
    path = folder / "rig.yaml"
    path.write_text(json.dumps(text))
    return path


async def test_a_killed_client_takes_nothing_with_it(server: Sshd, tmp_path: Path) -> None:
    rig = profile(server, tmp_path, IDLE, box=server.address)
    async with running(rig, tmp_path) as fleet:
        run = fleet.supervisors["on-box"].state.run
        before = set(server.below())
        other = client(written(server, tmp_path, server.address), tmp_path, "status", "--watch")
        assert other.stdout
        try:
            assert await asyncio.to_thread(other.stdout.readline)
            theirs = set(server.below()) - before
            assert theirs
        finally:
            other.kill()
            other.communicate()
        await eventually(lambda: not any(is_running(pid) for pid in theirs))
        assert run and run.pid and is_running(run.pid)


async def test_status_of_a_deaf_sshd_says_whom_it_waits_for_and_gives_up(server: Sshd, tmp_path: Path) -> None:
    path = written(server, tmp_path, server.address)
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        asking = client(path, tmp_path, "status", "--json", "--timeout", "2")
        out, err = await asyncio.to_thread(asking.communicate, timeout=DEADLINE)
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert asking.returncode == 4, err
    assert "connecting to box" in err and "did not answer within 2 s" in err
    assert json.loads(out)["servers"][0]["unreachable"] is True


async def test_a_refused_login_waits_for_the_user(server: Sshd, tmp_path: Path, soon: None) -> None:
    async with weather(server.port) as proxy:
        rig = profile(server, tmp_path, IDLE, box=server.address_at(proxy.port))
        async with running(rig, tmp_path) as fleet:
            keys = server.folder / "authorized_keys"
            allowed = keys.read_text()
            keys.write_text("")
            server.kill_sessions()
            assert await fleet.until(lambda: fleet.hosts()[0].phase == "refused", DEADLINE)
            seen = proxy.connections
            # many times the wait before a second try; no event comes of one that is not made
            assert not await fleet.until(lambda: proxy.connections > seen, 1.5)
            assert fleet.hosts()[0].retry_at is None
            keys.write_text(allowed)
            assert (await fleet.act(Reconnect("box"))).ok
            assert await fleet.until(lambda: fleet.hosts()[0].phase == "connected", DEADLINE)


async def test_a_truncated_log_is_spooled_anew_and_the_old_one_kept(server: Sshd, tmp_path: Path, soon: None) -> None:
    more = "\nwhile os.fstat(1).st_size: time.sleep(0.01)\nprint('more', flush=True); time.sleep(600)"
    code = f"import os, time; print({READY.decode().strip()!r}, flush=True){more}"
    async with running(profile(server, tmp_path, code, box=server.address), tmp_path) as fleet:
        supervisor = fleet.supervisors["on-box"]
        assert await fleet.until(lambda: supervisor.state.log.ready, DEADLINE)
        run, spool = supervisor.state.run, supervisor.log_path
        assert run and spool
        os.truncate(run.log, 0)
        assert await fleet.until(lambda: supervisor.state.log.last_line == "more", DEADLINE)
        assert supervisor.state.log.ready and supervisor.state.log.lines == 2
        assert spool.read_bytes() == Path(run.log).read_bytes() == b"more\n"
        assert spool.with_name(f"{spool.name}.1").read_bytes() == READY
