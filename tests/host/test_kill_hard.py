"""Kills of what does not want to go, or cannot; and what a kill says of sockets and GPU memory."""

# ruff: noqa: ASYNC220, ASYNC240  # small files and processes of the test
from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.host.links import Ear, HostOf, agent_pid, follow, opened, python, ssh_host
from tests.host.sshd import Sshd
from tests.processes import is_running, kill_now
from tests.waiting import eventually, until
from tui.host.api import HostError, KillReport, RunWatch
from tui.host.link import HostLink

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True); time.sleep(600)"
)


class Up(NamedTuple):
    """A server that said ``up``."""

    run: str
    pid: int
    folder: Path


async def up(link: HostLink, code: str, *arguments: str) -> Up:
    ear = Ear(link)
    run = await follow(link, python(code, *arguments))
    await ear.log_until(run.run, b"up")
    assert run.pid
    return Up(run.run, run.pid, Path(run.log).parent)


def process_of(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "process.json").read_text())
    return found


def keeper_of(folder: Path) -> int:
    keeper = process_of(folder)["keeper"]
    assert isinstance(keeper, dict)
    return int(keeper["pid"])


# What does not want to go


RESPAWNER = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
heirs = os.open(sys.argv[1], os.O_WRONLY)
os.write(1, b"up\\n")
def respawn():
    # Whenever its forerunner is gone, a fresh process of a session of its own takes over.
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if os.fork():
            os._exit(0)
        os.setsid()
        os.write(heirs, b".")
        time.sleep(0.001)
for _ in range(3):
    if os.fork() == 0:
        respawn()
        os._exit(0)
def guard(depth):
    # Each one makes its child anew as soon as it dies.
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if depth and (pid := os.fork()) == 0:
            os.setsid()
            guard(depth - 1)
            os._exit(0)
        while depth:
            try:
                os.kill(pid, 0)
                time.sleep(0.0005)
            except OSError:
                break
        if not depth:
            time.sleep(60)
guard(4)
"""


class Heirs:
    """A pipe that all processes of a ``RESPAWNER`` hold; each new one writes a byte."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "heirs")
        os.mkfifo(self.path)
        self._end = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    def are_gone(self) -> bool:
        """The kernel's word that nobody is left to write."""
        try:
            while os.read(self._end, 65536):
                pass
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        os.close(self._end)


@pytest.fixture
def heirs(tmp_path: Path) -> Iterator[Heirs]:
    made = Heirs(tmp_path)
    yield made
    made.close()


async def test_processes_that_are_made_anew_during_the_kill(local: HostLink, heirs: Heirs) -> None:
    server = await up(local, RESPAWNER, heirs.path)
    assert not heirs.are_gone()
    report = await local.kill(server.run, 0.1)
    assert heirs.are_gone()
    assert (report.left, report.signals) == ((), ("SIGTERM", "SIGKILL"))
    assert len(report.found) >= 8
    assert report.seconds < 4  # else the keeper had to be ended: it stays for the last of its heirs


async def test_a_stopped_server_is_woken_to_end_by_itself(local: HostLink) -> None:
    """SIGTERM alone would wait until somebody continues it."""
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *a: (print('drained', flush=True), os._exit(0)))\n" + SLEEP
    )
    server = await up(local, code)
    os.kill(server.pid, signal.SIGSTOP)
    os.kill(keeper_of(server.folder), signal.SIGSTOP)
    report = await local.kill(server.run, 20)
    assert (report.left, report.signals) == ((), ("SIGTERM", "SIGCONT"))
    [record] = await local.runs()
    assert record.exit and record.exit.status == 0  # the keeper was woken, too


async def test_stopped_children_are_killed(local: HostLink) -> None:
    code = (
        "import os, signal\nchild = os.fork()\nif child == 0:\n    os.setsid(); os.kill(os.getpid(), signal.SIGSTOP)\n"
        "os.waitpid(child, os.WUNTRACED)\n" + SLEEP
    )
    server = await up(local, code)
    report = await local.kill(server.run, 20)
    assert (report.left, report.signals, len(report.found)) == ((), ("SIGTERM", "SIGKILL"), 2)


