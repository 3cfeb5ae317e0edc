"""Where a simulated scheduler's host memory comes from: the simulated host that it runs on, or its scenario."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from tui.demo.arguments import Options
from tui.demo.machine import Machine, Share
from tui.demo.sizes import GB

_MIB = 1 << 20


class Memory(Protocol):
    """The host memory that a scheduler sees, in bytes."""

    def claim(self, size: int) -> int:
        """Ask for ``size`` bytes: granted if no more than what is returned, the bytes that were left for it."""

    def pin(self, size: int) -> None:
        """Take ``size`` of the bytes that were asked for."""


class Scripted:
    """Without a simulated host: the scenario says what is free, and a little real memory is taken in its place."""

    def __init__(self, options: Options) -> None:
        self._free = int(float(options.dialect.pick(options.scenario.free_host_gb) or 0) * GB)
        self._real = options.reserve_mb * _MIB / max(1, sum(options.host_pools))
        self._pinned: list[bytearray] = []

    def claim(self, size: int) -> int:
        free = self._free
        if size <= free:
            self._free -= size
        return free

    def pin(self, size: int) -> None:
        self._pinned.append(bytearray(b"\1") * int(size * self._real))


def here() -> Share | None:
    """This process's share of the simulated host that its shell belongs to, if it is one of the demo's."""
    root = os.environ.get("HCS_DEMO_MACHINE")
    return Share(Machine(Path(root))) if root else None
