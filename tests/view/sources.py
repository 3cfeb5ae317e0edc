"""Fixed fleets for tests and pictures, with logs in real files."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from math import sin
from pathlib import Path

from tui.fleet.api import Action, Disk, Gpu, Holder, HostState, Machine, Outcome
from tui.sglang.facts import LogFacts
from tui.sglang.model import (
    Failure,
    FailureKind,
    MemoryReading,
    Pool,
    RunInfo,
    Sample,
    ServerInfo,
    Stage,
    StageSpan,
)
from tui.sglang.state import ServerState

NOW = 1_764_470_171.0  # 2025-11-30 02:36:11 UTC
GB = 10**9


@dataclass
class FixedSource:
    """A ``Source`` whose states only a test changes. It records the actions it is sent."""

    servers: tuple[ServerState, ...] = ()
    host_states: tuple[HostState, ...] = ()
    logs: dict[str, Path] = field(default_factory=dict)
    title: str = "dflash"
    read_only: bool = False
    version: int = 0
    time: float = NOW
    acted: list[Action] = field(default_factory=list)
    outcome: Outcome = field(default_factory=lambda: Outcome(True, "done"))

    def states(self) -> tuple[ServerState, ...]:
        return self.servers

    def hosts(self) -> tuple[HostState, ...]:
        return self.host_states

    def log_path(self, server: str) -> Path | None:
        return self.logs.get(server)

    def act(self, action: Action) -> Future[Outcome]:
        self.acted.append(action)
        done: Future[Outcome] = Future()
        done.set_result(self.outcome)
        return done

    def now(self) -> float:
        return self.time

    def change(self, server: str, **fields: object) -> None:
        """Replace fields of one server's state."""
        self.servers = tuple(
            replace(s, **fields) if s.info.name == server else s  # type: ignore[arg-type]  # the test names real fields
            for s in self.servers
        )
        self.version += 1


POOLS = (
    Pool("device", "Mamba", 9.38, "GiB", {"conv": 0.18, "ssm": 9.20}, slots=48),
    Pool("device", "KV", 9.02, "GiB", {"k": 4.51, "v": 4.51}, tokens=147_456),
    Pool("host", "KV", 150.00, "GB", tokens=2_288_818),
    Pool("host", "Mamba", 150.10, "GB", slots=1602, layout="layer_first"),
)
STAGES = (
    (Stage.LAUNCHING, 2.1),
    (Stage.DIST_INIT, 1.8),
    (Stage.LOADING_WEIGHTS, 21.4),
    (Stage.MAMBA_CACHE, 0.3),
    (Stage.KV_CACHE, 0.9),
    (Stage.CUDA_GRAPH, 6.2),
    (Stage.HOST_CACHE, 161.0),
    (Stage.WARMUP, 1.9),
)
LAST = tuple((stage.value, seconds) for stage, seconds in STAGES)


def info(name: str, place: int, **more: object) -> ServerInfo:
    base = ServerInfo(
        name, "box", 30000 + place, f"http://127.0.0.1:{30000 + place}", "Qwen3.6-27B", (place,), planned_host_gb=300.1
    )
    return replace(base, **more)  # type: ignore[arg-type]  # the test names real fields


def run(age: float) -> RunInfo:
    return RunInfo(
        "run-1", 4711, NOW - age, ("python", "-m", "sglang.launch_server"), "/var/log/server.log", utc_offset=0
    )


def spans(until: int, age: float, going: float | None = None) -> tuple[StageSpan, ...]:
    """The first ``until`` stages of a start ``age`` seconds ago; the last one has lasted ``going`` so far."""
    at = NOW - age
    out = []
    for n, (stage, seconds) in enumerate(STAGES[:until]):
        lasting = going is not None and n == until - 1
        out.append(StageSpan(stage, at, None if lasting else seconds))
        at += seconds
    return tuple(out)


def ready(
    name: str, place: int, rate: float, *, running: int = 48, queued: int = 12, accept: float | None = None
) -> ServerState:
    """A server that has served for an hour."""
    samples = tuple(
        Sample(
            NOW - 120 + n,
            generate=rate * min(1.0, 0.35 + n / 40) + 9 * sin(n + place),
            running=running,
            queued=queued,
            kv=min(0.81, 0.3 + n / 150) - place / 50,
            mamba=min(0.62, 0.2 + n / 150) - place / 50,
            accept_len=accept,
        )
        for n in range(120)
    )
    log = LogFacts(
        lines=81_212,
        size=16_000_000,
        version="0.5.12",
        stage=Stage.READY,
        stages=spans(8, 3920.0),
        pools=POOLS,
        max_total_num_tokens=147_456,
        max_running_requests=9,
        context_len=262_144,
        ready=True,
        latest=replace(samples[-1], generate=rate),
        series=samples,
        last_local=NOW - 1,
    )
    memory = MemoryReading(int(303.4 * GB), int(148.2 * GB), 503 * GB)
    return ServerState(
        info(name, place), run(3920.0), log, alive=True, listening="own", memory=memory, log_at=NOW - 1, seen_at=NOW,
        ready_at=NOW - 3720, previous_stages=LAST,
    )  # fmt: skip


