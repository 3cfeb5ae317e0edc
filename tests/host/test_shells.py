"""The command line under every login shell, and the agent under every Python that it promises."""

# ruff: noqa: ASYNC240  # small files and processes of the test, polled where nothing tells
from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.links import Ear, HostOf, end_all, follow, opened, python
from tui.host import source
from tui.host.api import HostError, HostErrorKind
from tui.host.channel import PipeChannel
from tui.host.connect import LocalLink
from tui.host.link import HostLink
from tui.host.session import Session

SHELLS = ["sh", "bash", "dash", "zsh", "fish", "tcsh"]


def test_the_command_holds_nothing_that_a_shell_could_read_otherwise() -> None:
    line = source.command("HA" + "0" * 16)
    outer = line.removeprefix("exec /bin/sh -c '").removesuffix("'")
    assert not set(outer) & set("'\\!\n`")
    inner = re.findall(r'"([^"]*)"', outer)
    assert inner and not set("".join(inner)) & set("$`\\")


@pytest.mark.parametrize("path", ["/opt/py thon", "$(x)", "a;b", "'", "a\nb", ""])
def test_a_python_path_that_could_break_out_is_refused(path: str) -> None:
    with pytest.raises(HostError) as found:
        source.command("HA00", path)
    assert found.value.kind is HostErrorKind.CONFIG


