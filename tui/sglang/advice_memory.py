"""Advice on memory: host pools that do not fit, and GPUs that are full. Pure arithmetic over what the log printed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tui.sglang import memory
from tui.sglang.logfacts import LogFacts
from tui.sglang.model import Pool, Stage

_HOST = re.compile(r"Requesting (?P<asked>\d+\.?\d*) GB but only have (?P<free>-?\d+\.?\d*) GB free")
_POOL = re.compile(r"host memory for (?P<pool>.{2,40}?)(?: hierarchical cache| pool\b|\. Requesting)")
_GPU = re.compile(
    r"Tried to allocate (?P<asked>[\d.]+) (?P<asked_unit>[KMG]iB)\..{0,20}GPU (?P<gpu>\d+) has a total capacity of "
    r"(?P<total>[\d.]+) GiB\s+of\s+which (?P<free>[\d.]+) (?P<free_unit>bytes|[KMG]iB) is free"
)
_UNITS = {"bytes": 1 / 1024**3, "KiB": 1 / 1024**2, "MiB": 1 / 1024, "GiB": 1.0}
_MINIMUM = re.compile(r"Raise --mem-fraction-static above (?P<least>\d\.\d+)")


@dataclass(frozen=True, slots=True)
class HostNeed:
    """The arithmetic of a host pool that did not fit, in decimal GB: the room for all pools of ``ranks`` ranks, and
    how many times ``--hicache-size`` is taken on each."""

    asked_gb: float
    free_gb: float  # after SGLang's reserve
    allocated_gb: float  # host pools that this server already had, of the ranks that share ``free_gb``
    sizes: int
    ranks: int
    reserve_told: bool
    assumed: bool = False  # that this SGLang takes the size once per pool: nothing tells its version
    beside: float = 0.0  # GB that pools outside the size (an indexer, a draft model's) take for each GB of it

    @property
    def room_gb(self) -> float:
        return self.free_gb + self.allocated_gb

    @property
    def largest(self) -> int:
        return memory.largest_size(self.room_gb, self.sizes + self.beside, self.ranks)


def host_need(line: str, facts: LogFacts) -> HostNeed | None:
    """The numbers of ``Requesting X GB but only have Y GB free``, with what is known of the server."""
    found = _HOST.search(line)
    if found is None:
        return None
    asked, free = float(found["asked"]), float(found["free"])
    known = memory.version_tuple(facts.version)
    # Up to 0.4.8 the figure still held the reserve; a request below it gives that away whatever the version.
    told = asked > free and (known is None or known >= memory.RESERVE_TOLD_SINCE)
    ranks = memory.ranks_on_host(facts.args)
    shared = known is not None and known >= memory.SHARED_CHECK_SINCE
    # A pool that some ranks have announced is being filled just now: what is free may still hold it.
    whole = [pool for pool in _hosts(facts) if pool.ranks >= ranks]
    held = sum(pool.gb if shared else pool.gb * pool.ranks for pool in whole)
    hybrid = any(pool.kind == "Mamba" for pool in facts.pools) or memory.is_hybrid(facts.args) is True
    divided = _divides(facts)
    room = free if told else free - memory.RESERVE_GB
    sizes = 2 if hybrid and not divided else 1
    beside = _beside(asked, sizes, facts, pools=2 if hybrid else 1, named=_POOL.search(line) is not None)
    return HostNeed(asked, room, held, sizes, 1 if shared else ranks, told, hybrid and divided is None, beside)


def _beside(asked: float, sizes: int, facts: LogFacts, *, pools: int, named: bool) -> float:
    """What pools outside --hicache-size take for each GB of it: they hold as many tokens as the KV pool. ``pools``:
    how many the size is for."""
    hosts = _hosts(facts)
    kv = next((pool.gb for pool in hosts if pool.kind == "KV"), 0.0)
    size = _size(facts) or (kv if named else 0.0)
    more = sum(pool.gb for pool in hosts) + asked - sizes * size
    return max(0.0, more) / size if size and len(hosts) >= pools else 0.0


def _divides(facts: LogFacts) -> bool | None:
    """Whether this SGLang divides --hicache-size between the pools: by its version, or by how it announces a pool
    (with tokens since it does); ``None`` when nothing tells."""
    known = memory.version_tuple(facts.version)
    if known is not None:
        return known >= memory.SPLIT_SINCE
    announced = [pool.tokens is not None for pool in _hosts(facts) if pool.kind == "KV"]
    return any(announced) if announced else None


def host(line: str, facts: LogFacts) -> tuple[str, ...]:
    need = host_need(line, facts)
    if need is None:
        return (
            "Free host memory, lower --hicache-size (decimal GB per rank), or raise the container's memory "
            "and memlock limits.",
        )
    size, largest = _size(facts), need.largest
    after = "".join(f" after {pool.gb:.2f} GB for {pool.kind}" for pool in _hosts(facts))
    named = _POOL.search(line)
    what = f"the {named['pool']} pool" if named else "the Mamba pool" if after and need.sizes > 1 else "a host pool"
    reserve = "left after" if need.reserve_told else "free less"
    first = f"{need.asked_gb:.2f} GB asked for {what}{after}, {need.free_gb:.1f} GB {reserve} SGLang's 10 GiB reserve"
    if size == 0:
        ratio = facts.args.get("hicache_ratio", "")
        by = f"--hicache-ratio {ratio}" if ratio not in ("", "None") else "the ratio to the device pools"
        first += f". The size came from {by}: "
        first += f"set --hicache-size {largest} or less instead." if largest else "no --hicache-size fits."
    else:
        taken = "once per pool and rank" if need.sizes > 1 else "once per rank"
        which = f" ({facts.version})" if facts.version else ""
        which = ", if it is older than 0.5.17 (its log does not tell)," if need.assumed else which
        first += f": this SGLang{which} takes --hicache-size {taken}; {_sum(need)}: "
        first += f"--hicache-size {largest} or less fits." if largest else "no --hicache-size fits."
    return (first, *_more_host(need, facts, largest))


def _sum(need: HostNeed) -> str:
    ranks = f"{need.ranks} rank" + ("s" if need.ranks != 1 else "")
    pools = f" / {need.sizes} pools" if need.sizes > 1 else ""
    if need.beside:
        pools = f" / {need.sizes + need.beside:.2f} GB of pools for each GB of the size"
    room = f"({need.allocated_gb:.1f} + {need.free_gb:.1f})" if need.allocated_gb else f"{need.free_gb:.1f}"
    return f"{room}{pools} / {ranks}, less {memory.ROUNDING_GB:g} GB for rounding"


def _more_host(need: HostNeed, facts: LogFacts, largest: int) -> tuple[str, ...]:
    more = []
    device = memory.device_gb(pool for pool in facts.pools if pool.kind != "Mamba")
    known = memory.version_tuple(facts.version)
    if largest and largest <= device and (known is None or known <= memory.LARGER_UNTIL):
        more.append(
            f"That is less than the {device:.1f} GB of the device pool, which SGLang up to 0.5.14 refuses: "
            "free host memory, "
            "lower --mem-fraction-static, or do without --enable-hierarchical-cache."
        )
    if need.ranks > 1:
        more.append(
            f"{need.ranks} ranks on this host check at the same time, each against all free memory: plan for their sum."
        )
    if need.sizes > 1:
        more.append("SGLang 0.5.17 and later divide --hicache-size between the pools instead.")
    more.append("Other processes hold the rest of the host's memory: `ps aux --sort=-rss | head`, `df -h /dev/shm`.")
    return tuple(more)


def _hosts(facts: LogFacts) -> tuple[Pool, ...]:
    return tuple(pool for pool in facts.pools if pool.place == "host")


def _size(facts: LogFacts) -> int:
    value = facts.args.get("hicache_size", "0")
    return int(value) if re.fullmatch(r"\d{1,9}", value) else 0


def os_killed(line: str, facts: LogFacts) -> tuple[str, ...]:
    confirm = "Confirm with `dmesg -T | grep -i oom` or memory.events of the container on the host."
    took = memory.host_gb(facts.pools)
    planned = memory.plan(facts.args, facts.version)
    if took > 0:
        ranks = max((pool.ranks for pool in _hosts(facts)), default=1)
        return (
            f"HiCache had asked for {took:.1f} GB of host memory over {ranks} rank{'s' if ranks > 1 else ''}: "
            "lower --hicache-size, or raise the container's limit.",
            confirm,
        )
    if planned.enabled and planned.total_gb:
        return (
            f"HiCache takes {planned.total_gb:.0f} GB on this host ({planned.size_gb} GB, {planned.ranks} rank"
            f"{'s' if planned.ranks > 1 else ''}): lower --hicache-size, or raise the container's limit.",
            confirm,
        )
    return ("Give the host or container more memory, or load the weights with fewer ranks at a time.", confirm)


# --- GPU memory


@dataclass(frozen=True, slots=True)
class GpuNeed:
    """The numbers of a failed GPU allocation, in GiB."""

    asked_gib: float
    free_gib: float
    total_gib: float
    gpu: int

    @property
    def missing_gib(self) -> float:
        return max(0.0, self.asked_gib - self.free_gib)


def gpu_need(line: str) -> GpuNeed | None:
    """The numbers of PyTorch's out-of-memory message."""
    found = _GPU.search(line)
    if found is None:
        return None
    asked = float(found["asked"]) * _UNITS[found["asked_unit"]]
    return GpuNeed(asked, float(found["free"]) * _UNITS[found["free_unit"]], float(found["total"]), int(found["gpu"]))


