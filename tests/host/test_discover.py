"""Servers that somebody else started are found, one row each, and ended without touching anybody else."""

# ruff: noqa: ASYNC220, ASYNC221  # processes and files of the test
from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.host.links import Ear, HostOf, opened
from tests.host.strangers import Stranger, started
from tests.ports import free_port
from tests.processes import below, is_running, kill_now
from tests.waiting import DEADLINE, until
from tui.host.agent import patience, place, procs
from tui.host.api import Found, HostError, HostErrorKind, LaunchSpec, RunWatch
from tui.host.link import HostLink


async def found(link: HostLink, stranger: Stranger) -> Found:
    [one] = [one for one in await link.discover() if one.record.pid == stranger.pid]
    return one


async def test_one_row_for_a_server_and_what_is_known_of_it(link: HostLink, tmp_path: Path) -> None:
    with started(tmp_path, "--api-key", "hunter2", env={"CUDA_VISIBLE_DEVICES": "4,5"}) as stranger:
        one = await found(link, stranger)
        rows = [row for row in await link.discover() if row.record.pid in stranger.pids()]
        assert [row.record.run for row in rows] == [one.record.run]
        assert (one.kind, one.processes, one.gpus, one.container) == ("server", 4, "4,5", None)
        assert one.owner == procs.user(os.getuid()) and one.cwd == str(tmp_path)
        record = one.record
        assert (record.port, record.log, record.alive, record.profile) == (stranger.port, str(stranger.log), True, "")
        assert "hunter2" not in str(one) and "***" in record.argv
        assert abs(record.started - stranger.log.stat().st_mtime) < 30


async def test_data_parallel_controllers_are_part_of_their_server(local: HostLink, tmp_path: Path) -> None:
    names = "sglang::data_parallel_controller>sglang::scheduler_DP0 sglang::detokenizer"
    with started(tmp_path, env={"NAMES": names}) as stranger:
        rows = [row for row in await local.discover() if row.record.pid in stranger.pids()]
        assert [(row.record.pid, row.processes) for row in rows] == [(stranger.pid, 4)]


async def test_other_ways_to_be_started(local: HostLink, tmp_path: Path) -> None:
    """``sglang serve`` as a script; a program with an engine inside; and what only mentions SGLang is none."""
    script = tmp_path / "sglang"
    with started(tmp_path) as plain:
        script.write_text((tmp_path / "pkg/sglang/launch_server.py").read_text())
        serve = [sys.executable, str(script), "serve", "/models/tiny"]
        program = [sys.executable, str(script), "--engine"]
        with started(tmp_path, argv=serve) as second, started(tmp_path, argv=program) as third:
            mention = [sys.executable, "-c", "import time; time.sleep(600)", "-m", "sglang.launch_server"]
            stranger = subprocess.Popen(mention)
            shell = subprocess.Popen(["sh", "-c", "sleep 600; : python -m sglang.launch_server"])
            try:
                rows = {row.record.pid: row.kind for row in await local.discover()}
            finally:
                for one in (stranger, shell):
                    for pid in (one.pid, *below(one.pid)):
                        kill_now(pid)
                    one.wait()
    assert {rows.get(p.pid) for p in (plain, second)} == {"server"} and rows.get(third.pid) == "program"
    assert stranger.pid not in rows and shell.pid not in rows


async def test_a_run_of_ours_is_known_as_such(local: HostLink, tmp_path: Path) -> None:
    with started(tmp_path):
        pass  # makes the package
    argv = (sys.executable, "-m", "sglang.launch_server", "--model-path", "/m")
    run = await local.launch(LaunchSpec("p", "mine", argv, env={"PYTHONPATH": str(tmp_path / "pkg")}))
    until(lambda: len(below(run.pid or 0)) == 3)
    [one] = [one for one in await local.discover() if one.record.pid == run.pid]
    assert (one.record.run, one.record.server, one.record.log) == (run.run, "mine", run.log)


