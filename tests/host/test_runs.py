"""Runs on the host: what is kept, what is known of each however it ended, and what a disk refuses. Real processes."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.host.links import Ear, HostOf, agent_pid, follow, opened, python, refusal
from tests.ports import free_port
from tests.processes import is_running, kill_now
from tests.waiting import eventually
from tui.host.agent import disk, outcome, retention
from tui.host.agent.runs import Runs
from tui.host.api import HostError, RunRecord, RunWatch
from tui.host.channel import PipeChannel
from tui.host.link import HostLink
from tui.host.source import command

SLEEP = "import time; print('up', flush=True); time.sleep(60)"
KEEPER_KIB = 10_000
AGENT_KIB = 15_000_000 // 1024


def keeper_of(run: RunRecord) -> int:
    return int(json.loads((Path(run.log).parent / "process.json").read_text())["keeper"]["pid"])


async def fate_of(link: HostLink, run: str) -> RunRecord:
    return next(record for record in await link.runs() if record.run == run)


def change(run: RunRecord, name: str, **values: Any) -> None:
    """Rewrite a file of a run as another boot, process or release would have left it."""
    path = Path(run.log).parent / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def rss_kib(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS"))


async def test_a_killed_keeper_leaves_the_server_and_says_so(local: HostLink) -> None:
    ear = Ear(local)
    run = await follow(local, python(SLEEP))
    await ear.log_until(run.run, b"up")
    kill_now(keeper_of(run))
    await ear.until(lambda: any("keeper was killed" in word for seen in ear.of(RunWatch) for word in seen.warnings))
    record = await fate_of(local, run.run)
    assert (record.alive, record.fate, record.exit) == (True, "unkept", None)
    assert run.pid is not None and is_running(run.pid)
    error = await refusal(local, python(SLEEP))
    assert f"already runs as pid {run.pid}" in error.message and "alice@desk" in error.message
    os.kill(run.pid, signal.SIGKILL)
    ended = await ear.ended(run.run)
    assert ended.exit is None
    assert (await fate_of(local, run.run)).fate in ("unrecorded", "zombie")  # as init reaps, or does not


async def test_a_keeper_whose_run_was_deleted_leaves_with_its_server(local: HostLink) -> None:
    run = await local.launch(python(SLEEP))
    keeper = keeper_of(run)
    retention.remove(str(Path(run.log).parent))
    assert run.pid is not None and is_running(run.pid) and await local.runs() == []
    kill_now(run.pid)
    await eventually(lambda: not is_running(keeper))


@pytest.mark.parametrize(
    ("name", "values", "fate"),
    [
        ("process.json", {"boot_id": "another boot"}, "rebooted"),
        ("process.json", {"start": 1}, "reused"),
        ("process.json", {"pid": 2**22 + 1, "keeper": {"pid": 2**22 + 1, "start": 1}}, "unrecorded"),
        ("run.json", {"format": 99, "argv": {"new": "shape"}, "started": "noon"}, "newer"),
    ],
)
async def test_a_run_that_is_gone_says_why_its_end_is_unknown(
    local: HostLink, name: str, values: dict[str, Any], fate: str
) -> None:
    run = await local.launch(python(SLEEP))
    kept = (Path(run.log).parent / name).read_text()
    try:
        change(run, name, **values)
        record = await fate_of(local, run.run)
        assert (record.fate, record.exit, record.alive) == (fate, None, fate == "newer")
    finally:
        (Path(run.log).parent / name).write_text(kept)
    assert (await fate_of(local, run.run)).fate == "running"


def test_a_zombie_is_no_server(tmp_path: Path) -> None:
    child = subprocess.Popen(["/bin/true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    start = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
    boot = Runs(str(tmp_path)).boot_id
    process = {"pid": child.pid, "start": start, "boot_id": boot}
    assert outcome.fate({"format": 1}, process, None, boot) == "zombie"
    child.wait()
    assert outcome.fate({"format": 1}, process, None, boot) == "unrecorded"
    assert outcome.fate({"format": 1, "boot_id": boot}, {}, None, boot) == "unstarted"


def test_a_run_of_format_1_is_read(tmp_path: Path) -> None:
    """As release 0.1 left it: nothing that was added later."""
    runs = Runs(str(tmp_path))
    folder = Path(runs.server_dir("p", "s")) / "20250101T000000Z-abcdef"
    folder.mkdir(parents=True)
    asked = {"run": folder.name, "profile": "p", "server": "s", "argv": ["python3", "x"], "started": 5.5, "format": 1}
    (folder / "run.json").write_text(json.dumps(asked))
    process = {"pid": 7, "start": 8, "session": 7, "keeper": {"pid": 6, "start": 8}, "boot_id": "old", "format": 1}
    (folder / "process.json").write_text(json.dumps(process))
    ended: dict[str, Any] = {
        "status": None,
        "signal": "SIGKILL",
        "oom_killed": True,
        "at": 6.5,
        "left": [],
        "format": 1,
    }
    (folder / "exit.json").write_text(json.dumps(ended))
    (folder / "server.log").write_bytes(b"hello\n")
    [record] = runs.records("p", "s")
    assert record["exit"] == {name: ended[name] for name in ("signal", "oom_killed", "at", "left")}
    assert (record["alive"], record["fate"], record["log_size"]) == (False, "ended", 6)
    assert (record["argv"], record["started"], record["who"]) == (["python3", "x"], 5.5, "")


async def test_two_people_launch_at_once_and_one_is_told_of_the_other(tmp_path: Path) -> None:
    host = HostOf(state_dir=str(tmp_path / "state"))
    async with opened(host) as first, opened(host) as second:
        for number in range(5):
            results = await asyncio.gather(
                first.launch(python(SLEEP, server=f"s{number}", who="alice@desk")),
                second.launch(python(SLEEP, server=f"s{number}", who="bob@lap")),
                return_exceptions=True,
            )
            [won] = [result for result in results if isinstance(result, RunRecord)]
            [lost] = [result for result in results if isinstance(result, HostError)]
            assert f"s{number} already runs as pid {won.pid} (run {won.run}), launched by {won.who} at 20" in str(lost)
            assert len(await first.runs("p", f"s{number}")) == 1


async def test_setup_lines_that_fail_are_told_alike_at_once_and_later(local: HostLink) -> None:
    error = await refusal(local, python("pass", setup="echo no such module; exit 3"))
    assert error.message == "The setup lines failed with status 3: no such module"
    [record] = await local.runs()
    assert record.exit is not None
    assert record.exit.refused == (error.message, error.remedy, error.failure)
    quiet = await refusal(local, python("pass", server="t", setup="exit 0"))
    assert quiet.message.startswith("The setup lines failed with status 0")


async def test_an_agent_that_dies_during_setup_ends_no_server(tmp_path: Path) -> None:
    """What the setup lines say goes to the keeper: a broken pipe to the agent would be their end."""
    host = HostOf(state_dir=str(tmp_path / "state"))
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with opened(host) as link:
        launch = asyncio.ensure_future(link.launch(python(SLEEP, setup=f"read line < {shlex.quote(str(gate))}")))

        async def begun() -> bool:
            return any(record.alive for record in await link.runs())

        await eventually(begun)
        session = link._session
        assert session is not None and isinstance(session._channel, PipeChannel)
        kill_now(session._channel.pid)
        with pytest.raises(HostError):
            await launch
        await asyncio.to_thread(gate.write_text, "go\n")
        ear = Ear(link)
        await link.open()
        [record] = await link.runs()
        await link.follow(record.run)
        assert await ear.log_until(record.run, b"up\n") == b"up\n"


def interpreters() -> list[str]:
    """This one, the newest and oldest that a host may have where they are on the PATH, and those of ``HCS_PYTHONS``."""
    named = [path for minor in range(8, 16) if (path := shutil.which(f"python3.{minor}"))]
    found = []
    for path in [sys.executable, *named, *os.environ.get("HCS_PYTHONS", "").split()]:
        told = subprocess.run([path, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
        found += [told.stdout.strip()] if told.returncode == 0 else []  # a shim may lead nowhere
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("interpreter", interpreters())
async def test_memory_of_keeper_and_agent(tmp_path: Path, interpreter: str) -> None:
    """And that they run at all, on whatever Python there is."""
    async with opened(HostOf(python=interpreter, state_dir=str(tmp_path / "state"))) as link:
        ear = Ear(link)
        runs = [await follow(link, python(SLEEP, server=f"s{number}")) for number in range(4)]
        for run in runs:
            await ear.log_until(run.run, b"up")
        await link.machine([("model", str(tmp_path))])
        assert (await link.kill(runs[0].run, 0)).left == ()
        assert rss_kib(keeper_of(runs[1])) < KEEPER_KIB
        assert rss_kib(agent_pid(link)) < AGENT_KIB


# Disks


def small_disk(folder: Path, size: str, before: str = "") -> HostLink:
    """A link to an agent in a mount namespace of its own, where ``folder`` is a file system of ``size``."""
    folder.mkdir()

    async def channel(mark: str) -> PipeChannel:
        mount = f"mount -t tmpfs -o size={size} none {shlex.quote(str(folder))} && {before or ':'} && "
        return await PipeChannel.open(
            f"exec unshare -rm /bin/sh -c {shlex.quote(mount + command(mark, sys.executable))}"
        )

    return HostLink("small", channel, {"state_dir": str(folder / "state")})


def can_mount() -> bool:
    try:
        return (
            subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode
            == 0
        )
    except OSError:
        return False


needs_mounts = pytest.mark.skipif(not can_mount(), reason="no user and mount namespace may be made here")


@needs_mounts
@pytest.mark.parametrize("room", [0, 4, 8, 16, 24, 32, 40])
async def test_a_full_disk_is_told_in_words_and_nothing_half_stays(tmp_path: Path, room: int) -> None:
    """However much room is left: the launch works whole, or is refused whole, and leaves no lock and no half a run."""
    folder = tmp_path / "disk"
    fill = f"dd if=/dev/zero of={shlex.quote(str(folder))}/fill bs=4096 count={256 - room} 2>/dev/null"
    link = small_disk(folder, "1m", fill)
    try:
        await link.open()
        for _ in range(2):  # the second finds the lock free
            try:
                run = await link.launch(python("pass"))
            except HostError as error:
                assert "cannot be written" in error.message and "no space left on device" in error.message
                assert "runs prune" in error.remedy and "state_dir" in error.remedy
                assert await link.runs() == []
            else:
                assert room >= 16 and run.pid
                return
        assert room <= 32
    finally:
        await link.close()


@needs_mounts
async def test_an_end_is_recorded_on_a_disk_that_filled_up_meanwhile(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    link = small_disk(folder, "1m")
    fill = (
        "import sys\nf = open(sys.argv[1], 'wb', 0)\ntry:\n while f.write(b'x' * 4096): pass\nexcept OSError: exit(5)"
    )
    try:
        await link.open()
        ear = Ear(link)
        run = await follow(link, python(fill, str(folder / "fill")))
        ended = await ear.ended(run.run)
        assert ended.exit is not None and ended.exit.status == 5
        assert (await fate_of(link, run.run)).fate == "ended"
    finally:
        await link.close()


@needs_mounts
async def test_little_room_is_warned_of(tmp_path: Path) -> None:
    link = small_disk(tmp_path / "disk", "8m")
    try:
        await link.open()
        ear = Ear(link)
        run = await follow(link, python(SLEEP))
        await ear.until(lambda: bool(ear.of(RunWatch)))
        seen = ear.of(RunWatch)[0]
        assert seen.disk_free is not None and 0 < seen.disk_free < 8 << 20
        assert any(word.startswith("only 0.0 of 0.0 GB left on the file system of") for word in seen.warnings)
        await link.kill(run.run, 0)
    finally:
        await link.close()


def test_when_room_deserves_a_word() -> None:
    gb = 10**9
    assert disk.words("/x", 60 * gb, 100 * gb, None) == ""
    assert disk.words("/x", 60 * gb, 10_000 * gb, None) == ""  # a small share of a huge disk is plenty
    assert disk.words("/x", 4 * gb, 100 * gb, None) == "only 4.0 of 100.0 GB left on the file system of /x"
    assert disk.words("/x", 1 * gb, 10 * gb, None).startswith("only")
    assert "fills it in 1.0 hours" in disk.words("/x", 36 * gb, 100 * gb, 10**7)
    assert disk.words("/x", 36 * gb, 100 * gb, 10**3) == ""
    assert "no space left" in disk.words("/x", 0, 100 * gb, 1.0)


def _readonly(state: Path) -> None:
    state.write_text("a file")


def _endless(state: Path) -> None:
    state.symlink_to(state)


@pytest.mark.parametrize(
    ("spoil", "server", "said"),
    [
        (_readonly, "s", "not a directory"),
        (_endless, "s", "symbolic links"),
        (lambda state: None, "x" * 300, "file name too long"),
    ],
)
async def test_what_stands_in_the_way_is_said(
    tmp_path: Path, spoil: Callable[[Path], None], server: str, said: str
) -> None:
    spoil(tmp_path / "state")
    async with opened(HostOf(state_dir=str(tmp_path / "state"))) as link:
        error = await refusal(link, python("pass", server=server))
    assert "cannot be written" in error.message and said in error.message
    assert error.remedy


# Retention


async def test_old_runs_go_but_no_living_and_no_last_one(tmp_path: Path) -> None:
    async with opened(HostOf(state_dir=str(tmp_path / "state"))) as link:
        ear = Ear(link)
        runs = []
        for number in range(4):
            run = await follow(link, python("print('x' * 1000)", port=free_port(), server="s"))
            await ear.ended(run.run)
            runs.append(run.run)
            assert number == len(runs) - 1
        living = await link.launch(python(SLEEP, server="other"))
        assert [one.run for one in await link.prune("p", "s", keep=2, dry=True)] == runs[1::-1]
        assert len(await link.runs("p", "s")) == 4
        gone = await link.prune("p", "s", keep=2)
        assert [(one.run, one.gone) for one in gone] == [(runs[1], True), (runs[0], True)]
        assert [one.run for one in await link.prune("p", "s", keep_bytes=0)] == [runs[2]]
        assert [record.run for record in await link.runs("p", "s")] == [runs[3]]
        assert await link.prune("p", "other", keep=1, keep_bytes=0) == []
        assert (await fate_of(link, living.run)).alive


async def test_a_launch_drops_what_is_too_old(local: HostLink, tmp_path: Path) -> None:
    ear = Ear(local)
    first = await follow(local, python("pass"))
    await ear.ended(first.run)
    server = Path(first.log).parents[1]
    for number in range(retention.KEEP + 3):
        folder = server / f"2000-{number:02}"
        folder.mkdir()
        asked = {"run": folder.name, "profile": "p", "server": "s", "started": float(number), "format": 1}
        (folder / "run.json").write_text(json.dumps(asked))
        (folder / "server.log").write_bytes(b"old\n")
    last = await local.launch(python("pass"))

    async def tidied() -> bool:
        return len(await local.runs("p", "s")) <= retention.KEEP

    await eventually(tidied)
    left = [record.run for record in await local.runs("p", "s")]
    assert left[:3] == [last.run, first.run, f"2000-{retention.KEEP + 2:02}"]