def lower_fraction(fraction: float, need: GpuNeed) -> float:
    """``--mem-fraction-static`` that leaves what was missing, and one GiB more, in whole hundredths."""
    return math.floor((fraction - (need.missing_gib + 1) / need.total_gib) * 100 + 1e-9) / 100


def _fraction(facts: LogFacts, line: str = "") -> float | None:
    told = re.search(r"mem[-_]fraction[-_]static=(0?\.\d{1,20})", line)
    value = told[1] if told else facts.args.get("mem_fraction_static", "")
    return float(value) if re.fullmatch(r"0?\.\d{1,20}|1\.0", value) else None


def _gpu_words(line: str) -> str:
    need = gpu_need(line)
    if need is None:
        return ""
    free = f"{need.free_gib:.2f} of {need.total_gib:.2f} GiB free"
    return f"GPU {need.gpu} had {free} and {need.asked_gib:.2f} were asked for"


def _lower(line: str, facts: LogFacts) -> str:
    need, fraction = gpu_need(line), _fraction(facts)
    if need is None or fraction is None:
        return "lower --mem-fraction-static by 0.03 to 0.05"
    lower = lower_fraction(fraction, need)
    return (
        f"lower --mem-fraction-static from {fraction:g} to {lower:g}"
        if lower > 0
        else "use a smaller or quantized model"
    )


