"""Servers that were found are servers of the fleet: followed, judged and ended like its own, never launched."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.fleet import rig
from tests.host.sshd import Sshd
from tests.host.strangers import Stranger, started
from tests.ports import free_port, listens
from tests.waiting import eventually
from tui.fleet.api import Discover, Forward, Kill, Launch, Relaunch
from tui.fleet.fleet import Fleet
from tui.fleet.found import described, gpus, harmless, remarks
from tui.host.api import Found, RunRecord
from tui.profile.load import loads
from tui.profile.model import Host
from tui.report.found import document
from tui.sglang import verdict
from tui.sglang.model import Phase

DEMO = "import sys\nfrom tui.demo.server import main\nsys.exit(main(sys.argv[1:]))\n"


def make_package(folder: Path) -> dict[str, str]:
    """``python -m sglang.launch_server`` is the simulated server: its log, its HTTP, its children."""
    inside = folder / "demo" / "sglang"
    inside.mkdir(parents=True)
    (inside / "__init__.py").touch()
    (inside / "launch_server.py").write_text(DEMO)
    return {"PYTHONPATH": f"{inside.parent}:{rig.ROOT}", "HCS_DEMO_SCENARIO": "hicache", "CUDA_VISIBLE_DEVICES": "2"}


async def discovered(fleet: Fleet, stranger: Stranger) -> str:
    """The name of the row that a look at the host gave to ``stranger``."""
    outcome = await fleet.act(Discover("here"))
    assert outcome.ok, outcome.message
    [name] = [n for n, s in fleet.supervisors.items() if s.state.run and s.state.run.pid == stranger.pid]
    return name


async def test_a_found_server_is_read_and_ended(tmp_path: Path) -> None:
    environment = make_package(tmp_path)
    profile = rig.profile(tmp_path, ["hicache"])
    flags = ("--speed", "50", "--api-key", "hunter2")
    async with rig.session(profile, tmp_path) as fleet:
        with started(tmp_path, *flags, env=environment) as stranger:
            name = await discovered(fleet, stranger)
            assert name == f"here:{stranger.port}"
            assert await rig.reach(fleet, name, Phase.READY) is Phase.READY
            state = fleet.supervisors[name].state
            assert state.info.model == "/models/tiny" and state.info.gpus == (2,)
            assert {pool.kind for pool in state.log.pools} >= {"KV", "Mamba"}
            told = json.dumps(document([state], 0.0))
            assert "hunter2" not in told and told.count("***") == 1
            for action in (Launch(name), Relaunch(name)):
                refused = await fleet.act(action)
                assert not refused.ok and "found running" in refused.message
            here = await fleet.act(Forward(name))
            assert here.ok and here.details["url"] == f"http://127.0.0.1:{stranger.port}"
            left_alone = await fleet.act(Kill(name, 10.0))
            assert not left_alone.ok and "typed" in left_alone.message
            killed = await fleet.act(Kill(name, 10.0, typed=name))
            assert killed.ok and killed.message.endswith("nothing left"), killed.message
            assert await rig.reach(fleet, name, Phase.STOPPED)
        await fleet.act(Discover("here"))
        assert name not in fleet.supervisors and next(iter(fleet.supervisors)) == "gpu0"


async def test_one_without_a_log_is_asked_by_http(tmp_path: Path) -> None:
    environment = make_package(tmp_path)
    profile = rig.profile(tmp_path, ["hicache"])
    async with rig.session(profile, tmp_path, read_only=True) as fleet:
        with started(tmp_path, "--speed", "50", output=subprocess.DEVNULL, env=environment) as stranger:
            name = await discovered(fleet, stranger)
            assert await rig.reach(fleet, name, Phase.READY) is Phase.READY
            supervisor = fleet.supervisors[name]
            assert supervisor.log_path is None
            assert any("/dev/null" in note for note in supervisor.state.notes)
            assert not (await fleet.act(Kill(name, typed=name))).ok  # read-only
            stranger.process.kill()
            assert await rig.reach(fleet, name, Phase.LOST)


async def test_one_that_ends_while_it_is_found_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = make_package(tmp_path)
    async with rig.session(rig.profile(tmp_path, ["hicache"]), tmp_path) as fleet:
        fast = ("--speed", "50")
        with started(tmp_path, *fast, env=environment) as brief, started(tmp_path, *fast, env=environment) as stranger:
            link = fleet.host_of("gpu0").link
            look = link.discover

            async def late() -> list[Found]:
                found = await look()
                brief.process.kill()
                await eventually(lambda: brief.process.poll() is not None)
                return sorted(found, key=lambda one: one.record.pid != brief.pid)

            monkeypatch.setattr(link, "discover", late)
            assert await discovered(fleet, stranger)


async def test_who_has_the_port_of_a_server_that_does_not_run(tmp_path: Path) -> None:
    profile = rig.profile(tmp_path, ["hicache"])
    with started(tmp_path, port=profile.servers[0].port) as stranger:
        async with rig.session(profile, tmp_path) as fleet:
            gpu0 = fleet.supervisors["gpu0"]
            assert await fleet.until(lambda: gpu0.state.listener is not None, rig.DEADLINE)
            taken = verdict.port_taken(gpu0.state)
            assert taken and f"port {stranger.port} is taken by pid {stranger.pid}" in taken


async def test_its_own_runs_are_not_found_again(tmp_path: Path) -> None:
    async with rig.running(rig.profile(tmp_path, ["hicache"]), tmp_path) as fleet:
        await fleet.act(Launch("gpu0"))
        await rig.reach(fleet, "gpu0", Phase.READY)
        pid = fleet.supervisors["gpu0"].state.run
        assert pid is not None
        await fleet.act(Discover("here"))
        same = [n for n, s in fleet.supervisors.items() if s.state.run and s.state.run.pid == pid.pid]
        assert same == ["gpu0"]


@pytest.mark.parametrize(
    ("visible", "flags", "expected"),
    [
        (None, {}, (0,)),
        ("3", {}, (3,)),
        ("4,5,6,7", {"tp": "2"}, (4, 5)),
        ("4,5,6,7", {"tp-size": "2", "base-gpu-id": "2"}, (6, 7)),
        (None, {"tensor-parallel-size": "2", "dp-size": "2"}, (0, 1, 2, 3)),
        (None, {"tp": "2", "dp": "2", "enable-dp-attention": True}, (0, 1)),
        (None, {"tp": "16", "nnodes": "2"}, tuple(range(8))),
        ("GPU-8a1f", {}, ()),
        ("", {}, ()),
    ],
)
def test_gpus_of_a_command_line(visible: str | None, flags: dict[str, object], expected: tuple[int, ...]) -> None:
    assert gpus(visible, flags) == expected


def test_the_words_for_nodes_containers_and_rests() -> None:
    argv = ("python", "-m", "sglang.launch_server", "--model-path", "/m", "--nnodes", "2", "--node-rank", "1")
    record = RunRecord("found-x", "", "", 7, 0.0, "b", argv, "", True, port=30000)
    one = Found(record, "orphans", "alice", container="docker 0123456789ab", job="systemd unit a.service", processes=3)
    server, info = described(one, Host(name="box", ssh="box"), ["box:30000"])
    assert info.name == "box:30000:7" and info.url == "http://127.0.0.1:30000"
    told = list(remarks(one, server))
    assert any("node 1 of a server on 2 hosts" in words for words in told)
    assert any("docker 0123456789ab" in words and "cannot end" in words for words in told)
    assert any("may start it again" in words for words in told) and "3 left of it" in told[-1]


def test_what_somebody_else_chose_is_harmless() -> None:
    argv = ("python", "-m", "sglang.launch_server", "--model-path", "/m\x1b[2J\u202e", "--hf-token", "hf_" + "a" * 30)
    record = RunRecord("found-x", "", "", 7, 0.0, "b", argv, "/tmp/\x1b]0;x\x07log", True, port=30000)
    one = harmless(Found(record, "server", "alice", output="goes to a pipe of pid 7 (\x1b[31mx)", cwd="/\x1b[2J"))
    server, info = described(one, Host(name="box", ssh="box"))
    shown = f"{info} {server} {list(remarks(one, server))}"
    assert "\\x1b" not in shown and "\x1b" not in shown and "\u202e" not in shown
    assert "hf_" not in shown and info.log == "/tmp/log"


async def test_a_servers_port_comes_here_and_goes_again(sshd: Sshd, tmp_path: Path) -> None:
    port = free_port()
    host = {"ssh": sshd.address, "identity": sshd.identity, "known_hosts": sshd.known_hosts}
    text = {
        "name": "fw",
        "hosts": {"box": host},
        "servers": {"a": {"host": "box", "port": port, "args": {"model-path": "/m"}}},
    }
    async with rig.session(loads(json.dumps(text)), tmp_path, read_only=True) as fleet:
        opened = await fleet.act(Forward("a"))
        assert opened.ok and "every user of this machine can reach it" in opened.message, opened.message
        [forward] = fleet.hosts()[0].forwards
        assert (forward.server, forward.port, forward.url) == ("a", port, opened.details["url"])
        assert listens(forward.local)
        sshd.kill_sessions()
        await eventually(lambda: fleet.hosts()[0].phase == "unreachable")
        await eventually(lambda: fleet.hosts()[0].phase == "connected" and listens(forward.local))
        closed = await fleet.act(Forward("a"))
        assert closed.ok and fleet.hosts()[0].forwards == ()
        await eventually(lambda: not listens(forward.local))  # it may be about to listen again
