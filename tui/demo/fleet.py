"""The demo's hosts and servers: which scenarios, where, on which ports, and the profile that launches them."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tui.demo.machine import Hardware
from tui.demo.sizes import GB, GIB

_CYCLE = ("hicache", "mtp", "plain", "host-memory")  # of the servers of one host
HARDWARE = Hardware(memory=314 * GIB, available=int(308.97 * GB), gpus=len(_CYCLE))
"""Of each host. SGLang leaves 10.74 GB alone. The other 298.23 GB have room for ``hicache`` (100.03 GB), even beside
the first pool of ``host-memory`` (150.00 GB), and never for both pools of that (300.10 GB): in whatever order they are
launched, it alone fails. Once ``hicache`` is up it finds 48.20 GB for its second pool."""
_ROOT = Path(__file__).resolve().parents[2]  # the checkout, or site-packages
MODEL = "/models/Qwen3.6-27B"
_FLAGS = {
    "hicache": ("--enable-hierarchical-cache", "--hicache-size", "50"),
    "host-memory": ("--enable-hierarchical-cache", "--hicache-size", "150"),
    "mtp": ("--speculative-algorithm", "EAGLE"),
}


@dataclass(frozen=True, slots=True)
class DemoServer:
    """One simulated server of the demo."""

    name: str
    host: str
    gpu: int
    scenario: str
    port: int
    seed: int


def plan(count: int, held: ExitStack) -> list[DemoServer]:
    """``count`` servers on ports that are theirs until ``held`` is closed, the scenarios in turn."""
    return [_server(index, _port(held)) for index in range(count)]


def _server(index: int, port: int) -> DemoServer:
    group, gpu = divmod(index, len(_CYCLE))
    return DemoServer(f"gpu{index}", f"demo{group + 1 if group else ''}", gpu, _CYCLE[gpu], port, index)


def hosts(servers: Sequence[DemoServer]) -> list[str]:
    """Their names."""
    return list(dict.fromkeys(server.host for server in servers))


def _port(held: ExitStack) -> int:
    """A free port that nobody else is given: a server binds it seconds later, and again when it is launched anew.

    Bound without listening, it is skipped where any free port is asked for; a server that allows the address to be
    used again, as all do that may be restarted, can still have it.
    """
    holder = held.enter_context(socket.socket())
    holder.bind(("127.0.0.1", 0))
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return int(holder.getsockname()[1])


def profile(servers: Sequence[DemoServer], port: int, folder: Path, speed: float) -> str:
    """The demo's profile as YAML. Scalars are quoted as JSON strings, which YAML reads alike."""
    quote = json.dumps
    lines = [
        "# Written by `hcs-tui demo`: simulated servers on an embedded SSH host. It lives as long as the demo does.",
        "name: demo",
        "hosts:",
    ]
    for name in hosts(servers):
        lines += [
            f"  {name}:",
            f"    ssh: {quote(f'{name}@127.0.0.1:{port}')}",
            f"    identity: {quote(str(folder / 'key'))}",
            f"    known_hosts: {quote(str(folder / 'known_hosts'))}",
            f"    python: {quote(sys.executable)}",
        ]
    lines += [
        "defaults:",
        f"  env: {{PYTHONPATH: {quote(str(_ROOT))}}}",
        "  ready_timeout: 5m",
        "  stall_after: 2m",
        "  stop_grace: 15s",
        "servers:",
    ]
    for server in servers:
        command = [
            sys.executable, "-m", "tui.demo.server",
            "--scenario", server.scenario, "--speed", f"{speed:g}", "--seed", str(server.seed),
            "--model-path", MODEL, "--host", "127.0.0.1", "--port", "{port}", *_FLAGS.get(server.scenario, ()),
        ]  # fmt: skip
        lines += [
            f"  {server.name}:",
            f"    host: {server.host}",
            f"    gpus: [{server.gpu}]",
            f"    port: {server.port}",
            f"    log: {quote(f'logs/sglang_{server.name}.log')}",
            f"    command: {quote(command)}",
        ]
    return "\n".join(lines) + "\n"