THREADS = """
import ctypes, os, threading, time
def other():
    while "State:\\tZ" not in open("/proc/self/task/%d/status" % os.getpid()).read():
        time.sleep(0.01)
    os.write(1, b"up\\n")
    time.sleep(600)
threading.Thread(target=other, daemon=True).start()
ctypes.CDLL(None).pthread_exit(None)
"""


async def test_a_process_whose_main_thread_has_ended_is_no_zombie(local: HostLink) -> None:
    """``ps`` calls it defunct, and yet its other threads run, and hold its memory."""
    server = await up(local, THREADS)
    assert "State:\tZ" in Path(f"/proc/{server.pid}/status").read_text()
    assert (await local.runs())[0].alive
    report = await local.kill(server.run, 0.2)
    assert report.left == () and "SIGTERM" in report.signals
    assert not Path(f"/proc/{server.pid}").exists()


async def test_a_zombie_that_nobody_reaps_is_nothing_left(local: HostLink) -> None:
    """Its parent is a stranger who does not wait; all that is left of it is a status."""
    server = await up(local, SLEEP)
    os.kill(keeper_of(server.folder), signal.SIGSTOP)
    kill_now(server.pid)
    await eventually(lambda: not is_running(server.pid))
    report = await local.kill(server.run, 1)
    assert (report.left, report.signals) == ((), ())


@contextmanager
def freezer() -> Iterator[Path]:
    """A group of the version 1 freezer: those in it sleep in the kernel, and not even SIGKILL reaches them."""
    root = Path("/sys/fs/cgroup/freezer")
    if os.geteuid() or not (root / "cgroup.procs").exists():
        pytest.skip("needs root and the version 1 freezer, which alone makes a state D at will")
    group = root / f"hcs-test-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        (group / "freezer.state").write_text("THAWED")
        for pid in (group / "cgroup.procs").read_text().split():
            kill_now(int(pid))
        until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


async def test_what_cannot_be_killed_is_told_and_goes_with_the_next_kill(local: HostLink) -> None:
    with freezer() as group:
        server = await up(local, SLEEP)
        (group / "cgroup.procs").write_text(str(server.pid))
        (group / "freezer.state").write_text("FROZEN")
        await eventually(lambda: (group / "freezer.state").read_text().strip() == "FROZEN")
        report = await local.kill(server.run, 0.1, settle=0.5)
        [left] = report.left
        assert left.startswith(f"pid {server.pid} python") and "state D" in left
        assert (await local.runs())[0].alive
        (group / "freezer.state").write_text("THAWED")
        assert (await local.kill(server.run, 5)).left == ()


# Without the keeper


HIDDEN = """
import os, subprocess, sys, time
code = '''
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
open(sys.argv[1], "w").write(str(os.getpid()))
time.sleep(600)
'''
subprocess.Popen([sys.executable, "-c", code, sys.argv[1]], env={}, stdout=subprocess.DEVNULL,
                 stderr=subprocess.DEVNULL).wait()
while not (os.path.exists(sys.argv[1]) and open(sys.argv[1]).read()):
    time.sleep(0.01)
print("up", flush=True)
time.sleep(600)
"""


async def test_a_daemon_without_any_mark_is_known_by_having_been_seen(local: HostLink, tmp_path: Path) -> None:
    """Own session, empty environment, other output; its parents and its subreaper are dead. It was watched before."""
    quiet = tmp_path / "quiet"
    ear = Ear(local)
    server = await up(local, HIDDEN, str(quiet))
    daemon = int(quiet.read_text())
    leave_cgroup(server, daemon)
    await ear.until(lambda: any(daemon in watch.pids for watch in ear.of(RunWatch)))
    kill_now(keeper_of(server.folder))
    kill_now(server.pid)
    await ear.ended(server.run)
    assert is_running(daemon)
    report = await local.kill(server.run, 1)
    assert report.left == () and f"pid {daemon}" in " ".join(report.found)
    assert not is_running(daemon)


