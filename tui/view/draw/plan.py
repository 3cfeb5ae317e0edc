"""What flags ask of a host's memory, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tui.fleet.api import HostState
from tui.sglang import memory, verdict
from tui.view.glance import Glance


def plan_words(flags: Mapping[str, object], glance: Glance, host: HostState | None) -> tuple[str, str]:
    """The planned host memory and whether it fits into what the host has free once this server has ended; and the ink
    in which to say so."""
    hybrid = True if any(pool.kind == "Mamba" for pool in glance.state.log.pools) else None
    planned = memory.plan(flags, verdict.version(glance.state), hybrid)
    if not planned.enabled:
        return "no hierarchical cache: no host memory is planned", "muted"
    if planned.total_gb is None:
        return f"host memory: {planned.notes[0]}" if planned.notes else "host memory: not known before it runs", "warn"
    asked = f"host memory: {_sum(planned)}"
    if host is None or host.memory_available is None:
        return f"{asked}; what its host has free is not known", "warn"
    held = glance.state.memory.pinned if glance.runs and glance.state.memory else 0
    fits = memory.fit(planned, host.memory_available + held)
    free = f"{fits.available_gb:.0f} GB free{' once this server has ended' if held else ''}"
    if fits.fits:
        return f"{asked}: fits into {free}", "ok"
    largest = fits.largest_size
    advice = f"; hicache-size {largest} or less fits" if largest else ""
    return f"{asked}: does NOT fit into {free}, {planned.reserve_gb:.1f} GB of which stay reserved{advice}", "bad"


def _sum(planned: memory.HostPlan) -> str:
    """``300 GB (150 GB KV + 150 GB Mamba)``, and ``x 4 ranks``."""
    pools = " + ".join(f"{pool.gb or 0:.0f} GB {pool.kind}" for pool in planned.pools)
    ranks = f", on each of {planned.ranks} ranks" if planned.ranks > 1 else ""
    detail = f" ({pools}{ranks})" if len(planned.pools) > 1 or planned.ranks > 1 else ""
    return f"{planned.total_gb or 0:.0f} GB{detail}"
