"""Hosts as a whole, as the dashboard gets them."""

from __future__ import annotations

from pathlib import Path

from tests.fleet.rig import DEADLINE, profile, session
from tui.fleet.modelpaths import model_paths
from tui.profile.model import Host, Server


async def test_a_connected_host_is_looked_at(tmp_path: Path) -> None:
    """Memory that is free before any server runs, and the disk of the runs."""
    async with session(profile(tmp_path, ["plain"]), tmp_path) as fleet:
        assert await fleet.until(lambda: fleet.hosts()[0].machine is not None, DEADLINE)
        [host] = fleet.hosts()
        assert host.machine and host.memory_available == host.machine.usable > 0
        assert host.memory_total == host.machine.capacity and host.seen_at and host.cpus
        assert "runs" in [disk.what for disk in host.machine.disks]


def test_where_models_lie() -> None:
    host = Host(name="box", ssh="box")

    def server(name: str, model: str, **env: str) -> Server:
        return Server(name=name, host=host, port=30000, args={"model-path": model}, env=env)

    servers = [
        server("a", "/models/a"),
        server("b", "~/b"),
        server("c", "Qwen/Qwen3"),
        server("d", "Qwen/Qwen3", HF_HOME="/hub"),
        server("e", "/models/a"),
        Server(name="f", host=host, port=30000),
    ]
    assert model_paths(servers) == ("/models/a", "~/b", "~/.cache/huggingface", "/hub")
