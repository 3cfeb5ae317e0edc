"""Keys stay off the hosts' command lines where SGLang can read them from a file."""

from __future__ import annotations

import io
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from tests.host.links import Ear, HostOf, follow, opened
from tests.waiting import eventually
from tui.fleet.places import write_private
from tui.fleet.spool import SpoolFile, run_spool
from tui.host.agent import hiding
from tui.host.api import LaunchSpec
from tui.host.link import HostLink

KEY = "canary-4711-key"

# what SGLang makes of --config, in short: the file's flags before the others; it says which it got, and what it saw
SERVER = f"""
import hashlib, sys, time
from ruamel.yaml import YAML
argv = sys.argv[1:]
if "--config" in argv:
    at = argv.index("--config")
    told = YAML(typ="safe").load(open(argv[at + 1]).read())
    argv = [w for name, value in told.items() for w in ("--" + name, value)] + argv[:at] + argv[at + 2:]
key = argv[argv.index("--api-key") + 1]
print("key", hashlib.sha256(key.encode()).hexdigest() == {__import__("hashlib").sha256(KEY.encode()).hexdigest()!r})
print("words", [w for w in argv if w != key], flush=True)
time.sleep(600)
"""


def interpreter(folder: Path, version: str) -> str:
    """An environment's python with an SGLang of that version, which runs ``SERVER``."""
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").touch()
    (folder / f"lib/python3.11/site-packages/sglang-{version}.dist-info").mkdir(parents=True)
    (folder / "server.py").write_text(SERVER)
    path = folder / "bin/python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {folder}/server.py "$@"\n')
    path.chmod(0o755)
    return str(path)


def spec(python: str, **more: Any) -> LaunchSpec:
    argv = (python, "-m", "sglang.launch_server", "--api-key", KEY, "--model-path", "/m", "--port", "30000")
    return LaunchSpec("p", "s", argv, secrets=(KEY,), **more)


def command_lines() -> bytes:
    """Of every process of this machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes())
        except OSError:
            continue
    return b"\n".join(found)


async def test_a_key_is_read_from_a_file_of_the_run(local: HostLink, tmp_path: Path) -> None:
    ear = Ear(local)
    run = await follow(local, spec(interpreter(tmp_path / "env", "0.5.23")))
    log = await ear.log_until(run.run, b"words")
    assert b"key True" in log and b"'--model-path', '/m', '--port', '30000'" in log
    assert KEY.encode() not in command_lines()
    folder = Path(run.log).parent
    file = folder / hiding.NAME
    assert KEY in file.read_text() and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(KEY not in path.read_text("latin-1") for path in folder.iterdir() if path != file)
    assert (await local.kill(run.run, 5)).left == ()
    await ear.ended(run.run)
    await eventually(lambda: not file.exists())


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
async def test_everything_is_the_users_alone_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        async with opened(HostOf(state_dir=str(tmp_path / "new/state"))) as link:
            ear = Ear(link)
            run = await follow(link, spec(interpreter(tmp_path / "env", "0.5.23")))
            await ear.log_until(run.run, b"words")
            await link.kill(run.run, 5)
            await ear.ended(run.run)
        write_private(tmp_path / "new/history/p/s.json", "{}")
        spool = SpoolFile(run_spool(tmp_path / "new/spool", "p", "s", run.run))
        spool.open()
        spool.close()
    finally:
        os.umask(before)
    found = [path for path in (tmp_path / "new").rglob("*") if not path.is_symlink()]
    assert {"server.log", "run.json", "process.json", "exit.json", "s.json"} <= {path.name for path in found}
    for path in [tmp_path / "new", *found]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize("version", ["0.5.5", "0.4.9.post6"])
async def test_older_releases_get_it_as_they_can(local: HostLink, tmp_path: Path, version: str) -> None:
    ear = Ear(local)
    run = await follow(local, spec(interpreter(tmp_path / "env", version)))
    assert b"key True" in await ear.log_until(run.run, b"words")
    assert KEY.encode() in command_lines()  # the warning of `check` tells the truth
    rows = {
        name: (result, found) for name, result, found, _ in await local.check(spec(str(tmp_path / "env/bin/python")))
    }
    assert rows["keys"][0] == "warn" and "--api-key on the command line" in rows["keys"][1]


async def test_check_says_that_nobody_can_read_it(local: HostLink, tmp_path: Path) -> None:
    rows = {row[0]: row[1:] for row in await local.check(spec(interpreter(tmp_path / "env", "0.5.6")))}
    assert rows["keys"][0] == "pass" and KEY not in str(rows)


@pytest.mark.parametrize(
    ("argv", "hidden"),
    [
        (["--api-key", "K"], [("--api-key", "K")]),
        (["--api-key=K"], [("--api-key", "K")]),
        (["--admin_api_key", "other"], [("--admin_api_key", "other")]),
        (["--hicache-storage-backend-extra-config", '{"token": "K"}'],
         [("--hicache-storage-backend-extra-config", '{"token": "K"}')]),
        (["--lora-paths", "a", "K"], []),  # several values: they would have to stand together
        (["--trust-remote-code", "--tp", "2"], []),
    ],
)  # fmt: skip
def test_which_flags_are_moved(argv: list[str], hidden: list[tuple[str, str]]) -> None:
    asked = {"argv": ["python", "-m", "sglang.launch_server", *argv, "--port", "1"], "secrets": ["K"]}
    assert hiding.exposed(asked) == hidden
    left = hiding.without(asked["argv"], hidden)
    assert left == ["python", "-m", "sglang.launch_server", *([] if hidden else argv), "--port", "1"]


def test_a_value_that_looks_like_a_flag_stays(tmp_path: Path) -> None:
    asked = {"argv": ["python", "-m", "sglang.launch_server", "--api-key=-K", "--admin-api-key", "A"], "secrets": []}
    argv = hiding.hide(asked, str(tmp_path), "0.5.23")
    assert argv == [*asked["argv"][:4], "--config", str(tmp_path / hiding.NAME)]
    assert (tmp_path / hiding.NAME).read_text() == '"admin-api-key": "A"\n'


@pytest.mark.parametrize(
    ("argv", "version", "reads"),
    [
        (["-m", "sglang.launch_server"], "0.5.6", True),
        (["-m", "sglang.launch_server"], "0.5.6rc1", True),
        (["-m", "sglang.launch_server"], "0.5.23.post1", True),
        (["-m", "sglang.launch_server"], "0.10.0", True),
        (["-m", "sglang.launch_server"], "0.5.5", False),
        (["-m", "sglang.launch_server"], None, False),
        (["-m", "sglang.launch_server", "--config", "x.yaml"], "0.5.23", False),
        (["-m", "other.server"], "0.5.23", False),
    ],
)
def test_who_reads_files(argv: list[str], version: str | None, reads: bool) -> None:
    assert hiding.reads_files(["python", *argv], version) is reads


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_value_survives_yaml(text: str) -> None:
    line = f"{hiding.quoted('api-key')}: {hiding.quoted(text)}\n"
    assert line.isascii() and line.count("\n") == 1
    assert YAML(typ="safe").load(io.StringIO(line)) == {"api-key": text}
