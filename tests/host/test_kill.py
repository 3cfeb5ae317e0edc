"""A kill leaves nothing, whatever the processes do; and it touches nobody else."""

# ruff: noqa: ASYNC220  # processes of the test
from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from pathlib import Path

from tests.host.links import Ear, HostOf, agent_pid, follow, opened, python
from tests.processes import is_running, kill_now
from tests.waiting import eventually
from tui.host.agent.requests import LOOKS
from tui.host.api import RunEnded
from tui.host.link import HostLink

# Each child writes its pid to the log, one a line, so that the test can look for itself.
TREE = """
import os, signal, subprocess, sys, time
def child(code, **more):
    subprocess.Popen([sys.executable, "-c", "import os, sys, time, signal\\n" + code], **more)
say = "os.write(1, b'%d\\\\n' % os.getpid())\\n"
child(say + "time.sleep(600)")
child("os.setsid()\\n" + say + "time.sleep(600)")
child("os.setpgid(0, 0)\\n" + say + "time.sleep(600)")
child("signal.signal(signal.SIGTERM, signal.SIG_IGN)\\n" + say + "time.sleep(600)")
child(say + "time.sleep(600)", start_new_session=True, env={})
double = "if os.fork(): os._exit(0)\\nos.setsid()\\nif os.fork(): os._exit(0)\\n" + say + "time.sleep(600)"
child(double)
child(double, env={})
quiet = double.replace(say, "open(sys.argv[1], 'w').write(str(os.getpid()))\\n")
subprocess.Popen([sys.executable, "-c", "import os, sys, time\\n" + quiet, sys.argv[1]], env={},
                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
os.write(1, b"%d\\n" % os.getpid())
time.sleep(600)
"""


async def tree(link: HostLink, ear: Ear, tmp_path: Path, code: str = TREE) -> tuple[str, list[int]]:
    """A running tree: (run, pids of its nine processes)."""
    quiet = tmp_path / "quiet"
    run = await follow(link, python(code, str(quiet)))
    await ear.until(lambda: ear.logs.get(run.run, b"").count(b"\n") == 8)
    await eventually(lambda: quiet.exists() and quiet.read_text())
    pids = [int(line) for line in ear.logs[run.run].split()] + [int(quiet.read_text())]
    assert len(pids) == 9 and not [pid for pid in pids if not is_running(pid)], bytes(ear.logs[run.run])
    return run.run, pids


async def test_nothing_is_left_of_a_tree_that_scatters(link: HostLink, tmp_path: Path) -> None:
    ear = Ear(link)
    run, pids = await tree(link, ear, tmp_path)
    report = await link.kill(run, 1.0)
    assert report.left == () and report.signals == ("SIGTERM", "SIGKILL")
    assert {int(found.split()[1]) for found in report.found} >= set(pids)
    assert not [pid for pid in pids if is_running(pid)]
    ended = await ear.ended(run)
    assert ended.exit and ended.exit.signal == "SIGTERM"
    [record] = await link.runs()
    assert not record.alive and record.exit and record.exit.left == () and record.stop_asked
    again = await link.kill(run, 1.0)
    assert (again.found, again.signals, again.left) == ((), (), ())


async def test_daemons_are_found_although_the_keeper_was_killed(local: HostLink, tmp_path: Path) -> None:
    """Without subreaper: by session and tree, by log, by environment."""
    ear = Ear(local)
    run, pids = await tree(local, ear, tmp_path, TREE.replace("sys.argv[1]], env={}", "sys.argv[1]]"))
    keeper = _keeper(ear, Path((await local.runs())[0].log).parent)
    kill_now(keeper)
    report = await local.kill(run, 0.5)
    assert report.left == ()
    assert not [pid for pid in pids if is_running(pid)]


async def test_sigterm_goes_to_the_main_process_alone(local: HostLink) -> None:
    """The server drains: its children must not hear of it before."""
    code = (
        "import os, signal, subprocess, sys, time\n"
        "c = subprocess.Popen([sys.executable, '-c', 'import signal, time\\n"
        'signal.signal(signal.SIGTERM, lambda *a: print("child got it", flush=True))\\n'
        'print("up", flush=True)\\ntime.sleep(60)\'])\n'
        "def stop(*a):\n    time.sleep(0.3); print('drained', flush=True); c.kill(); c.wait(); os._exit(0)\n"
        "signal.signal(signal.SIGTERM, stop); print('main', flush=True); time.sleep(60)\n"
    )
    ear = Ear(local)
    run = await follow(local, python(code))
    await ear.until(lambda: {b"up", b"main"} <= set(bytes(ear.logs.get(run.run, b"")).split(b"\n")))
    report = await local.kill(run.run, 10)
    assert (report.signals, report.left) == (("SIGTERM",), ())
    assert b"child got it" not in await ear.log_until(run.run, b"drained\n")
    ended = await ear.ended(run.run)
    assert ended.exit and ended.exit.status == 0