def static(line: str, facts: LogFacts) -> tuple[str, ...]:
    if gpu_need(line) is not None:
        if facts.stage is Stage.LOADING_WEIGHTS:  # the fraction shares out what the weights leave
            first = (
                f"{_gpu_words(line)} while weights were loaded, which --mem-fraction-static does not change: spread "
                "the model over more GPUs (--tp-size), or quantize it."
            )
            return (first, "Other processes on that GPU: `nvidia-smi`.")
        first = (
            f"{_gpu_words(line)}: {_lower(line, facts)}, spread the model over more GPUs (--tp-size), or quantize it."
        )
        return (first, "Other processes on that GPU: `nvidia-smi`.")
    told = _MINIMUM.search(line)
    if told is not None:
        return (f"SGLang names the least that works: --mem-fraction-static above {told['least']}.",)
    fraction = _fraction(facts, line)
    if re.search(r"(?i)hybrid|mamba|auxiliary-state", line):
        return _states(line, facts, fraction)
    if facts.free_before_gib is None or facts.free_after_gib is None:
        now = f" above {fraction:g}" if fraction is not None else ""
        return (f"Raise --mem-fraction-static{now}, use more GPUs (--tp-size), or a quantized model.",)
    return _static_sum(fraction, facts.free_before_gib, facts.free_after_gib)