def cgroup_of(server: Up) -> Path | None:
    """The cgroup that the keeper made for the server."""
    found = process_of(server.folder)["cgroup"]
    return Path(str(found)) if found else None


def leave_cgroup(server: Up, pid: int) -> None:
    """As if there were none."""
    cgroup = cgroup_of(server)
    if cgroup:
        (cgroup.parent / "cgroup.procs").write_text(str(pid))


async def test_a_daemon_without_any_mark_is_known_by_its_cgroup(tmp_path: Path) -> None:
    """The same, and nobody watched it. The cgroup itself goes with its last process."""
    host, quiet = HostOf(state_dir=str(tmp_path / "state")), tmp_path / "quiet"
    async with opened(host) as first, opened(host) as second:
        server = await up(first, HIDDEN, str(quiet))
        cgroup = cgroup_of(server)
        if cgroup is None:
            pytest.skip("no cgroup of version 2 can be made here")
        daemon = int(quiet.read_text())
        kill_now(keeper_of(server.folder))
        kill_now(server.pid)
        report = await second.kill(server.run, 1)
        assert report.left == () and f"pid {daemon}" in " ".join(report.found)
        assert not is_running(daemon) and not cgroup.exists()


async def test_a_cgroup_is_emptied_by_the_kernel(local: HostLink, heirs: Heirs) -> None:
    """Without a keeper to which heirs come, nobody is as quick as processes that live for a millisecond."""
    server = await up(local, RESPAWNER, heirs.path)
    cgroup = cgroup_of(server)
    if cgroup is None or not (cgroup / "cgroup.kill").exists():
        pytest.skip("no cgroup that can be killed here: Linux 5.14, version 2, and a right to it")
    kill_now(keeper_of(server.folder))
    assert not heirs.are_gone()
    report = await local.kill(server.run, 0.1)
    assert report.left == ()
    assert heirs.are_gone() and not cgroup.exists()


# During a launch, twice, and while the link drops


async def test_a_kill_while_the_setup_lines_run(local: HostLink, tmp_path: Path) -> None:
    started = tmp_path / "started"
    setup = f"touch {started}\nsleep 600"
    launching = asyncio.create_task(local.launch(python(SLEEP, setup=setup)))
    await eventually(started.exists)
    [record] = await local.runs()
    assert record.alive
    report = await local.kill(record.run, 5, who="bob@desk")
    assert report.left == () and any("sleep" in found for found in report.found)
    with pytest.raises(HostError, match="was ended by bob@desk before its program ran"):
        await launching


async def test_two_kills_at_once(tmp_path: Path) -> None:
    host = HostOf(state_dir=str(tmp_path / "state"))
    async with opened(host) as one, opened(host) as two:
        server = await up(one, STUBBORN)
        first, second = await asyncio.gather(one.kill(server.run, 0.5), two.kill(server.run, 0.5))
        assert first.left == second.left == ()
        assert {*first.signals, *second.signals} == {"SIGTERM", "SIGKILL"}
        assert not is_running(server.pid)


async def test_a_kill_is_carried_through_without_the_link(server: Sshd, tmp_path: Path) -> None:
    """sshd's processes die while a stubborn server has its grace; who asks again is told what the first kill took."""
    async with opened(ssh_host(server, tmp_path / "state")) as link:
        one = await up(link, STUBBORN)
        killing = asyncio.create_task(link.kill(one.run, 1.5, who="alice@desk"))
        await eventually((one.folder / "stop.json").exists)
        assert server.kill_sessions()
        with pytest.raises(HostError):
            await killing
        assert is_running(one.pid)
        await eventually(lambda: not is_running(one.pid))
        await eventually(lambda: "report" in json.loads((one.folder / "kill.json").read_text()))
        await link.open()
        report = await link.kill(one.run, 1.0, again=True)
        assert (report.left, report.signals) == ((), ("SIGTERM", "SIGKILL"))
        assert f"pid {one.pid}" in " ".join(report.found)