def starting(name: str, place: int) -> ServerState:
    """A server in the middle of pinning its Mamba host pool."""
    log = LogFacts(
        lines=812,
        size=160_000,
        version="0.5.12",
        stage=Stage.HOST_CACHE,
        stages=spans(7, 124.7, going=92.0),
        pools=POOLS,
        max_total_num_tokens=147_456,
        max_running_requests=9,
        context_len=262_144,
        last_line="Allocating 150.10 GB host memory for hierarchical Mamba cache (layout=layer_first).",
        last_local=NOW - 60,
    )
    memory = MemoryReading(242 * GB, int(209.4 * GB), 503 * GB)
    return ServerState(
        info(name, place), run(124.7), log, alive=True, listening="none", memory=memory, log_at=NOW - 60, seen_at=NOW,
        previous_stages=LAST,
    )  # fmt: skip


HOST_OOM = Failure(
    FailureKind.OOM_HOST_HICACHE,
    "ValueError: Not enough host memory available. Requesting 150.10 GB but only have 48.20 GB free.",
    3,
    "Host memory is too small for the Mamba host pool: it wants 150.10 GB, and 48.20 GB are free.",
    (
        "150.10 GB asked for the Mamba pool after 150.00 GB for KV, 48.2 GB left after SGLang's 10 GiB reserve: this "
        "SGLang (0.5.12) takes --hicache-size once per pool and rank; (150.0 + 48.2) / 2 pools / 1 rank, less 0.5 GB "
        "for rounding: --hicache-size 98 or less fits.",
        "SGLang 0.5.17 and later divide --hicache-size between the pools instead.",
    ),
)


def failed(name: str, place: int) -> ServerState:
    """A server whose second host pool did not fit."""
    log = LogFacts(
        lines=640, size=120_000, version="0.5.12", stage=Stage.HOST_CACHE,
        stages=spans(7, 95.0, going=20.0), pools=POOLS, failure=HOST_OOM, fatal=True, last_local=NOW - 40,
    )  # fmt: skip
    return ServerState(info(name, place), run(95.0), log, alive=False, listening="none", log_at=NOW - 40, seen_at=NOW)


LINES = {
    "start": (
        "[2025-11-30 02:34:08] server_args=ServerArgs(model_path='Qwen3.6-27B', hicache_size=150)",
        "[2025-11-30 02:34:10] Init torch distributed begin.",
        "[2025-11-30 02:34:12] Init torch distributed ends. elapsed=1.80 s, mem usage=0.42 GB",
        "[2025-11-30 02:34:12] Load weight begin. avail mem=94.41 GB",
        "\rLoading safetensors checkpoint shards:   0% Completed | 0/14 [00:00<?, ?it/s]"
        "\rLoading safetensors checkpoint shards:  50% Completed | 7/14 [00:10<00:10, 1.5s/it]"
        "\rLoading safetensors checkpoint shards: 100% Completed | 14/14 [00:21<00:00, 1.5s/it]",
        "[2025-11-30 02:34:33] Load weight end. elapsed=21.40 s, type=Qwen3_6ForCausalLM, avail mem=40.11 GB, "
        "mem usage=54.30 GB.",
        "[2025-11-30 02:34:33] Mamba Cache is allocated. max_mamba_cache_size: 48, conv_state size: 0.18GB, "
        "ssm_state size: 9.20GB ",
        "[2025-11-30 02:34:34] KV Cache is allocated. #tokens: 147456, K size: 4.51 GB, V size: 4.51 GB",
        "[2025-11-30 02:34:34] Memory pool end. avail mem=21.71 GB",
        "[2025-11-30 02:34:34] Capture cuda graph begin. This can take up to several minutes. avail mem=21.70 GB",
        "[2025-11-30 02:34:40] Capture cuda graph end. Time elapsed: 6.20 s. mem usage=0.80 GB. avail mem=20.90 GB.",
        "[2025-11-30 02:34:40] max_total_num_tokens=147456, chunked_prefill_size=8192, max_prefill_tokens=16384, "
        "max_running_requests=9, context_len=262144, available_gpu_mem=20.90 GB",
        "[2025-11-30 02:34:40] Allocating 150.00 GB host memory for hierarchical KV cache.",
        "[2025-11-30 02:35:10] Allocating 150.10 GB host memory for hierarchical Mamba cache (layout=layer_first).",
    ),
    "failure": (
        "[2025-11-30 02:35:31] Scheduler hit an exception: Traceback (most recent call last):",
        '  File "scheduler.py", line 2613, in run_scheduler_process',
        "ValueError: Not enough host memory available. Requesting 150.10 GB but only have 48.20 GB free.",
    ),
    "ready": (
        '[2025-11-30 02:35:58] INFO:     127.0.0.1:43538 - "GET /model_info HTTP/1.1" 200 OK',
        "[2025-11-30 02:36:00] The server is fired up and ready to roll!",
    ),
}


