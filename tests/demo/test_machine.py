"""The simulated hosts' memory and GPUs: whoever looks at them sees what the simulated logs say."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.demo.running import SECONDS, running
from tests.fleet.rig import DEADLINE, reach, session
from tui.cli.preflight import host_checks
from tui.demo.arguments import Options, parse
from tui.demo.fleet import HARDWARE, plan, profile
from tui.demo.host import DemoHost
from tui.demo.machine import Hardware, Machine, OnGpu, Share
from tui.demo.sizes import GB, GIB, QWEN, RESERVE, host_slots, host_tokens
from tui.fleet.api import Kill, Launch, Relaunch
from tui.fleet.fleet import Fleet
from tui.fleet.supervisor import Supervisor
from tui.host.machine import Machine as Seen
from tui.profile.load import load, loads
from tui.sglang import verdict
from tui.sglang.events import Event, Watched
from tui.sglang.model import Phase
from tui.sglang.state import ServerState

KIB = 2 * 1024  # the kernel's files tell KiB


@asynccontextmanager
async def demo(folder: Path) -> AsyncIterator[Fleet]:
    """A fleet on the demo's host, of which nothing is launched yet."""
    with DemoHost() as host:
        paths = host.start(folder / "demo", speed=20, load=False)
        async with session(load(paths.profile), folder) as fleet:
            yield fleet


async def look(fleet: Fleet) -> Seen:
    return await fleet.host_of("gpu0").link.machine()


async def free(fleet: Fleet, expected: int) -> None:
    """Wait until the host tells ``expected`` bytes; fails with what it tells instead."""
    seen = await look(fleet)
    with suppress(TimeoutError):
        async with asyncio.timeout(SECONDS):
            while abs(seen.available - expected) > KIB:
                seen = await look(fleet)
    assert seen.available == pytest.approx(expected, abs=KIB)


async def pinned(fleet: Fleet, server: str, expected: int) -> None:
    """Wait until the readings beside the server's log tell ``expected`` bytes."""
    state = fleet.supervisors[server]

    def told() -> bool:
        return state.state.memory is not None and state.state.memory.pinned == expected

    assert await fleet.until(told, DEADLINE), state.state.memory


