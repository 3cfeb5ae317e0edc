"""The part of the failure table about memory: of the host, of GPUs, of the caches in them."""

from __future__ import annotations

from tui.sglang.failure_row import CAUSE, Place, Row, row
from tui.sglang.model import FailureKind as K

_S, _L = Place.START, Place.LOOSE

_OOM_KILLER = "The kernel's OOM killer ended a process of the server: the host, or its container, ran out of memory."
HOST_MEMORY = "The host has too little free memory for the hierarchical cache (HiCache)."
_NO_WEIGHTS_ROOM = "After the weights, too little GPU memory is left for the KV cache."
_POOL_FULL = (
    "A request found no free tokens in the KV cache: others hold them, or what the prefix cache lists as evictable is "
    "still in use."
)

MEMORY: tuple[Row, ...] = (
    # --- the operating system
    row(r"(?i)out of memory: killed process", K.OS_OOM_KILLED, _OOM_KILLER, _S | _L, CAUSE + 3, True),
    row(
        r"(?i)\boom-kill:|'oom-kill'|memory cgroup out of memory|\bOOM ?Killed\b|killed by the OOM killer|"
        r"oom_kill event",
        K.OS_OOM_KILLED,
        _OOM_KILLER,
        _S | _L,
        CAUSE + 2,
        True,
    ),
    row(r"killed due to the node running low on memory", K.OS_OOM_KILLED, _OOM_KILLER),
    # --- host memory
    row(r"Not enough host memory (?:available|for (?!request))", K.OOM_HOST_HICACHE, HOST_MEMORY),
    row(r"No host memory is left for HiCache|Cannot automatically size HiCache", K.OOM_HOST_HICACHE, HOST_MEMORY),
    row(
        r"cudaHostRegister failed|hipHostRegister failed|Pinned host memory allocation|"
        r"cudaHostAlloc\w* (?:failed|error)",
        K.OOM_HOST_HICACHE,
        "The host memory for HiCache could not be pinned: too little memory, a low `ulimit -l`, or a container limit.",
    ),
    row(r"insufficient free VRAM", K.OOM_GPU_STATIC, _NO_WEIGHTS_ROOM),
    row(
        r"ArrayMemoryError|DefaultCPUAllocator: (?:can't|not enough)|\[Errno 12\]|^MemoryError|"
        r"Cannot allocate memory|std::bad_alloc",
        K.OOM_HOST_HICACHE,
        "The host ran out of memory.",
    ),
    # --- device memory: static
    row(r"Not enough memory\. Please try", K.OOM_GPU_STATIC, _NO_WEIGHTS_ROOM),
    row(r"Loaded weights leave no GPU memory", K.OOM_GPU_STATIC, _NO_WEIGHTS_ROOM),
    row(
        r"Not enough GPU memory for hybrid|state cache is too small to serve",
        K.OOM_GPU_STATIC,
        "Too little GPU memory is left for the Mamba states.",
    ),
    row(r"mem_fraction_static.{0,80}(?:too (?:small|low)|increase)", K.OOM_GPU_STATIC, _NO_WEIGHTS_ROOM),
    row(r"No available memory for (?:the )?(?:cache|KV)", K.OOM_GPU_STATIC, _NO_WEIGHTS_ROOM),
    row(
        r"Memory pool size is too small|max_running_request(?:s)? is zero",
        K.OOM_GPU_STATIC,
        "After the weights, the GPU memory that is left for the KV cache holds not even one request.",
    ),
    # --- device memory: at run time
    row(
        r"alloc_req_slots runs out of memory",
        K.SCHEDULER_EXCEPTION,
        "The scheduler ran out of request slots; no GPU memory is missing.",
    ),
    row(
        r"Can ?not alloc mamba cache|[Nn]ot enough (?:space for )?mamba",
        K.OOM_GPU_RUNTIME,
        "The Mamba states are all taken, and a request needed one more.",
    ),
    row(r"(?:Prefill|Decode) out of memory\.", K.OOM_GPU_RUNTIME, _POOL_FULL),
    row(
        r"Failed to retract any|Out of memory even after retracting|No space left for only one",
        K.OOM_GPU_RUNTIME,
        _POOL_FULL,
    ),
    row(
        r"(?i)mem(?:ory)? leak detected",
        K.SCHEDULER_EXCEPTION,
        "SGLang's self-check found cache slots that nobody owns: a fault in its accounting, not a lack of memory.",
    ),
)
