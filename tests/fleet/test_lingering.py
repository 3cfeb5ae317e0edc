"""Servers that have failed while their processes live on: ended and restarted, or left alone, on real processes."""

# small files of the test
from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.fleet.rig import DEADLINE, profile, reach, running, session
from tests.processes import is_running
from tui.fleet.api import Kill, Launch
from tui.fleet.fleet import Fleet
from tui.fleet.lingering import SERVES
from tui.fleet.policy import Limits
from tui.profile.model import Profile
from tui.report.restarts import upcoming
from tui.report.text import remarks
from tui.sglang import verdict
from tui.sglang.model import Phase
from tui.sglang.restarts import Restarts

LIMITS = Limits(first=0.05, longest=0.2, restarts=2, poll=0.2, lingering=0.3)
PATIENT = Limits(first=0.05, longest=0.2, restarts=2, poll=0.2, lingering=600.0)
# Its first run fails at once and lives on, with a child; later ones serve. What it does then, and at SIGTERM, is told
# by its arguments: port, folder, status of /health, "clean" | "deaf" | "soon", the words of its failure.
SERVER = """
import http.server, os, pathlib, signal, subprocess, sys, time
port, mark, health, way, words = int(sys.argv[1]), pathlib.Path(sys.argv[2], "failed"), *sys.argv[3:6]
failed = not mark.exists()
def end(*_):
    print("[2026-11-30 10:00:42] SIGTERM received. signum=None frame=None. Draining requests", flush=True)
    print("[2026-11-30 10:00:42] Gracefully exiting...", flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN if way == "deaf" else end)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(health) if failed else 200)
        self.end_headers()
    def log_message(self, *words): pass
print("[2026-11-30 10:00:40] The server is fired up and ready to roll!", flush=True)
if failed:
    mark.touch()
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print("[2026-11-30 10:00:41] " + words.replace("|", chr(10)), flush=True)
    if way == "soon":
        os._exit(9)
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
DIED = 'Scheduler hit an exception: Traceback (most recent call last):|  File "/s.py", line 1, in f|ValueError: boom'
REPEATS = "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use"


def rig(folder: Path, *, health: int = 503, way: str = "clean", words: str = DIED, restart: str = "always") -> Profile:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-c", SERVER, "{port}", str(folder), str(health), way, words]
    return profile(folder, ["plain"], command=command, restart=restart, stop_grace="1s")


def told(fleet: Fleet) -> Restarts:
    return fleet.supervisors["gpu0"].state.restarts


async def until(fleet: Fleet, condition: Callable[[], bool]) -> None:
    assert await fleet.until(condition, DEADLINE), (fleet.states(), told(fleet))


async def fail(fleet: Fleet) -> tuple[int, Path]:
    """Launch it; its pid, and the folder of its run, once it has failed."""
    await fleet.act(Launch("gpu0"))
    supervisor = fleet.supervisors["gpu0"]
    await until(fleet, lambda: supervisor.state.log.fatal)
    run = supervisor.state.run
    assert run and run.pid
    return run.pid, Path(run.log).parent


async def test_what_has_failed_and_lives_on_is_ended_and_restarted(tmp_path: Path) -> None:
    for way in ("clean", "deaf"):  # whatever SIGTERM makes of it, it was no clean end
        async with running(rig(tmp_path / way, way=way, restart="on-failure"), tmp_path, restarts=True,
                           limits=LIMITS) as fleet:  # fmt: skip
            pid, folder = await fail(fleet)
            await until(fleet, lambda: told(fleet).count == 1)
            await reach(fleet, "gpu0", Phase.READY)
            assert not is_running(pid) and told(fleet).ends_at is None
            assert not (folder / "stop.json").exists(), "nobody wished that it stays down"


async def test_it_is_told_before(tmp_path: Path) -> None:
    async with running(rig(tmp_path), tmp_path, restarts=True, limits=PATIENT) as fleet:
        pid, _ = await fail(fleet)
        await until(fleet, lambda: told(fleet).ends_at is not None)
        state = fleet.supervisors["gpu0"].state
        assert verdict.phase(state) is Phase.FAILED and is_running(pid)
        now = time.time()
        assert "then restart 1 of 2" in upcoming(state, now)
        assert any(f"pid {pid} lives on" in line for line in remarks(state, now, 200))


async def test_one_that_ends_by_itself_is_not_touched(tmp_path: Path) -> None:
    async with running(rig(tmp_path, way="soon"), tmp_path, restarts=True, limits=PATIENT) as fleet:
        await fleet.act(Launch("gpu0"))
        await until(fleet, lambda: told(fleet).count == 1)
        await reach(fleet, "gpu0", Phase.READY)


async def test_one_that_answers_is_left_alone(tmp_path: Path) -> None:
    async with running(rig(tmp_path, health=200), tmp_path, restarts=True, limits=LIMITS) as fleet:
        pid, _ = await fail(fleet)
        await until(fleet, lambda: SERVES in fleet.supervisors["gpu0"].state.notes)
        assert is_running(pid) and told(fleet).count == 0


async def test_without_a_policy_it_is_only_told(tmp_path: Path) -> None:
    for restart, words in (("never", DIED), ("always", REPEATS)):
        async with running(rig(tmp_path / restart, words=words, restart=restart), tmp_path, restarts=True,
                           limits=LIMITS) as fleet:  # fmt: skip
            pid, _ = await fail(fleet)
            state = fleet.supervisors["gpu0"].state
            assert not await fleet.until(lambda: told(fleet).ends_at is not None, 1.0)
            assert is_running(pid)
            assert any("lives on" in line for line in remarks(state, time.time(), 200))


async def test_a_kill_of_the_user_keeps_it_down(tmp_path: Path) -> None:
    async with running(rig(tmp_path), tmp_path, restarts=True, limits=PATIENT) as fleet:
        pid, _ = await fail(fleet)
        await until(fleet, lambda: told(fleet).ends_at is not None)
        assert (await fleet.act(Kill("gpu0"))).ok
        await reach(fleet, "gpu0", Phase.STOPPED)
        assert told(fleet).ends_at is None and told(fleet).next_at is None and not is_running(pid)


async def test_only_the_session_that_restarts_ends_it(tmp_path: Path) -> None:
    made = rig(tmp_path)
    async with session(made, tmp_path / "one", restarts=True, limits=PATIENT) as one:
        assert told(one).here
        pid, _ = await fail(one)
        async with running(made, tmp_path / "two", restarts=True, limits=LIMITS) as two:
            await until(two, lambda: verdict.lingers(two.supervisors["gpu0"].state))
            assert not await two.until(lambda: told(two).ends_at is not None, 1.0)
            assert is_running(pid)
            await one.close()
            await until(two, lambda: told(two).count == 1)
            assert not is_running(pid)