async def test_a_server_that_ignores_sigterm(link: HostLink) -> None:
    ear = Ear(link)
    code = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(600)"
    )
    run = await follow(link, python(code))
    await ear.log_until(run.run, b"up\n")
    report = await link.kill(run.run, 0.3)
    assert (report.signals, report.left) == (("SIGTERM", "SIGKILL"), ())
    ended = await ear.ended(run.run)
    assert ended.exit and (ended.exit.signal, ended.exit.oom_killed) == ("SIGKILL", False)


async def test_neighbours_live_on(local: HostLink) -> None:
    """Same program, same words on the command line, even the run's name: not of the run, so not touched."""
    run = await local.launch(python("import time; time.sleep(600)"))
    other = await local.launch(python("import time; time.sleep(600)", server="other"))
    neighbour = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", run.run, run.log])
    try:
        assert (await local.kill(run.run, 5)).left == ()
        assert neighbour.poll() is None
        assert [record.run for record in await local.runs() if record.alive] == [other.run]
    finally:
        neighbour.kill()
        neighbour.wait()


async def test_a_reused_pid_is_not_ours(local: HostLink) -> None:
    """``process.json`` with the pid of somebody else, started at another time."""
    import json

    run = await local.launch(python("pass"))
    ear = Ear(local)
    await local.watch(run.run)
    await ear.ended(run.run)
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        path = Path(run.log).parent / "process.json"
        process = json.loads(path.read_text())
        path.write_text(json.dumps({**process, "pid": stranger.pid, "session": stranger.pid}))
        [record] = await local.runs()
        assert not record.alive
        report = await local.kill(run.run, 1)
        assert report.found == () and stranger.poll() is None
        path.write_text(json.dumps({**process, "pid": stranger.pid, "boot_id": "another boot"}))
        assert not (await local.runs())[0].alive
    finally:
        stranger.kill()
        stranger.wait()


async def test_a_silent_death_is_told(local: HostLink) -> None:
    ear = Ear(local)
    run = await follow(local, python("import time; print('up', flush=True); time.sleep(600)"))
    await ear.log_until(run.run, b"up\n")
    assert run.pid
    kill_now(run.pid)
    ended = await ear.ended(run.run)
    assert ended.exit and ended.exit.signal == "SIGKILL"


async def test_a_death_after_the_keepers_is_told_as_well(local: HostLink) -> None:
    ear = Ear(local)
    run = await follow(local, python("import time; print('up', flush=True); time.sleep(600)"))
    await ear.log_until(run.run, b"up\n")
    kill_now(_keeper(ear, Path(run.log).parent))
    assert run.pid
    kill_now(run.pid)
    ended = await ear.ended(run.run)
    assert ended.exit is None


async def test_a_run_that_ended_before_it_was_watched(local: HostLink) -> None:
    ear = Ear(local)
    first = await follow(local, python("raise SystemExit(3)"))
    await ear.ended(first.run)
    await local.watch(first.run)
    await ear.until(lambda: len(ear.of(RunEnded)) == 2)
    assert ear.of(RunEnded)[0] == ear.of(RunEnded)[1]


async def test_servers_outlive_agent_and_link(tmp_path: Path) -> None:
    host = HostOf(state_dir=str(tmp_path / "state"))
    from tui.host.connect import LocalLink

    first = LocalLink(host)
    await first.open()
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    code = "import sys, time; open(sys.argv[1]).read(); print('alone', flush=True); time.sleep(600)"
    run = await first.launch(python(code, str(gate)))
    await first.close()
    await asyncio.to_thread(gate.write_text, "go on")
    async with opened(host) as second:
        [found] = await second.runs()
        assert (found.run, found.alive, found.pid) == (run.run, True, run.pid)
        ear = Ear(second)
        await second.follow(run.run)
        await second.watch(run.run)
        assert await ear.log_until(run.run, b"alone\n") == b"alone\n"
        report = await second.kill(run.run, 20)
        assert (report.left, report.signals) == ((), ("SIGTERM",))
        ended = await ear.ended(run.run)
        assert ended.exit and ended.exit.signal == "SIGTERM"


def _keeper(ear: Ear, folder: Path) -> int:
    import json

    pid: int = json.loads((folder / "process.json").read_text())["keeper"]["pid"]
    assert is_running(pid), ear
    return pid


async def test_many_kills_at_once_take_turns_with_their_second_looks(local: HostLink) -> None:
    """A fresh process for each of them at the same time would starve the agent."""
    sleeper = "import time; time.sleep(600)"
    runs = await asyncio.gather(*(local.launch(python(sleeper, server=f"s{n}")) for n in range(16)))
    most = 0
    killing = asyncio.gather(*(local.kill(run.run, 5.0) for run in runs))
    while not killing.done():
        most = max(most, looks_below(agent_pid(local)))
        await asyncio.wait([killing], timeout=0.002)
    reports = await killing
    assert all(report.left == () and len(report.found) == 1 for report in reports)
    assert 1 <= most <= LOOKS


def looks_below(agent: int) -> int:
    """How many second looks run: children of the agent with ``look`` on their command line."""
    count = 0
    for pid in Path(f"/proc/{agent}/task/{agent}/children").read_text().split():
        with contextlib.suppress(OSError):
            count += b"\0look\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return count
