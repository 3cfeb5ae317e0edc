"""The look at a host as a whole: memory, disks, GPUs and who holds their memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.host.links import HostOf, opened
from tests.host.test_kill_hard import SLEEP, up, with_gpus
from tests.waiting import eventually
from tui.host.agent.machine import disk, gpu, rows
from tui.host.link import HostLink
from tui.host.machine import Gpu, Holder, Machine, machine_of

GPUS = """case "$1" in
--query-gpu*) echo "0, GPU-a, NVIDIA H100 80GB HBM3, 72000, 81559, 97, 612.4, 700.0, 61"
  echo "1, GPU-b, NVIDIA H100 80GB HBM3, 4, 81559, [N/A], [N/A], 700.0, 33" ;;
--query-compute*) cat HOLDERS ;;
esac
"""


async def test_memory_and_disks_of_a_real_host(link: HostLink, tmp_path: Path) -> None:
    seen = await link.machine([("model", str(tmp_path / "not" / "there")), ("model", "relative")])
    assert 0 < seen.available < seen.total and seen.usable <= seen.available and seen.capacity <= seen.total
    assert [one.what for one in seen.disks] == ["runs", "model"]
    system = os.statvfs(tmp_path)
    assert seen.disks[1].total == system.f_blocks * system.f_frsize
    assert 0 < seen.disks[1].free <= seen.disks[1].total


async def test_gpus_with_their_holders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of a watched run is told by its run, another by owner and name, one that nobody sees by its pid."""
    holders = tmp_path / "holders"
    async with with_gpus(tmp_path, GPUS.replace("HOLDERS", str(holders)), monkeypatch) as link:
        server = await up(link, SLEEP)
        await link.watch(server.run)
        holders.write_text(f"GPU-a, {server.pid}, 70000\nGPU-b, {os.getpid()}, [N/A]\nGPU-b, 999999999, 7\nremark\n")

        async def looked() -> bool:
            return bool((await link.machine()).gpus[0].holders[0].run)

        await eventually(looked)
        seen = await link.machine()
        await link.kill(server.run, 5)
    first, second = seen.gpus
    assert (first.index, first.name, first.busy, first.power, first.power_limit) == (
        0, "NVIDIA H100 80GB HBM3", 0.97, 612.4, 700.0
    )  # fmt: skip
    assert first.used == 72000 << 20 and first.holders[0].run == server.run and first.holders[0].used == 70000 << 20
    assert second.busy is None and second.power is None
    mine, unseen = second.holders
    assert mine.run is None and mine.owner and mine.name and mine.used is None
    assert (unseen.pid, unseen.owner, unseen.name) == (999999999, None, None)


@pytest.mark.parametrize(
    ("script", "trouble"),
    [("echo no driver; exit 9\n", "nvidia-smi failed: no driver"), ("exit 3\n", "nvidia-smi failed: status 3")],
)
async def test_a_tool_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, trouble: str
) -> None:
    async with with_gpus(tmp_path, script, monkeypatch) as link:
        seen = await link.machine()
    assert (seen.gpus, seen.trouble) == ((), trouble) and seen.total > 0


async def test_a_host_without_the_tool_has_no_gpus_and_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(HostOf(state_dir=str(tmp_path / "state"))) as link:
        seen = await link.machine()
        again = await link.machine()
    if not seen.gpus:  # where these tests run on a host with GPUs, they are seen
        assert seen.trouble == again.trouble == ""


def test_what_the_driver_does_not_tell() -> None:
    [row] = rows(b"Field not supported\n2, GPU-c, Orin, [N/A], [N/A], [Not Supported], [N/A], [N/A], \n", 9)
    told = gpu(row)
    assert {told[key] for key in ("used", "total", "busy", "power", "power_limit", "celsius")} == {None}


def test_a_disk_that_cannot_be_named() -> None:
    assert disk("model", "Qwen/Qwen3") is None and disk("model", "~/x") is not None


def test_the_tightest_limit_counts_and_newer_agents_are_understood() -> None:
    told = {"total": 100, "available": 80, "limit": 50, "left": 10, "disks": [], "trouble": "", "newer": 1}
    gpus = [{"index": 0, "name": "X", "holders": [{"pid": 1, "newer": 2}], "newer": 3}]
    seen = machine_of({**told, "gpus": gpus})
    assert seen == Machine(100, 80, 50, 10, gpus=(Gpu(0, "X", holders=(Holder(1),)),))
    assert (seen.usable, seen.capacity) == (10, 50)
