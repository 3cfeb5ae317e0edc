"""Host memory that HiCache takes: before a launch from its flags, and after it from the pools in the log.

Decimal GB throughout (as ``--hicache-size`` and SGLang's host figures), and bytes where a name says so. Every
scheduler process (rank) allocates its own host pools, so a host's total is per rank times ranks on that host.
Up to 0.5.16 the size counts once per pool (KV, Mamba, …); from 0.5.17 it is divided between them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tui.sglang.model import Pool

GB = 1e9
GIB = 1024**3
RESERVE_BYTES = 10 * GIB  # what SGLang leaves free on the host
RESERVE_GB = RESERVE_BYTES / GB
ROUNDING_GB = 0.5  # a pool is rounded up by as much as one page or state slot; the largest known are smaller

SPLIT_SINCE = (0, 5, 17)  # --hicache-size is divided between the pools
SHARED_CHECK_SINCE = (0, 5, 19)  # the check against free memory divides by the ranks on the host
LARGER_UNTIL = (0, 5, 14)  # the host pool must be larger than the device pool
RESERVE_TOLD_SINCE = (0, 4, 9)  # "free" in the message is after the reserve

_HYBRID_MODELS = re.compile(
    r"qwen-?3[._][567](?!\d)|qwen-?3-next|qwen-?4|nemotron-?(?:h|3|nano-v?2)|kimi-(?:linear|k3)|jamba|falcon-?h1|"
    r"granite-?4|lfm-?2|"
    r"mamba|bailing|ring-2\.5|ling-2\.5|minimax-(?:text-01|m1)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PlannedPool:
    """One host pool of one rank; ``gb`` is ``None`` when only the running server will know it."""

    kind: str  # "KV" | "Mamba" | "KV + Mamba" (one size divided between them)
    gb: float | None


@dataclass(frozen=True, slots=True)
class HostPlan:
    """The host memory that a launch will take on one host, in decimal GB.

    ``total_gb`` is the best estimate for all ranks and ``high_gb`` the most it can be, while version or model are
    unknown; ``None`` when the size follows the device pools (``--hicache-ratio``). ``reserve_gb`` must stay free.
    """

    enabled: bool = False
    ranks: int = 1
    size_gb: int | None = None
    ratio: float | None = None
    pools: tuple[PlannedPool, ...] = ()
    total_gb: float | None = None
    high_gb: float | None = None
    reserve_gb: float = RESERVE_GB
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostFit:
    """Whether a plan fits: ``None`` when that cannot be told. ``largest_size`` is the largest ``--hicache-size`` that
    does."""

    fits: bool | None
    available_gb: float
    largest_size: int | None


def version_tuple(version: str | None) -> tuple[int, int, int] | None:
    """``"0.5.12.post1"`` → ``(0, 5, 12)``; ``None`` for anything else."""
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})", version or "")
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def flags(args: Mapping[str, object]) -> dict[str, str]:
    """Flags of a profile (``hicache-size: 150``) or of a server_args dump (``hicache_size='150'``), under
    one spelling."""
    names = {
        "tp": "tp_size",
        "dp": "dp_size",
        "pp": "pp_size",
        "tensor_parallel_size": "tp_size",
        "model": "model_path",
    }
    names |= {
        "data_parallel_size": "dp_size",
        "pipeline_parallel_size": "pp_size",
        "enable_hicache": "enable_hierarchical_cache",
    }
    found: dict[str, str] = {}
    for key, value in args.items():
        name = key.lstrip("-").replace("-", "_")
        found[names.get(name, name)] = str(value).strip("'\"")
    return found


def ranks_on_host(args: Mapping[str, object]) -> int:
    """Scheduler processes that run on each host of a launch with these flags; at least 1."""
    flag = flags(args)
    tp, pp, dp, nodes = (_whole(flag.get(name), 1) for name in ("tp_size", "pp_size", "dp_size", "nnodes"))
    copies = 1 if _true(flag.get("enable_dp_attention")) else dp
    return max(1, math.ceil(tp * pp * copies / nodes))


def is_hybrid(args: Mapping[str, object]) -> bool | None:
    """Whether the model keeps Mamba or linear-attention states, as far as its flags or name tell."""
    flag = flags(args)
    if any(flag.get(name, "None") not in ("None", "False") for name in ("max_mamba_cache_size", "mamba_ssm_dtype")):
        return True
    model = flag.get("model_path", "")
    return True if _HYBRID_MODELS.search(model) else None


def sizes_per_rank(version: str | None, hybrid: bool | None) -> int:
    """How many times ``--hicache-size`` is taken per rank: 2 for KV and Mamba up to 0.5.16, otherwise 1."""
    known = version_tuple(version)
    if not hybrid or (known is not None and known >= SPLIT_SINCE):
        return 1
    return 2


def plan(
    args: Mapping[str, object], version: str | None = None, hybrid: bool | None = None, ranks: int | None = None
) -> HostPlan:
    """The host memory that these flags ask for. ``hybrid`` and ``ranks`` are worked out from the flags if
    not given."""
    flag = flags(args)
    ranks = ranks_on_host(args) if ranks is None else max(1, ranks)
    if not _true(flag.get("enable_hierarchical_cache")):
        return HostPlan(ranks=ranks, total_gb=0.0, high_gb=0.0)
    hybrid = is_hybrid(args) if hybrid is None else hybrid
    size = _whole(flag.get("hicache_size"), 0)
    if size <= 0:
        return _by_ratio(flag, ranks, hybrid)
    times = sizes_per_rank(version, hybrid)
    pools: tuple[PlannedPool, ...] = (PlannedPool("KV", float(size)),)
    if hybrid:
        split = (PlannedPool("KV + Mamba", float(size)),)
        pools = (*pools, PlannedPool("Mamba", float(size))) if times == 2 else split
    most = sizes_per_rank(version, True if hybrid is None else hybrid)
    return HostPlan(
        enabled=True,
        ranks=ranks,
        size_gb=size,
        pools=pools,
        total_gb=float(size * times * ranks),
        high_gb=float(size * most * ranks),
        notes=_notes(flag, version, hybrid, times),
    )


def planned_host_gb(args: Mapping[str, object], version: str | None = None) -> float | None:
    """The decimal GB of host memory that HiCache will take for these flags, all ranks of a host; ``None`` without
    HiCache, or when only the running server will know."""
    planned = plan(args, version)
    return planned.total_gb if planned.enabled else None


def _by_ratio(flag: Mapping[str, str], ranks: int, hybrid: bool | None) -> HostPlan:
    try:
        ratio = float(flag.get("hicache_ratio", "2.0"))
    except ValueError:
        ratio = 2.0
    kinds = ("KV", "Mamba") if hybrid else ("KV",)
    note = f"The host pools will be {ratio:g} times the device pools, which only the running server knows."
    return HostPlan(True, ranks, None, ratio, tuple(PlannedPool(kind, None) for kind in kinds), notes=(note,))


def _notes(flag: Mapping[str, str], version: str | None, hybrid: bool | None, times: int) -> tuple[str, ...]:
    notes = []
    if times == 2:
        notes.append("Up to 0.5.16 SGLang takes --hicache-size once for KV and once more for Mamba, on every rank.")
    if hybrid is None and sizes_per_rank(version, True) == 2:
        notes.append("If the model keeps Mamba states, SGLang up to 0.5.16 takes the size a second time for them.")
    if flag.get("speculative_algorithm", "None") not in ("None", "NGRAM"):
        notes.append("A draft model may take a host pool of its own beside this.")
    return tuple(notes)


def fit(planned: HostPlan, available_bytes: int) -> HostFit:
    """Whether a plan fits into the memory that its host has available (MemAvailable, or less if a cgroup says so)."""
    available_gb = available_bytes / GB
    if not planned.enabled:
        return HostFit(True, available_gb, None)
    if planned.total_gb is None or planned.size_gb is None:
        return HostFit(None, available_gb, None)
    needed = planned.total_gb + planned.reserve_gb
    times = max(1, round(planned.total_gb / planned.size_gb / planned.ranks))
    largest = largest_size(available_gb - planned.reserve_gb, times, planned.ranks)
    return HostFit(needed <= available_gb, available_gb, largest)


def largest_size(room_gb: float, sizes: float, ranks: int) -> int:
    """The largest ``--hicache-size`` (whole GB) so that ``sizes`` of it on each of ``ranks`` fit into ``room_gb``,
    with room for the rounding of each pool; 0 when none does."""
    if not math.isfinite(room_gb) or sizes < 1 or ranks < 1:
        return 0
    return max(0, math.floor(room_gb / sizes / ranks - ROUNDING_GB))


def host_gb(pools: Iterable[Pool]) -> float:
    """What the host pools of a log take on the host, all ranks, in decimal GB."""
    return sum(pool.gb * pool.ranks for pool in pools if pool.place == "host" and pool.unit == "GB")


def device_gb(pools: Iterable[Pool]) -> float:
    """What the device pools of one rank take, in decimal GB (SGLang prints them in GiB)."""
    return sum(pool.gb for pool in pools if pool.place == "device") * GIB / GB


def kv_room_gib(free_before_gib: float, free_after_gib: float, fraction: float) -> float:
    """GiB of a GPU that are left for the caches: what is free after the weights, less the share that
    ``--mem-fraction-static`` keeps back of what was free before them."""
    return free_after_gib - free_before_gib * (1 - fraction)


def least_fraction(free_before_gib: float, free_after_gib: float, room_gib: float = 0.0) -> float:
    """The smallest ``--mem-fraction-static`` that leaves ``room_gib`` for the caches."""
    return 1 - (free_after_gib - room_gib) / free_before_gib if free_before_gib > 0 else 1.0


def _true(value: str | None) -> bool:
    return (value or "").lower() == "true"


def _whole(value: str | None, default: int) -> int:
    return int(value) if value is not None and re.fullmatch(r"\d{1,9}", value) and int(value) > 0 else default