def decode_line(second: int, rate: float) -> str:
    return (
        f"[2025-11-30 02:36:{second % 60:02d}] Decode batch, #running-req: 48, #full token: 117964, "
        "full token usage: 0.81, mamba num: 30, mamba usage: 0.62, cuda graph: True, "
        f"gen throughput (token/s): {rate:.2f}, #queue-req: 12"
    )


def write_log(folder: Path, name: str, *parts: str, decodes: int = 0) -> Path:
    """A log file made of the named stretches, then ``decodes`` decode lines with health probes between."""
    lines = [line for part in parts for line in LINES[part]]
    for n in range(decodes):
        lines.append(decode_line(n, 400 + n % 17))
        if n % 3 == 0:
            lines.append(
                f'[2025-11-30 02:36:{n % 60:02d}] INFO:     127.0.0.1:4{n % 1000:04d} - "GET /health HTTP/1.1" 200 OK'
            )
    path = folder / f"{name}.log"
    path.write_text("\n".join(lines) + "\n")
    return path


def fleet(folder: Path, **more: object) -> FixedSource:
    """Four servers on one host, as in the README's picture: two ready, one pinning memory, one failed."""
    states = (
        ready("gpu0", 0, 409.0, accept=2.71),
        ready("gpu1", 1, 402.0, running=47, queued=9),
        starting("gpu2", 2),
        failed("gpu3", 3),
    )
    logs = {
        "gpu0": write_log(folder, "gpu0", "start", "ready", decodes=40),
        "gpu1": write_log(folder, "gpu1", "start", "ready", decodes=33),
        "gpu2": write_log(folder, "gpu2", "start"),
        "gpu3": write_log(folder, "gpu3", "start", "failure"),
    }
    box = HostState("box", "root@gpu-host", "connected", memory_total=503 * GB, memory_available=int(48.2 * GB))
    source = FixedSource(states, (box,), logs)
    return replace(source, **more)  # type: ignore[arg-type]  # the test names real fields


def many(folder: Path, count: int) -> FixedSource:
    """A fleet of ``count`` servers in all phases."""
    states = []
    for n in range(count):
        name = f"gpu{n}"
        states.append(
            failed(name, n) if n % 8 == 3 else starting(name, n) if n % 8 == 2
            else ServerState(info(name, n)) if n % 8 == 5 else ready(name, n, 380.0 + n)
        )  # fmt: skip
    path = write_log(folder, "any", "start", "ready", decodes=30)
    return FixedSource(tuple(states), logs={s.info.name: path for s in states})


def hosts(folder: Path) -> FixedSource:
    """The fleet of ``fleet`` on the first of three hosts."""
    source = fleet(folder, host_states=host_states())
    for state in source.servers:
        assert state.run is not None
        source.change(state.info.name, run=replace(state.run, run=f"run-{state.info.name}"))
    return source


def _gpu(place: int, holder: Holder, busy: float, power: float) -> Gpu:
    return Gpu(
        place, "NVIDIA H100 80GB HBM3", f"GPU-{place}", holder.used, 85 * GB, busy, power, 700.0, 61.0, (holder,)
    )


def host_states() -> tuple[HostState, ...]:
    """A host with GPUs, one of them somebody else's; one that is out of reach; one without a driver's tool."""
    gpus = tuple(
        _gpu(n, Holder(4711 + n, 71 * GB, f"run-gpu{n}", "root", "sglang::schedul"), *figures)
        for n, figures in enumerate(((0.97, 612.0), (0.95, 598.0), (0.0, 121.0)))
    )
    disks = (
        Disk("runs", "/root/.local/state/hcs-tui/runs/box", 41 * GB, 960 * GB),
        Disk("model", "/models/Qwen3.6-27B", 2_100 * GB, 7_600 * GB),
    )
    foreign = _gpu(3, Holder(31337, 12 * GB, None, "alice", "python3"), 0.41, 240.0)
    box = Machine(540 * GB, int(61.3 * GB), 503 * GB, int(48.2 * GB), disks, (*gpus, foreign))
    small = Machine(
        64 * GB, 2 * GB, disks=(Disk("runs", "/home/me/state", 9 * GB, 100 * GB),),
        trouble="nvidia-smi gave no answer within 8 s",
    )  # fmt: skip
    return (
        HostState(
            "box", "root@gpu-host", "connected", since=NOW - 3700, memory_total=box.capacity, cpus=128,
            memory_available=box.usable, machine=box, seen_at=NOW - 3,
        ),
        HostState(
            "far", "far.example", "unreachable", "far did not answer within 10 s. Try `ssh far.example`.", NOW - 75,
            NOW + 8, machine=small, seen_at=NOW - 80, cpus=8,
        ),
        HostState(
            "plain", "plain", "connected", since=NOW - 20, machine=Machine(16 * GB, 12 * GB), seen_at=NOW, cpus=4
        ),
    )  # fmt: skip