async def test_every_figure_of_a_host_is_that_of_its_servers(tmp_path: Path) -> None:
    """What the log of the server that failed says, the reading beside a log, the hosts view, and the checks."""
    told: set[tuple[int | None, int | None]] = set()

    def heard(supervisor: Supervisor, before: ServerState, event: Event) -> None:
        host, memory = fleet.host_of(supervisor.server.name).state, supervisor.state.memory
        if isinstance(event, Watched) and memory:
            told.add((memory.available, host.memory_available))

    async with demo(tmp_path) as fleet:
        fleet.listeners.append(heard)
        await free(fleet, HARDWARE.available)
        kv, mamba = options("gpu0").host_pools
        kv, mamba = host_tokens(kv, QWEN) * QWEN.kv_per_token, host_slots(mamba, QWEN) * QWEN.slot
        await fleet.act(Relaunch("gpu0", {"scenario": "hang"}))  # it stops in the middle of its second pool
        await pinned(fleet, "gpu0", kv + mamba // 2)
        await free(fleet, HARDWARE.available - kv - mamba // 2)
        await fleet.act(Relaunch("gpu0", {"scenario": "hicache"}))
        await pinned(fleet, "gpu0", kv + mamba)
        await free(fleet, HARDWARE.available - kv - mamba)
        assert await reach(fleet, "gpu0", Phase.READY, Phase.FAILED) is Phase.READY

        await fleet.act(Launch("gpu3"))
        assert await reach(fleet, "gpu3", Phase.READY, Phase.FAILED) is Phase.FAILED
        failure = verdict.failure(fleet.supervisors["gpu3"].state)
        said = failure and re.search(r"Requesting ([\d.]+) GB but only have ([\d.]+) GB free", failure.line)
        assert said and said.groups() == ("150.10", "48.20")
        await free(fleet, HARDWARE.available - kv - mamba)  # its first pool was given back
        seen = await look(fleet)
        assert (seen.total, seen.limit) == (314 * GIB, None)  # this machine's cgroups are not the host's
        assert (seen.available - 150 * GB - RESERVE) / GB == pytest.approx(float(said[2]), abs=0.01)

        assert len(told) > 2 and all(beside_the_log == of_the_host for beside_the_log, of_the_host in told)

        checks, _ = await host_checks(fleet.profile, fleet.profile.servers)
        found = {(check.server, check.check): (check.result, check.found) for check in checks}
        assert found["gpu3", "memory"][1] == f"{seen.available / GIB:.1f} of 314.0 GiB available"
        result, text = found[None, "host memory"]
        assert result == "fail" and text.startswith("400.0 GB of host cache asked by 2 of 4 servers, 337.2 GB")
        assert found["gpu3", "GPUs"][0] == "pass"


async def test_gpus_are_held_by_their_servers_and_given_back(tmp_path: Path) -> None:
    async with demo(tmp_path) as fleet:
        await asyncio.gather(fleet.act(Launch("gpu0")), fleet.act(Launch("gpu1")))
        await reach(fleet, "gpu0", Phase.READY)
        await reach(fleet, "gpu1", Phase.READY)
        seen = await look(fleet)
        assert [gpu.index for gpu in seen.gpus] == [0, 1, 2, 3] and not seen.trouble
        for gpu, name in zip(seen.gpus, ("gpu0", "gpu1"), strict=False):
            run = fleet.supervisors[name].state.run
            assert run and [holder.run for holder in gpu.holders] == [run.run]
            assert gpu.used and gpu.total and 51 * GIB < gpu.used < gpu.total
        assert [gpu.used for gpu in seen.gpus[2:]] == [0, 0]
        assert "no GPU memory held" in str((await fleet.act(Kill("gpu0"))).details)
        after = await look(fleet)
        assert not after.gpus[0].holders and after.gpus[1].holders
        await free(fleet, HARDWARE.available)


async def test_alone_it_fails_too_and_the_advice_helps(tmp_path: Path) -> None:
    async with demo(tmp_path) as fleet:
        await fleet.act(Launch("gpu3"))
        assert await reach(fleet, "gpu3", Phase.READY, Phase.FAILED) is Phase.FAILED
        assert (await fleet.act(Relaunch("gpu3", {"hicache-size": 98}))).ok
        assert await reach(fleet, "gpu3", Phase.READY, Phase.FAILED) is Phase.READY


def options(name: str) -> Options:
    """What a server of the demo is launched with."""
    with ExitStack() as held:
        servers = loads(profile(plan(4, held), 22, Path("/x"), 1)).servers
    (command,) = (server.command for server in servers if server.name == name)
    assert command is not None
    return parse([word.replace("{port}", "30000") for word in command[3:]])


def test_in_whatever_order_only_the_server_that_is_meant_to_fail_does() -> None:
    room = HARDWARE.available - RESERVE
    fits, fails = options("gpu0").host_pools, options("gpu3").host_pools
    assert not any(options("gpu1").host_pools + options("gpu2").host_pools)
    assert sum(fits) + fails[0] + GB < room < sum(fails)


@pytest.mark.parametrize("count", [1, 4, 5, 64])
def test_each_host_has_four_of_the_servers(count: int) -> None:
    with ExitStack() as held:
        planned = loads(profile(plan(count, held), 22, Path("/x"), 1))
    assert [host.ssh for host in planned.hosts][:2] == ["demo@127.0.0.1:22", "demo2@127.0.0.1:22"][: len(planned.hosts)]
    assert len(planned.hosts) == -(-count // 4)
    assert len({(server.host.name, server.gpus) for server in planned.servers}) == count
    assert all(gpu < HARDWARE.gpus for server in planned.servers for gpu in server.gpus)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path / "a home" / ".machine")
    made.build(Hardware(100 * GB, 90 * GB, 2))
    return made


def test_what_is_asked_for_counts_before_it_is_pinned(machine: Machine) -> None:
    one, other = Share(machine), Share(machine)
    assert one.claim(50 * GB) == 90 * GB - RESERVE
    one.pin(20 * GB)
    machine.refresh()
    assert "MemAvailable:   68359375 kB" in (machine.root / "proc/meminfo").read_text()  # 70 GB
    assert other.claim(40 * GB) == pytest.approx(40 * GB - RESERVE, rel=1e-6)  # refused


def test_who_has_ended_holds_nothing(machine: Machine) -> None:
    done = subprocess.Popen(["true"])
    (machine.root / "proc" / str(done.pid)).mkdir()
    (machine.root / "proc" / str(done.pid) / "status").write_text("VmData:\t9 kB\nRssAnon:\t9 kB\n")
    (machine.root / "gpus" / str(done.pid)).write_text(json.dumps({"gpu": 0, "mib": 9, "busy": 9}))
    os.waitid(os.P_PID, done.pid, os.WEXITED | os.WNOWAIT)  # a zombie is no process any more
    assert machine.on_gpus() == {} and machine.unclaimed() == 90 * GB - RESERVE
    machine.refresh()
    assert [entry.name for entry in (machine.root / "proc").iterdir()] == ["meminfo"]
    assert not list((machine.root / "gpus").iterdir())
    done.wait(SECONDS)


def ask(machine: Machine, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([machine.bin / "nvidia-smi", *words], capture_output=True, text=True, timeout=SECONDS)


def test_its_tool_answers_what_it_is_asked(machine: Machine) -> None:
    Share(machine).use_gpu(OnGpu(1, 70_000, 80))
    form = "--format=csv,noheader,nounits"
    assert ask(machine, "--query-gpu=index,memory.used,utilization.gpu", form).stdout == "0, 0, 0\n1, 70000, 80\n"
    assert ask(machine, "--query-compute-apps=pid,used_memory", form).stdout == f"{os.getpid()}, 70000\n"
    unknown = ask(machine, "--query-gpu=index,colour", form)
    assert unknown.returncode == 2 and '"colour" is not a valid field' in unknown.stdout
    assert ask(machine, "-L").returncode == ask(machine).returncode == 2


def test_a_server_that_no_demo_started_leaves_no_trace(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable that the agent reads is not enough to write there."""
    monkeypatch.setenv("HCS_MEMORY_ROOT", str(machine.root))
    with running("--scenario", "hicache") as server:
        server.ready()
    assert [entry.name for entry in (machine.root / "proc").iterdir()] == ["meminfo"]


def test_the_agent_reads_the_kernels_files_unless_it_is_told_otherwise() -> None:
    code = "from tui.host.agent import memory; print(memory.machine()[0])"
    bare = {name: value for name, value in os.environ.items() if name != "HCS_MEMORY_ROOT"}
    done = subprocess.run([sys.executable, "-c", code], env=bare, capture_output=True, text=True, timeout=SECONDS)
    found = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    assert found and int(done.stdout) == int(found[1]) * 1024