@pytest.mark.parametrize("name", sorted(source.sources()))
def test_the_agent_is_python_3_8(name: str) -> None:
    text = source.sources()[name]
    tree = ast.parse(text, feature_version=(3, 8))
    newer = {"removeprefix", "removesuffix", "bit_count", "pairwise", "waitstatus_to_exitcode"}
    assert not newer & {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    allowed = sys.stdlib_module_names | {"__future__", "hcs_agent"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert all(alias.name.split(".")[0] in allowed for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            assert node.module and node.module.split(".")[0] in allowed


@pytest.mark.parametrize("shell", SHELLS)
async def test_under_a_login_shell(shell: str, tmp_path: Path) -> None:
    """As sshd runs a command: ``$SHELL -c COMMAND``."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"no {shell} here")

    async def open_channel(mark: str) -> PipeChannel:
        pipe = asyncio.subprocess.PIPE
        command = source.command(mark)
        return PipeChannel(
            await asyncio.create_subprocess_exec(path, "-c", command, stdin=pipe, stdout=pipe, stderr=pipe)
        )

    link = HostLink("box", open_channel, {"state_dir": str(tmp_path)})
    try:
        assert (await link.open()).boot_id
    finally:
        await link.close()


EVIL = (
    "$(touch PWNED)", "`touch PWNED`", "; touch PWNED;", "'; touch PWNED; '", '"; touch PWNED; "', "\ntouch PWNED\n",
    "\\'; touch PWNED #", "!touch PWNED", "!!", "| touch PWNED", "& touch PWNED &", "> PWNED", "(touch PWNED)",
    "=touch",
    "~", "{a,b}", "*", "%self", "$HOME", "^a^b", "", "-x", "\t", "\\", "\u202e", "ü",
)  # fmt: skip
TELL = (
    "import json, os, sys, time; print(json.dumps([sys.argv[1:], os.environ['EVIL'], os.getcwd()]), flush=True);"
    "time.sleep(600)"
)


@pytest.mark.parametrize("shell", SHELLS)
async def test_no_value_breaks_out_of_its_argument(shell: str, tmp_path: Path) -> None:
    """Arguments, variables, folders and names that every shell would like to read reach the server as they are."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"no {shell} here")
    evil = "".join(EVIL).replace("/", "")
    folder = tmp_path / "; touch PWNED; $(touch PWNED) 'x' \"y\""
    folder.mkdir()

    async def open_channel(mark: str) -> PipeChannel:
        pipe = asyncio.subprocess.PIPE
        return PipeChannel(
            await asyncio.create_subprocess_exec(
                path, "-c", source.command(mark), stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder
            )
        )

    link = HostLink("box", open_channel, {"state_dir": str(folder / "state")})
    await link.open()
    try:
        ear = Ear(link)
        spec = python(TELL, *EVIL, server=evil[:60], profile=evil[:60], cwd=str(folder), env={"EVIL": evil},
                      log_link="logs/$(touch PWNED)'.log", who=evil)  # fmt: skip
        run = await follow(link, spec)
        told = json.loads(await ear.log_until(run.run, b"]\n"))
        assert told == [list(EVIL), evil, str(folder)]
        assert (folder / "logs/$(touch PWNED)'.log").resolve() == Path(run.log).resolve()
        assert (await link.kill(run.run, 5)).left == ()
    finally:
        await end_all(link)
        await link.close()
    assert not list(tmp_path.rglob("PWNED")) and not Path("PWNED").exists()


async def test_noise_of_login_files_is_skipped(tmp_path: Path) -> None:
    """Also noise that looks like a frame, and a login file that reads a line of ours."""

    async def open_channel(mark: str) -> PipeChannel:
        noise = "printf '\\253HC1\\0\\0\\0\\1motd\\n'; seq 1 20000; echo complaint >&2; "
        return await PipeChannel.open(noise + source.command(mark))

    link = HostLink("box", open_channel, {"state_dir": str(tmp_path)})
    try:
        assert (await link.open()).boot_id
    finally:
        await link.close()


@pytest.mark.parametrize(
    ("line", "told"),
    [("echo You may not; exit 1", "You may not"), ("exec cat", "no answer in 0.5 s"), ("exit 0", "the command ended")],
)
async def test_shells_that_run_nothing(line: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tui.host import session

    monkeypatch.setattr(session, "MARK_SECONDS", 0.5)
    link = HostLink("box", lambda mark: PipeChannel.open(line))
    with pytest.raises(HostError) as found:
        await link.open()
    assert found.value.kind is HostErrorKind.NO_AGENT
    assert told in found.value.message
    await link.close()


def pythons() -> Iterator[str]:
    """Other interpreters of this machine, from 3.8 on."""
    folders = [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep)]
    folders += sorted(Path.home().glob(".pyenv/versions/3.*/bin"))
    for minor in (8, 9, 10, 12, 13, 14):
        for folder in folders:
            path = folder / f"python3.{minor}"
            works = path.exists() and subprocess.run([path, "-ISc", ""], capture_output=True).returncode == 0
            if works:
                yield str(path)
                break


@pytest.mark.parametrize(
    "interpreter", list(pythons()) or [pytest.param("", marks=pytest.mark.skip("no other Python"))]
)
async def test_under_another_python(interpreter: str, tmp_path: Path) -> None:
    """Launch, follow, watch, kill."""
    host = HostOf(state_dir=str(tmp_path / "state"), python=interpreter)
    async with opened(host) as link:
        ear = Ear(link)
        run = await follow(link, python("import time; print('up', flush=True); time.sleep(600)"))
        await ear.log_until(run.run, b"up\n")
        assert (await link.kill(run.run, 5)).left == ()
        ended = await ear.ended(run.run)
        assert ended.exit and ended.exit.signal == "SIGTERM"


async def test_a_python_too_old_says_so(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text(f"#!/bin/sh\nexec {sys.executable} -ISBuc 'import sys; sys.version_info = (3, 6, 1)\n" + (
        source._BOOTSTRAP.replace("sys.argv[1]", "sys.argv[1]") + "' \"$4\"\n"
    ))  # fmt: skip
    old.chmod(0o755)
    link = LocalLink(HostOf(python=str(old)))
    with pytest.raises(HostError, match=r"needs Python 3\.8 or newer") as found:
        await link.open()
    assert found.value.kind is HostErrorKind.NO_AGENT
    await link.close()


async def test_a_mark_is_new_each_time() -> None:
    assert len({Session.fresh_mark() for _ in range(100)}) == 100
