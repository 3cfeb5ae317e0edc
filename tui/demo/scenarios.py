"""What a simulated server does and how fast: a table of scenarios, all of one 27B hybrid model on one 96 GB GPU.

Seconds are those of ``--speed 1``, which is some ten times faster than the real thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tui.demo.lines import Rows


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds of each part of a start-up."""

    imports: float = 1.6  # before the first line
    workers: float = 1.4  # from the arguments to the first line of a scheduler
    dist: float = 0.8
    weights: float = 5.0
    pools: float = 0.4
    graphs: float = 2.4
    draft: float = 0.9
    host_kv: float = 4.0
    host_mamba: float = 5.5
    warmup: float = 0.9


@dataclass(frozen=True, slots=True)
class Scenario:
    """One course of events. ``ending`` names what goes wrong: see ``endings`` in startup.py."""

    name: str
    about: str
    tokens: int  # of the device KV pool
    slots: int  # of the device Mamba pool
    mem_fraction: float
    slots_per_request: int = 5  # Mamba state slots that one running request may need
    args: tuple[str, ...] = ()
    pace: Pace = Pace()
    ending: str = "serve"
    free_host_gb: Rows = (("0.3.6", "540"),)  # decimal GB for host pools, by release, where no simulated host says it

    @property
    def running(self) -> int:
        """How many requests may run at once."""
        return self.slots // self.slots_per_request


_HICACHE = Scenario(
    "hicache",
    "KV and Mamba host caches of 150 GB each",
    tokens=147_456,
    slots=48,
    mem_fraction=0.74,
    args=("--enable-hierarchical-cache", "--hicache-size", "150", "--max-mamba-cache-size", "48"),
)
_MTP = Scenario(
    "mtp",
    "multi-token prediction, no host cache",
    tokens=131_072,
    slots=24,
    mem_fraction=0.78,
    args=(
        "--speculative-algorithm", "EAGLE", "--speculative-num-steps", "3",
        "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4",
    ),
    pace=Pace(weights=6.0),
)  # fmt: skip
_PLAIN = Scenario("plain", "no host cache, no speculation", tokens=252_160, slots=96, mem_fraction=0.85)

SCENARIOS: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        _HICACHE,
        _MTP,
        _PLAIN,
        replace(
            _HICACHE,
            name="host-memory",
            about="the Mamba host cache does not fit",
            ending="host_memory",
            free_host_gb=(("0.3.6", "48.2"), ("0.5.10", "198.2"), ("0.5.17", "133.2")),  # the last pool finds 48.2
            pace=Pace(imports=1.9, weights=12.0),  # the last one on its host: it gets what the others left
        ),
        replace(
            _PLAIN, name="gpu-memory", about="no GPU memory is left for caches", ending="gpu_memory", mem_fraction=0.5
        ),
        replace(_HICACHE, name="silent-death", about="killed without a word while pinning", ending="silent_death"),
        replace(_HICACHE, name="child-death", about="its scheduler is killed while pinning", ending="child_death"),
        replace(_HICACHE, name="hang", about="stops for ever while pinning host memory", ending="hang"),
        replace(_PLAIN, name="hang-nccl", about="stops for ever while ranks meet", ending="hang_nccl"),
        replace(_PLAIN, name="port-taken", about="its port is taken once everything is loaded", ending="port_taken"),
    )
}
