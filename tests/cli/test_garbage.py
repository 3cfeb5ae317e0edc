"""Commands where a server's files on its host are not what they should be: real servers, real agents, real commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.test_frame import MAIN, ROOT, Ran, hcs_tui
from tests.host.links import Ear, HostOf, opened, python
from tests.host.test_rotation import ECHO
from tests.ports import free_port
from tests.waiting import eventually
from tui.host.api import RunRecord

READY = "The server is fired up and ready to roll!"


@dataclass
class Server:
    """One that says what it is told."""

    run: RunRecord
    profile: Path
    order: Path

    @property
    def log(self) -> Path:
        return Path(self.run.log)

    @property
    def folder(self) -> Path:
        return self.log.parent

    def say(self, text: str) -> None:
        with self.order.open("a") as order:
            order.write(text + "\n")

    def ran(self, *words: str) -> Ran:
        """A command with an empty cache."""
        return hcs_tui(*(str(self.profile) if word == "P" else word for word in words), env=self.env)

    def begun(self, *words: str) -> subprocess.Popen[str]:
        line = [sys.executable, "-c", MAIN, *(str(self.profile) if word == "P" else word for word in words)]
        env = {**os.environ, "PYTHONPATH": str(ROOT), **self.env}
        return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)

    @property
    def env(self) -> dict[str, str]:
        return {"HCS_HOME": str(self.profile.parent / "home")}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    hosts = {"here": {"ssh": "local", "python": sys.executable, "state_dir": str(tmp_path / "state")}}
    servers = {"s": {"host": "here", "command": ["/bin/true"], "port": free_port()}}
    profile = tmp_path / "p.yaml"
    profile.write_text(json.dumps({"name": "p", "hosts": hosts, "servers": servers}))
    order = tmp_path / "order"
    order.touch()
    async with opened(HostOf(state_dir=str(tmp_path / "state"))) as link:
        made = Server(await link.launch(python(ECHO, str(order), str(tmp_path / "done"))), profile, order)
        made.say(f"one\n{READY}")
        await eventually(lambda: READY in Path(made.run.log).read_text())
        ear = Ear(link)
        await link.watch(made.run.run)
        yield made
        assert not ear.flaws


async def test_a_removed_log_is_read_by_sessions_that_begin_later(server: Server) -> None:
    server.log.unlink()
    server.say("two")
    await eventually(lambda: (server.order.parent / "done").stat().st_size == 3)
    logs = server.ran("logs", "P", "s", "-n", "2")
    assert (logs.code, logs.out) == (0, f"{READY}\ntwo\n") and "log file was removed" in logs.err
    [run] = json.loads(server.ran("runs", "P", "--json").out)["runs"]
    assert (run["phase"], run["log_bytes"]) == ("ready", len(f"one\n{READY}\ntwo\n"))
    status = server.ran("status", "P")
    assert " warmup " in status.out and "log file was removed" in status.out
    assert server.run.pid is not None
    os.kill(server.run.pid, 9)
    await eventually((server.folder / "exit.json").exists)
    gone = server.ran("logs", "P", "s")
    assert (gone.code, gone.out) == (1, "") and "its log is gone" in gone.err


async def test_a_renamed_log_is_read_where_its_server_writes(server: Server) -> None:
    server.log.rename(server.folder / "server.1")
    server.log.touch()
    logs = server.ran("logs", "P", "s")
    assert logs.out == f"one\n{READY}\n" and "renamed to server.1" in logs.err


async def test_logs_say_that_the_log_began_anew(server: Server) -> None:
    with server.begun("logs", "P", "s", "-f") as follow:
        assert follow.stdout and follow.stderr and server.run.pid
        assert follow.stdout.readline() == "one\n" and READY in follow.stdout.readline()
        server.say("two")  # it follows, once this has come
        assert follow.stdout.readline() == "two\n"
        os.truncate(server.run.log, 0)
        server.say("new")
        assert "its log was cut short" in follow.stderr.readline()
        assert follow.stdout.readline() == "new\n"
        os.kill(server.run.pid, 9)
        out, err = follow.communicate(timeout=60)
        assert (follow.returncode, out) == (0, ""), err


async def test_a_run_folder_full_of_garbage_is_named_and_harms_no_command(server: Server) -> None:
    bad = server.folder.with_name("20991130T140000Z-00000X")
    bad.mkdir()
    for name in ("process.json", "exit.json"):
        (bad / name).write_text(json.dumps({"at": "z", "pid": {}, "left": 5}))
    os.mkfifo(bad / "run.json")
    for what in ("is not a file", "server is not text"):
        runs = server.ran("runs", "P")
        assert runs.code == 0 and "unreadable: run.json" in runs.out and what in " ".join(runs.out.split())
        assert server.run.run in runs.out.splitlines()[1] and " ready " in runs.out.splitlines()[1]
        assert "1970" not in runs.out
        status = server.ran("status", "P")
        assert status.code == 0 and " warmup " in status.out  # its log was read, and nothing listens on its port
        assert READY in server.ran("logs", "P", "s").out
        assert server.run.run in server.ran("runs", "compare", f"{server.profile}:s", f"{server.profile}:s").out
        assert server.ran("runs", "prune", "P", "--dry-run").code == 0
        (bad / "run.json").unlink()
        wrong = {"run": 5, "server": {}, "profile": [], "started": "z", "argv": 7, "port": "x", "who": {}}
        (bad / "run.json").write_text(json.dumps(wrong))
    down = server.ran("down", "P", "--grace", "5")
    assert down.code == 0, down