async def test_where_the_output_goes(local: HostLink, tmp_path: Path) -> None:
    """A file, a deleted file, a pipe, a pipe through tee, a terminal, nowhere."""
    ear = Ear(local)
    with started(tmp_path) as stranger:
        stranger.log.unlink()
        one = await found(local, stranger)
        assert (one.record.log, one.output) == (str(stranger.log), "is deleted")
        await local.follow(one.record.run)
        assert await ear.log_until(one.record.run, b"\n") == b"up %d\n" % stranger.pid
    teed = tmp_path / "teed.log"
    tee = subprocess.Popen(["tee", str(teed)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert tee.stdin
    with started(tmp_path, output=tee.stdin) as stranger:
        assert (await found(local, stranger)).record.log == str(teed)
    tee.stdin.close()
    tee.wait(DEADLINE)
    read, write = os.pipe()
    with started(tmp_path, output=write) as stranger:
        one = await found(local, stranger)
        assert one.record.log == "" and one.output.startswith("goes to a pipe of pid")
        with pytest.raises(HostError, match="no log"):
            await local.follow(one.record.run)
    os.close(read)
    os.close(write)
    master, slave = pty.openpty()
    with started(tmp_path, output=slave) as stranger:
        assert (await found(local, stranger)).output == f"goes to a terminal ({os.ttyname(slave)})"
    os.close(master)
    os.close(slave)
    with started(tmp_path, output=subprocess.DEVNULL) as stranger:
        assert (await found(local, stranger)).output == "is thrown away (/dev/null)"


async def test_a_found_server_is_watched_and_ended_and_its_neighbours_live_on(link: HostLink, tmp_path: Path) -> None:
    ear = Ear(link)
    log = (tmp_path / "shared.log").open("ab")
    with started(tmp_path, output=log) as stranger, started(tmp_path, output=log) as neighbour:
        one = await found(link, stranger)
        await link.watch(one.record.run)
        await ear.until(lambda: any(watch.listening == "own" for watch in ear.of(RunWatch)))
        pids = stranger.pids()
        report = await link.kill(one.record.run, 10)
        assert (report.signals, report.left, report.port_free) == (("SIGTERM",), (), True)
        assert {int(words.split()[1]) for words in report.found} == set(pids)
        ended = await ear.ended(one.record.run)
        assert ended.exit is None
        assert len(neighbour.pids()) == 4
    log.close()


async def test_one_that_ignores_sigterm(local: HostLink, tmp_path: Path) -> None:
    with started(tmp_path, env={"STUBBORN": "1"}) as stranger:
        pids = stranger.pids()
        report = await local.kill((await found(local, stranger)).record.run, 0.2)
        assert (report.signals, report.left) == (("SIGTERM", "SIGKILL"), ())
        assert not [pid for pid in pids if is_running(pid)]


async def test_orphans_of_a_dead_main_process_are_one_row_and_all_ended(local: HostLink, tmp_path: Path) -> None:
    with started(tmp_path) as stranger, started(tmp_path) as healthy:
        children = below(stranger.pid)
        kill_now(stranger.pid)
        stranger.process.wait(DEADLINE)
        rows = [row for row in await local.discover() if row.record.pid in children]
        assert [(row.kind, row.record.pid) for row in rows] == [("orphans", min(children))]
        report = await local.kill(rows[0].record.run, 0)
        assert report.left == () and not [pid for pid in children if is_running(pid)]
        assert len(healthy.pids()) == 4


async def test_another_process_with_its_pid_is_not_touched(local: HostLink, tmp_path: Path) -> None:
    with started(tmp_path) as stranger:
        run = (await found(local, stranger)).record.run
        head, boot, pid, start, port = run.split("-")
        for other in (
            "-".join((head, boot, pid, str(int(start) + 1), port)),
            "-".join((head, "0" * 8, pid, start, port)),
        ):
            report = await local.kill(other, 0)
            assert report.found == () and len(stranger.pids()) == 4


async def test_it_is_followed_and_ended_over_a_new_connection(tmp_path: Path) -> None:
    """The run's name says it all: nothing of the session that found it is needed."""
    host = HostOf(state_dir=str(tmp_path / "state"))
    with started(tmp_path) as stranger:
        async with opened(host) as first:
            run = (await found(first, stranger)).record.run
        async with opened(host) as second:
            ear = Ear(second)
            await second.follow(run)
            assert await ear.log_until(run, b"\n") == b"up %d\n" % stranger.pid
            assert (await second.kill(run, 10)).left == ()


async def test_a_container_is_recognised_and_never_half_killed(local: HostLink, tmp_path: Path) -> None:
    """A pid namespace of its own, as every container runtime makes."""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("no pid namespaces can be made here")
    inner = [*unshare, "--", sys.executable, "-m", "sglang.launch_server", "--model-path", "/m"]
    with started(tmp_path, argv=inner) as outer:
        until(lambda: len(outer.pids()) == 5)
        [one] = [row for row in await local.discover() if row.record.pid in outer.pids()]
        assert one.container == "a pid namespace of its own"
        with pytest.raises(HostError, match="container") as refused:
            await local.kill(one.record.run, 0)
        assert refused.value.kind is HostErrorKind.REFUSED and len(outer.pids()) == 5


ID = "0123456789ab" + "c" * 52


@pytest.mark.parametrize(
    ("cgroup", "container"),
    [
        (f"0::/system.slice/docker-{ID}.scope", "docker 0123456789ab"),
        (f"12:cpu:/docker/{ID}\n0::/", "docker 0123456789ab"),
        (f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope", "podman 0123456789ab"),
        (f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope", "kubernetes 0123456789ab"),
        (f"0::/kubepods/besteffort/pod7/{ID}", "kubernetes 0123456789ab"),
        ("0::/lxc.payload.gpubox/system.slice/x.service", "lxc gpubox"),
        ("0::/user.slice/user-1000.slice/session-3.scope", None),
        ("0::/", None),
    ],
)
def test_containers_by_cgroup(cgroup: str, container: str | None) -> None:
    assert place.contained(cgroup, "0::/init.scope", 1, 1) == container
    assert place.contained(cgroup, cgroup, 1, 1) is None  # we are inside as well
    assert place.contained("0::/", "0::/", 2, 1) == "a pid namespace of its own"


@pytest.mark.parametrize(
    ("cgroup", "environment", "job"),
    [
        ("0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0", {}, "slurm job 77"),
        ("0::/", {"SLURM_JOB_ID": "78"}, "slurm job 78"),
        ("0::/system.slice/sglang.service", {}, "systemd unit sglang.service"),
        (
            "0::/user.slice/user-0.slice/user@0.service/app.slice/my-sglang.service",
            {},
            "systemd unit my-sglang.service",
        ),
        ("0::/system.slice/ssh.service", {}, None),
        ("0::/user.slice/user-0.slice/user@0.service/tmux-spawn-1.scope", {}, None),
    ],
)
def test_who_may_start_it_again(cgroup: str, environment: dict[str, str], job: str | None) -> None:
    assert place.keeper_of(cgroup, environment) == job


async def test_who_has_a_port(local: HostLink, tmp_path: Path) -> None:
    free = free_port()
    with started(tmp_path) as stranger:
        taken = await local.listeners([stranger.port, free])
    assert list(taken) == [stranger.port] and f"pid {stranger.pid} (" in taken[stranger.port]


def test_a_file_that_blocks_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``cmdline`` does while a process pins memory. What reads it is left behind."""
    (tmp_path / "words").write_text("a\0b\0")
    assert patience.patiently(str(tmp_path / "words")) == "a\0b\0"
    freed = threading.Event()
    monkeypatch.setattr(patience, "read_text", lambda path, limit: freed.wait() and path)
    began = time.monotonic()
    assert patience.patiently(str(tmp_path / "words")) is None
    assert time.monotonic() - began > 0.2
    freed.set()
