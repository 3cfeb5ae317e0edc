"""The demo's servers: which scenarios, on which ports, and the profile that launches them."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

_CYCLE = ("hicache", "mtp", "plain", "host-memory")
_ROOT = Path(__file__).resolve().parents[2]  # the checkout, or site-packages
MODEL = "/models/Qwen3.6-27B"
_FLAGS = {
    "hicache": ("--enable-hierarchical-cache", "--hicache-size", "150"),
    "host-memory": ("--enable-hierarchical-cache", "--hicache-size", "150"),
    "mtp": ("--speculative-algorithm", "EAGLE"),
}


@dataclass(frozen=True, slots=True)
class DemoServer:
    """One simulated server of the demo."""

    name: str
    gpu: int
    scenario: str
    port: int
    seed: int


def plan(count: int, held: ExitStack) -> list[DemoServer]:
    """``count`` servers on ports that are theirs until ``held`` is closed, the scenarios in turn."""
    ports = [_port(held) for _ in range(count)]
    return [
        DemoServer(f"gpu{index}", index, _CYCLE[index % len(_CYCLE)], port, index) for index, port in enumerate(ports)
    ]


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
        "  demo:",
        f"    ssh: {quote(f'demo@127.0.0.1:{port}')}",
        f"    identity: {quote(str(folder / 'key'))}",
        f"    known_hosts: {quote(str(folder / 'known_hosts'))}",
        f"    python: {quote(sys.executable)}",
        "defaults:",
        "  host: demo",
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
            f"    gpus: [{server.gpu}]",
            f"    port: {server.port}",
            f"    log: {quote(f'logs/sglang_{server.name}.log')}",
            f"    command: {quote(command)}",
        ]
    return "\n".join(lines) + "\n"