async def test_a_closed_session_does_not_cut_its_kill_short(tmp_path: Path) -> None:
    host = HostOf(state_dir=str(tmp_path / "state"))
    async with opened(host) as keeping, opened(host) as link:
        server = await up(keeping, STUBBORN)
        killing = asyncio.create_task(link.kill(server.run, 1.0))
        await eventually((server.folder / "stop.json").exists)
        agent = agent_pid(link)
        await link.close()
        with pytest.raises(HostError):
            await killing
        assert not is_running(agent)
        await eventually(lambda: not is_running(server.pid))


# Sockets and GPUs


async def test_a_listening_socket_that_somebody_else_keeps_open_is_told(local: HostLink, tmp_path: Path) -> None:
    """It was handed to a process that is none of the run's: not killed, but its port is not free."""
    way = tmp_path / "way"
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import socket, sys, time\ns = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n"
            "print('listening', flush=True)\nkept = socket.recv_fds(s.accept()[0], 1, 1)\n"
            "print('kept', flush=True)\ntime.sleep(600)",
            str(way),
        ],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert holder.stdout and holder.stdout.readline() == b"listening\n"
        code = (
            "import socket, sys\ns = socket.create_server(('127.0.0.1', 0))\nu = socket.socket(socket.AF_UNIX)\n"
            "u.connect(sys.argv[1]); socket.send_fds(u, [b'x'], [s.fileno()])\n" + SLEEP
        )
        server = await up(local, code, str(way))
        assert holder.stdout.readline() == b"kept\n"
        report = await local.kill(server.run, 5, settle=0.5)
        [left] = report.left
        assert left.startswith("port ") and f"pid {holder.pid}" in left
        assert holder.poll() is None
    finally:
        holder.kill()
        holder.wait()


@asynccontextmanager
async def with_gpus(tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HostLink]:
    """A link whose host has a small program called nvidia-smi."""
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n" + script)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    async with opened(HostOf(state_dir=str(tmp_path / "state"))) as link:
        yield link


async def killed_with_gpus(link: HostLink, holders: Path, pids: str, settle: float = 20.0) -> KillReport:
    """Kill a server in whose name the driver holds memory: ``pids`` may name its ``PID``."""
    server = await up(link, SLEEP)
    holders.write_text(pids.replace("PID", str(server.pid)))
    return await link.kill(server.run, 5, settle=settle)


async def test_gpu_memory_that_outlives_its_process_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver lists the dead process twice, then no more."""
    holders, asked = tmp_path / "holders", tmp_path / "asked"
    script = f'echo "$@" >> {asked}\n[ $(wc -l < {asked}) -gt 2 ] || cat {holders}\n'
    async with with_gpus(tmp_path, script, monkeypatch) as link:
        report = await killed_with_gpus(link, holders, "PID, 18432\n1, 500\n")
    assert (report.left, report.gpu) == ((), "no GPU memory held")
    assert len(asked.read_text().splitlines()) == 3


async def test_gpu_memory_that_stays_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holders = tmp_path / "holders"
    async with with_gpus(tmp_path, f"cat {holders}\n", monkeypatch) as link:
        report = await killed_with_gpus(link, holders, "PID, 18432\nPID, 1000\n1, 500\n", settle=0.5)
        [left] = report.left
        assert left.endswith("(gone) holds 19432 MiB of GPU memory")
        holders.write_text("")


async def test_a_gpu_tool_that_fails_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with with_gpus(tmp_path, "echo cannot talk to the driver; exit 9\n", monkeypatch) as link:
        report = await killed_with_gpus(link, tmp_path / "holders", "")
    assert (report.left, report.gpu) == ((), "nvidia-smi failed: cannot talk to the driver")


async def test_a_host_without_gpus_says_so(local: HostLink, monkeypatch: pytest.MonkeyPatch) -> None:
    server = await up(local, SLEEP)
    report = await local.kill(server.run, 5)
    expected = "no GPU memory held" if shutil.which("nvidia-smi") else "no GPU tool (nvidia-smi) on this host"
    assert (report.left, report.gpu) == ((), expected)
