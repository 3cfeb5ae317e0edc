"""Nothing that tests start outlives them: small sessions with these tests' own rules, which end badly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.host.sshd import require_sshd
from tests.leftovers import GRACE
from tests.processes import is_running
from tests.waiting import DEADLINE, until

ROOT = Path(__file__).parents[1]
# All that lives on by design: a server and its keeper on a host behind sshd, with the agent; and a daemon.
ENDLESS = """
import asyncio, json, subprocess, sys
from pathlib import Path
from tests.host.links import opened, python, ssh_host
from tests.host.sshd import start_sshd

SLEEP = "import time; time.sleep(600)"
DAEMON = "import os\\nif os.fork(): os._exit(0)\\nos.setsid(); print(os.getpid(), flush=True); os.close(1)\\n" + SLEEP

async def test_that_never_ends(tmp_path):
    note = Path(NOTE)
    sshd = start_sshd(tmp_path / "sshd")
    async with opened(ssh_host(sshd, tmp_path / "state")) as link:
        run = await link.launch(python(SLEEP))
        keeper = json.loads((Path(run.log).parent / "process.json").read_text())["keeper"]["pid"]
        daemon = int(subprocess.run([sys.executable, "-c", DAEMON], stdout=subprocess.PIPE).stdout)
        pids = [sshd.process.pid, *sshd.below(), run.pid, keeper, daemon]
        note.with_suffix(".new").write_text(" ".join(map(str, pids)))
        note.with_suffix(".new").rename(note)
        await asyncio.Event().wait()
"""
FORGETFUL = """
import subprocess, sys
from pathlib import Path

def test_that_forgets():
    Path(NOTE).write_text(str(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid))
"""


def session(folder: Path, code: str) -> subprocess.Popen[str]:
    """pytest on ``code``, which writes pids to the file ``NOTE``."""
    test = folder / "test_inner.py"
    test.write_text(f"NOTE = {str(folder / 'note')!r}\n{code}")
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest"]
    environment = {**os.environ, GRACE: "0.5"}
    return subprocess.Popen(
        [*command, "-p", "no:cacheprovider", str(test)], cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment
    )


def noted(folder: Path) -> list[int]:
    return [int(pid) for pid in (folder / "note").read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_a_session_that_was_ended(tmp_path: Path, number: signal.Signals) -> None:
    require_sshd()
    running = session(tmp_path, ENDLESS)
    until(lambda: (tmp_path / "note").exists() or running.poll() is not None)
    pids = noted(tmp_path)
    assert len(pids) >= 5 and all(is_running(pid) for pid in pids)
    running.send_signal(number)
    running.communicate(timeout=DEADLINE)
    until(lambda: not any(is_running(pid) for pid in pids))


def test_a_test_that_leaves_a_process_is_an_error(tmp_path: Path) -> None:
    told, _ = session(tmp_path, FORGETFUL).communicate(timeout=DEADLINE)
    [pid] = noted(tmp_path)
    assert "1 passed, 1 error" in told and f"{pid} {sys.executable} -c import time; time.sleep(600)" in told
    assert not is_running(pid)
