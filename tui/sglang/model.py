"""The vocabulary: what is known of one SGLang server, as frozen values.

Sizes are as SGLang prints them: device pools in GiB, HiCache host pools in decimal GB, both per rank.
Times called ``…_local`` are seconds of the host's local wall clock (SGLang's log has no zone): only their
differences are durations, and ``utc_offset`` of the run turns them into instants. All others are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class Phase(StrEnum):
    """Where a server's life stands. ``stalled`` and ``unreachable`` are marks beside it, never a phase."""

    ABSENT = "absent"
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    LOST = "lost"


class Stage(StrEnum):
    """The steps of a start-up, in SGLang's usual order (speculation repeats or reorders some)."""

    LAUNCHING = "launching"
    DIST_INIT = "dist_init"
    LOADING_WEIGHTS = "loading_weights"
    KV_CACHE = "kv_cache"
    MAMBA_CACHE = "mamba_cache"
    CUDA_GRAPH = "cuda_graph"
    HOST_CACHE = "host_cache"
    WARMUP = "warmup"
    READY = "ready"


class FailureKind(StrEnum):
    """Why a server failed; the names are part of the command line's contract."""

    OOM_GPU_STATIC = "oom_gpu_static"
    OOM_GPU_RUNTIME = "oom_gpu_runtime"
    OOM_CUDA_GRAPH = "oom_cuda_graph"
    OOM_HOST_HICACHE = "oom_host_hicache"
    OS_OOM_KILLED = "os_oom_killed"
    BAD_ARGUMENT = "bad_argument"
    BAD_FLAG_COMBINATION = "bad_flag_combination"
    MODEL_NOT_FOUND = "model_not_found"
    PORT_IN_USE = "port_in_use"
    IMPORT_ERROR = "import_error"
    NCCL = "nccl"
    WATCHDOG = "watchdog"
    ILLEGAL_MEMORY_ACCESS = "illegal_memory_access"
    SCHEDULER_EXCEPTION = "scheduler_exception"
    CHILD_DIED = "child_died"
    MULTI_NODE = "multi_node"
    KERNEL_COMPILE = "kernel_compile"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Pool:
    """One cache allocation, per rank as printed.

    ``gb`` is in ``unit`` and is the sum of ``parts`` (``k``/``v``, or ``conv``/``ssm``/…); ``ranks`` is how many
    ranks printed it, so a host's total is the sum of ``gb * ranks``.
    """

    place: str  # "device" | "host"
    kind: str  # "KV" | "Mamba" | "SWA" | "indexer" | "draft" | …
    gb: float
    unit: str  # "GiB" | "GB"
    parts: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    tokens: int | None = None
    slots: int | None = None
    layout: str | None = None
    ranks: int = 1


@dataclass(frozen=True, slots=True)
class StageSpan:
    """One stage of a start-up: when it began, and how long it took (``None`` while it lasts or is untold)."""

    stage: Stage
    start_local: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage has come, from its progress bar: ``done`` of ``total`` things (shards, batch sizes)."""

    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a server failed: the one line of its log that explains it best, and what to do about it.

    ``line_number`` counts from 1 over lines that end in a newline; 0 when no line of the log says it.
    """

    kind: FailureKind
    line: str
    line_number: int
    explanation: str
    advice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended. ``signal`` is a name such as ``SIGKILL``; both ``None`` when nobody saw it."""

    status: int | None = None
    signal: str | None = None
    oom_killed: bool | None = None
    at: float | None = None
    left: tuple[int, ...] = ()  # pids of the run that outlived its main process
    refused: Failure | None = None  # of a program that never ran: its setup lines failed, or it cannot be executed
    leftover: str = ""  # what of it lives on, and what ends that
    unforced: bool = False  # ended by SIGKILL, though it was sent SIGTERM alone: SGLang ends itself this way

    @property
    def by(self) -> str:
        """The signal in a word or two; empty without one. A SIGKILL that nobody sent must not read as a forced end."""
        return "after SIGTERM" if self.unforced else self.signal or ""


@dataclass(frozen=True, slots=True)
class Sample:
    """What the batch lines of one second say, summed over DP ranks (usages and lengths: the largest rank).

    ``at_local`` is a whole second; rates are tokens per second; usages are ratios 0 to 1.
    """

    at_local: float
    generate: float | None = None
    prefill: float | None = None
    running: int | None = None
    queued: int | None = None
    kv: float | None = None
    mamba: float | None = None
    swa: float | None = None
    accept_len: float | None = None
    accept_rate: float | None = None
    cache_hit: float | None = None


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a running server says of its model and itself by HTTP."""

    model: str | None = None
    context_len: int | None = None
    max_total_num_tokens: int | None = None
    max_running_requests: int | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """The memory of a run on its host, in bytes. ``pinned`` is what the run holds beyond files (anonymous and
    shared); ``source`` names how it was read."""

    pinned: int
    available: int
    total: int
    source: str = "rss"


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One launch of a server, as its host knows it."""

    run: str
    pid: int | None
    started: float
    command: tuple[str, ...]
    log: str
    boot_id: str | None = None
    utc_offset: int | None = None  # seconds east of UTC on the host
    adopted: bool = False
    sglang: str | None = None  # its version, as the launch found it beside the interpreter
    who: str = ""  # the session that launched it


@dataclass(frozen=True, slots=True)
class Stranger:
    """What is known of a server that was found running and that no profile here launched."""

    owner: str
    command: str  # one line, secrets masked
    kind: str = "server"  # server | program (one with an engine inside) | orphans (of a dead main process)
    container: str | None = None  # "docker 0123456789ab": nothing here can end it
    job: str | None = None  # "slurm job 77"
    output: str = ""  # where it prints, when that is no file: "goes to a terminal (/dev/pts/3)"
    ours: str | None = None  # "profile/server", launched by hcs-tui


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What the profile says of a server, as far as it is shown."""

    name: str
    host: str | None = None
    port: int | None = None
    url: str | None = None
    model: str | None = None
    gpus: tuple[int, ...] = ()
    log: str | None = None
    ready_by: str = "auto"  # auto | log | http
    ready_timeout: float = 900.0  # seconds
    stall_after: float = 300.0  # seconds without a sign of life
    planned_host_gb: float | None = None  # decimal GB of host memory that the flags ask for, all ranks
    stranger: Stranger | None = None  # it was found, and can be followed and ended, not launched
