"""Run directories whose files are not what they should be: shown as what they are, and nobody's trouble but their own.

Real agents over a pipe.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.host.links import Ear, HostOf, follow, opened, python
from tests.waiting import DEADLINE
from tui.fleet.runs import RunsOfHost
from tui.host.agent import recorded
from tui.host.agent.runs import Runs
from tui.host.api import HostError, RunRecord
from tui.host.connect import LocalLink
from tui.profile.model import Host
from tui.report.clean import json_text
from tui.report.runs import comparison, run_report, runs_table

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
WRONG: list[Any] = [
    5, -1, 0.5, True, "z", "", "\ud800", {}, [], [[1]], [None], {"pid": "x"}, {"pid": 1}, 10**30, 10**400, 1e300,
    math.inf, math.nan, {"found": 5, "signals": []},
]  # fmt: skip
GOOD: dict[str, dict[str, Any]] = {
    "run.json": {
        "run": "", "profile": "p", "server": "s", "argv": ["/bin/true"], "port": 1, "digest": "d", "who": "w",
        "started": 5.0, "boot_id": "b", "sglang": "0.5", "format": 1,
    },
    "process.json": {
        "pid": 1, "start": 5, "keeper": {"pid": 2, "start": 5}, "boot_id": "b", "pid_namespace": "n", "cgroup": "/x",
        "started": 5.0,
    },
    "exit.json": {
        "at": 6.0, "status": 1, "signal": "SIGTERM", "oom_killed": False, "left": [], "failed_at": None, "error": None,
    },
    "stop.json": {"at": 5.5, "who": "w"},
    "kill.json": {"at": 5.5, "who": "w", "report": {"found": [], "signals": []}},
}  # fmt: skip
FILES = sorted(GOOD)
MAKERS: dict[str, Callable[[Path], object]] = {
    "pipe": lambda path: os.mkfifo(path),
    "folder": lambda path: path.mkdir(),
    "loop": lambda path: path.symlink_to(path),
    "nowhere": lambda path: path.symlink_to("nothing"),
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(b'{"run": "'),
    "deep": lambda path: path.write_bytes(b"[" * 100_000),
    "long number": lambda path: path.write_bytes(b'{"run": %s}' % (b"7" * 2_000_000)),
    "huge": lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 1 << 40),
    "list": lambda path: path.write_bytes(b"[1]"),
    "bytes": lambda path: path.write_bytes(bytes(range(256))),
}


class Folders:
    """Run directories of server ``s`` that look newer than all others."""

    def __init__(self, state: Path) -> None:
        self.parent = Path(Runs(str(state)).server_dir("p", "s"))
        self.made: dict[str, str] = {}  # run -> what is wrong with it

    def good(self, why: str) -> Path:
        folder = self.parent / f"20991130T140000Z-{len(self.made):06x}"
        folder.mkdir(parents=True)
        self.made[folder.name] = why
        for name, fields in GOOD.items():
            write(folder / name, {**fields, "run": folder.name} if name == "run.json" else fields)
        (folder / "server.log").write_bytes(b"hello\n")
        return folder

    def fill(self) -> None:
        for name in FILES:
            for field in recorded.FIELDS[name]:
                for value in WRONG:
                    folder = self.good(f"{name} {field} {value!r}"[:80])
                    write(folder / name, {**json.loads((folder / name).read_text()), field: value})
            write(self.good(f"{name} has nothing") / name, {})
        for name in (*FILES, "server.log"):
            for what, make in MAKERS.items():
                if (name, what) == ("server.log", "huge"):
                    continue  # a log may be
                folder = self.good(f"{name} is {what}")
                (folder / name).unlink()
                make(folder / name)
        all_wrong = self.good("all is wrong")
        for name in FILES:
            write(all_wrong / name, {field: {} for field in GOOD[name]})


def write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))


def check(record: RunRecord) -> None:
    """Every value is of its type, whatever stands in the files."""
    numbers = (record.started, record.stop_asked, record.kill_asked, record.exit.at if record.exit else None)
    assert all(one is None or (type(one) in (int, float) and 0 <= one <= recorded.LATEST) for one in numbers), record
    assert all(one is None or type(one) is int for one in (record.pid, record.port, record.log_size)), record
    texts = (record.run, record.profile, record.server, record.digest, record.who, record.trouble, record.fate)
    for text in (*texts, *record.argv, record.sglang or "", record.boot_id or ""):
        text.encode()
    assert (record.profile, record.server) == ("p", "s")


async def test_what_stands_in_run_folders_disturbs_nobody(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "state")
    host_of = HostOf(state_dir=str(tmp_path / "state"))
    first = LocalLink(host_of)
    await first.open()
    alive = await first.launch(python(SLEEP))
    await first.close()  # before it drops old runs
    async with opened(host_of) as link, asyncio.timeout(DEADLINE):
        ear = Ear(link)
        folders.fill()
        found = {record.run: record for record in await link.runs("p", "s")}
        assert found.keys() == {alive.run, *folders.made}
        for record in found.values():
            check(record)
        told = {why: found[run] for run, why in folders.made.items()}
        for name in ("run.json", "process.json", "exit.json"):
            for what in MAKERS.keys() - {"empty"}:
                assert name in told[f"{name} is {what}"].trouble, (name, what)
        assert "port is not a port" in told["run.json port {}"].trouble
        assert "at is not a time" in told["exit.json at 'z'"].trouble
        assert told["run.json server {}"].trouble.startswith("unreadable: run.json: server is not text")
        assert told["run.json run 'z'"].trouble == "unreadable: run.json is another run's"
        assert told["exit.json at 'z'"].fate == "unreadable" and told["exit.json status 0.5"].fate == "ended"
        assert "not a file" in told["server.log is pipe"].trouble and told["server.log is pipe"].log_size is None

        newest = (await link.runs("p", "s"))[0]
        assert newest.run == alive.run, "what does not know its own name is nobody's newest run"
        host = RunsOfHost(Host(name="box", ssh="local"), link, await link.open())
        runs = [host.unread(record) for record in found.values()]
        assert runs_table(runs, time.time()) and comparison(runs[:40])
        json_text([run_report(run, time.time()) for run in runs])
        for run in [*folders.made][::7]:  # each request that reads a folder is answered
            for asked in (link.read(run, 0, 10), link.follow(run), link.watch(run), link.unfollow(run)):
                try:
                    await asked
                except HostError as error:
                    assert "cannot be read" in error.message, error
        await ear.until(lambda: len(ear.events) > 0)
        killed = await link.kill(alive.run, 1.0)
        assert not killed.left
        fresh = await link.launch(python(SLEEP))
        assert (await link.runs("p", "s"))[0].alive or fresh.alive


async def test_a_living_run_whose_run_json_is_lost_is_still_ended(tmp_path: Path) -> None:
    async with opened(HostOf(state_dir=str(tmp_path / "state"))) as link:
        run = await follow(link, python(SLEEP))
        path = Path(run.log).parent / "run.json"
        path.unlink()
        os.mkfifo(path)
        [found] = await link.runs("p", "s")
        assert (found.alive, found.run, found.server, found.pid) == (True, run.run, "s", run.pid)
        assert found.trouble == "unreadable: run.json is not a file"
        assert not (await link.kill(run.run, 1.0)).left


async def test_nobody_claims_that_nothing_is_left_of_an_unreadable_process(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "state")
    async with opened(HostOf(state_dir=str(tmp_path / "state"))) as link:
        folder = folders.good("x")
        write(folder / "process.json", {"pid": "z", "start": 1, "boot_id": "b"})
        with pytest.raises(HostError, match=r"process\.json: pid is not a pid\."):
            await link.kill(folder.name, 1.0)


def test_every_field_has_a_kind_and_a_wrong_value() -> None:
    for name in GOOD:
        assert set(recorded.FIELDS[name]) >= set(GOOD[name]), name
        for field, kind in recorded.FIELDS[name].items():
            assert any(not kind.fits(value) for value in WRONG), (name, field)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(FILES), st.data())
def test_whatever_a_file_says_its_fields_are_of_their_kinds(name: str, data: st.DataObject) -> None:
    kinds = recorded.FIELDS[name]
    told = data.draw(st.dictionaries(st.sampled_from(sorted(kinds)), JSON))
    fields, flaw = recorded._checked(name, json.dumps(told).encode())
    assert all(kinds[field].fits(value) for field, value in (fields or {}).items())
    given_up = {field for field, value in told.items() if value is not None} - (fields or {}).keys()
    assert bool(flaw) or not given_up


def test_names_of_folders_are_read_back() -> None:
    from tui.host.agent.files import plain_name, safe_name

    for name in ("a", "..", ".", "ü/x", "%41", "a b", ""):
        assert plain_name(safe_name(name)) == (name or "%")