def _states(line: str, facts: LogFacts, fraction: float | None) -> tuple[str, ...]:
    """The states of Mamba layers have too little room, or too few slots."""
    slots = re.search(r"max_mamba_cache_size=(-?\d+)", line)
    have = f"Room for {slots[1]} Mamba states is left: " if slots else ""
    share = f" (now {fraction:g})" if fraction is not None else ""
    ratio = facts.args.get("mamba_full_memory_ratio", "None")
    now = f" (now {ratio})" if ratio != "None" else ""
    return (
        f"{have}raise --mem-fraction-static{share} or --mamba-full-memory-ratio{now}, or halve a state with "
        "--mamba-ssm-dtype bfloat16.",
        "Fewer --max-running-requests, or more GPUs (--tp-size), need fewer states on each.",
    )


def _static_sum(fraction: float | None, before: float, after: float) -> tuple[str, ...]:
    least = memory.least_fraction(before, after)
    enough = math.ceil(memory.least_fraction(before, after, 0.05 * before) * 100 - 1e-9) / 100
    have = f"{after:.2f} of {before:.2f} GiB were free after the weights"
    if fraction is not None:
        room = memory.kv_room_gib(before, after, fraction)
        kept = before * (1 - fraction)
        have += (
            f"; --mem-fraction-static {fraction:g} keeps {kept:.2f} of them back, so {room:.2f} are left for the caches"
        )
    if enough > 0.97:
        return (f"{have}: the model does not fit. Use more GPUs (--tp-size), a quantized model, or a smaller one.",)
    return (
        f"{have}: --mem-fraction-static must be above {least:.3f}; {enough:.2f} leaves 5 %.",
        "If that runs out of memory later, use more GPUs (--tp-size), fp8 for the KV cache "
        "(--kv-cache-dtype), or a quantized model.",
    )


def graph(line: str, facts: LogFacts) -> tuple[str, ...]:
    known = memory.version_tuple(facts.version)
    flag = "--cuda-graph-max-bs-decode" if known is not None and known >= (0, 5, 14) else "--cuda-graph-max-bs"
    name = flag[2:].replace("-", "_")
    now = facts.args.get(name, facts.args.get("cuda_graph_max_bs", ""))
    half = (
        f"{flag} from {now} to {max(1, int(now) // 2)}"
        if re.fullmatch(r"[1-9]\d{0,6}", now)
        else f"{flag} to 32 or less"
    )
    words = _gpu_words(line)
    first = f"{words}: {_lower(line, facts)}, or {half}." if words else f"Lower {half}, or {_lower(line, facts)}."
    return (first, "Without CUDA graphs (--disable-cuda-graph) it starts, but decodes slowly.")


def runtime(line: str, facts: LogFacts) -> tuple[str, ...]:
    words = _gpu_words(line)
    if words:
        chunk = facts.args.get("chunked_prefill_size", "")
        half = f" from {chunk} to {int(chunk) // 2}" if re.fullmatch(r"[1-9]\d{2,8}", chunk) else ""
        return (f"{words}: {_lower(line, facts)}, or lower --chunked-prefill-size{half}.",)
    running = facts.max_running_requests
    fewer = f"--max-running-requests from {running} to {max(1, running // 2)}" if running else "--max-running-requests"
    if "mamba" in line.lower():
        slots = next((f" (now {pool.slots})" for pool in facts.pools if pool.kind == "Mamba" and pool.slots), "")
        return (f"Lower {fewer}, or raise --max-mamba-cache-size{slots} or --mamba-full-memory-ratio.",)
    tokens = f" The KV cache holds {facts.max_total_num_tokens} tokens per rank." if facts.max_total_num_tokens else ""
    return (
        f"Lower {fewer}, or raise --schedule-conservativeness above 1.{tokens}",
        "Lower --chunked-prefill-size for long prompts.",
    )
