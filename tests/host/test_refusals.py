"""Launches that cannot work: one clear message each, and nothing is started."""

# ruff: noqa: ASYNC240  # small files of the test
from __future__ import annotations

import asyncio
import os
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.host.links import Ear, HostOf, follow, opened, python, refusal
from tests.waiting import eventually
from tui.host.api import HostError, HostErrorKind, RunRecord
from tui.host.link import HostLink

SLEEP = "import time; time.sleep(600)"


@pytest.mark.parametrize(
    ("changed", "message", "failure"),
    [
        ({"cwd": "/no/such/folder"}, "working directory /no/such/folder does not exist", "bad_argument"),
        ({"cwd": "/etc/hostname"}, "is not a directory", "bad_argument"),
        ({"argv": ("/no/such/python", "-c", "")}, "interpreter /no/such/python does not exist", "bad_argument"),
        ({"argv": ("/etc/passwd", "-c", "")}, "/etc/passwd is not executable", "bad_argument"),
        ({"argv": ("no-such-command",)}, "no-such-command is not on the PATH", "bad_argument"),
        ({"log_link": "/proc/no/x.log"}, "log path /proc/no/x.log cannot be written", "bad_argument"),
        ({"log_link": "/dev/null/x.log"}, "log path /dev/null/x.log cannot be written", "bad_argument"),
        ({"log_link": "/etc"}, "log path /etc is a directory", "bad_argument"),
    ],
)
async def test_what_cannot_work(local: HostLink, changed: dict[str, Any], message: str, failure: str) -> None:
    error = await refusal(local, python(SLEEP, **changed))
    assert message in error.message
    assert (error.kind, error.failure) == (HostErrorKind.REFUSED, failure)
    assert error.remedy
    assert await local.runs() == []


async def test_a_file_that_is_no_program(local: HostLink, tmp_path: Path) -> None:
    """Executable, but the kernel cannot run it: known only when it is tried."""
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o755)
    error = await refusal(local, python("", argv=(str(tmp_path / "broken"),)))
    assert "cannot be started: No such file or directory" in error.message

    async def ended() -> bool:
        return not (await local.runs())[0].alive

    await eventually(ended)


async def test_setup_lines_that_fail(link: HostLink) -> None:
    error = await refusal(link, python(SLEEP, setup="echo about to fail\nno_such_command\necho never"))
    assert "setup lines failed with status 127" in error.message
    assert "no_such_command: command not found" in error.message
    [record] = await link.runs()
    assert not record.alive
    text = Path(record.log).read_text()
    assert "about to fail" in text and "never" not in text


async def test_a_taken_port_says_by_whom(link: HostLink) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        error = await refusal(link, python(SLEEP, port=port))
        assert error.failure == "port_in_use"
        assert f"Port {port} is taken by pid {os.getpid()} (" in error.message


async def test_a_server_that_already_runs(link: HostLink) -> None:
    run = await link.launch(python(SLEEP))
    error = await refusal(link, replace(python(SLEEP), who="bob@laptop"))
    assert f"already runs as pid {run.pid} (run {run.run}), launched by alice@desk at 20" in error.message
    assert (await link.kill(run.run, 5)).left == ()
    again = await link.launch(python(SLEEP))
    assert again.run != run.run


async def test_two_people_launch_at_once(tmp_path: Path) -> None:
    """One wins; the other is told who, and when."""
    host = HostOf(state_dir=str(tmp_path / "state"))
    async with opened(host) as alice, opened(host) as bob:
        for number in range(3):
            specs = [replace(python(SLEEP, server=f"s{number}"), who=who) for who in ("alice@desk", "bob@laptop")]
            outcomes = await asyncio.gather(alice.launch(specs[0]), bob.launch(specs[1]), return_exceptions=True)
            won = [outcome for outcome in outcomes if isinstance(outcome, RunRecord)]
            lost = [outcome for outcome in outcomes if isinstance(outcome, HostError)]
            assert len(won) == len(lost) == 1, outcomes
            assert won[0].who in lost[0].message


async def test_the_lock_is_held_while_anything_of_the_server_lives(local: HostLink) -> None:
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True)"
    ear = Ear(local)
    run = await follow(local, python(code))
    ended = await ear.ended(run.run)
    assert ended.exit and len(ended.exit.left) == 1
    error = await refusal(local, python(SLEEP))
    assert f"pid {ended.exit.left[0]} " in error.message and "hcs-tui down" in error.remedy
    assert (await local.kill(run.run, 1)).left == ()
    assert (await local.launch(python(SLEEP))).alive


async def test_a_state_folder_that_cannot_be_written() -> None:
    async with opened(HostOf(state_dir="/proc/nothing")) as link:
        error = await refusal(link, python(SLEEP))
        assert "state folder cannot be written" in error.message
        assert "state_dir" in error.remedy


async def test_names_cannot_leave_the_state_folder(local: HostLink, tmp_path: Path) -> None:
    run = await local.launch(replace(python("pass"), profile="../../x", server=".."))
    assert Path(run.log).resolve().is_relative_to(tmp_path / "state")
    assert [record.server for record in await local.runs("../../x", "..")] == [".."]


async def test_unknown_runs(local: HostLink) -> None:
    for ask in (local.follow("nope"), local.watch("nope"), local.kill("nope", 1), local.read("nope", 0, 1)):
        with pytest.raises(HostError, match="no run nope") as found:
            await ask
        assert found.value.kind is HostErrorKind.REFUSED


async def test_check_tells_everything_and_changes_nothing(link: HostLink, tmp_path: Path) -> None:
    rows = await link.check(
        python("", argv=(sys.executable, "-m", "sglang.launch_server", "--model-path", "/no/model"),
               cwd=str(tmp_path), log_link="logs/x.log", port=1)
    )  # fmt: skip
    results = {name: result for name, result, _, _ in rows}
    assert results["working directory"] == results["interpreter"] == results["log"] == results["port"] == "pass"
    assert results["model"] == "fail"
    assert results["sglang"] in ("fail", "pass")
    assert {"memory", "disk", "GPUs", "open files", "locked memory"} <= set(results)
    assert all(advice for _, result, _, advice in rows if result == "fail")
    assert not (tmp_path / "logs").exists()
    assert await link.runs() == []
