"""Which message begins which stage, and how far each rank has come. Tables: the next SGLang's wording is a row."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from tui.sglang.lines import natural
from tui.sglang.model import Progress, Stage, StageSpan
from tui.sglang.replicas import LATE

_S = Stage
_Rows = tuple[tuple[re.Pattern[str], Stage], ...]

# What a scheduler says at a message's start → the stage in which that rank is from then on. The first match counts.
RANK_ROWS: _Rows = tuple(
    (re.compile(pattern, re.IGNORECASE), stage)
    for pattern, stage in (
        (r"Init (?:torch distributed|parallel|nccl) (?:begin|ends)", _S.DIST_INIT),
        (r"sglang is using nccl|Custom allreduce is disabled|Init custom all ?reduce", _S.DIST_INIT),
        (r"Load weight begin", _S.LOADING_WEIGHTS),
        (r"Load weight end\. Committed", _S.CUDA_GRAPH),
        (r"Load weight end", _S.KV_CACHE),
        (r"Mamba Cache is allocated|int8 mamba checkpoint pool|GDN ReplaySSM ring", _S.MAMBA_CACHE),
        (r"(?:[\w.\- ]{1,60} )?KV Cache (?:(?:is )?allocated|VA upper bound|skipped)", _S.KV_CACHE),
        (r"Use sliding window memory pool|\[unified-memory-pool\]|DSV4 (?:memory|pool)", _S.KV_CACHE),
        (r"Initialize DeepSeekV4TokenToKVPool|HiCache staging prepared|SWAKVPool ", _S.KV_CACHE),
        (r"(?:Auto-sized )?(?:attention )?KV pool(?: initialized)?: |MLX stub: initialized minimal pools", _S.KV_CACHE),
        (r"Memory pool end|max_total_tokens=\S+ is larger than the profiled", _S.KV_CACHE),
        (r"Capture [^:]{0,80}graph\b[^:]{0,40} (?:begin|end)\b", _S.CUDA_GRAPH),
        (r"Capture (?:\w+ )?graph (?:bs|num tokens)|\[BCG\] Capture", _S.CUDA_GRAPH),
        (r"Post-capture KV sizing", _S.CUDA_GRAPH),
        (r"Register(?:ing|ed) \d+ cuda graph addresses", _S.CUDA_GRAPH),
        (r"Allocating .{1,80} host (?:memory|pool)", _S.HOST_CACHE),
        (r"HiCache (?:auto-sizing|memory headroom|draft KV registered|fused draft)|Attached hybrid ", _S.HOST_CACHE),
        (r"\S{1,60} dummy mode: allocator-only|HiCache (?:host \w{1,20}|\w{1,20} host) pool \(", _S.HOST_CACHE),
        (r"Sync fixed-size HiCache|MLA host-dedup|\[HiCache\] memfabric|NPU HiCache", _S.HOST_CACHE),
        (r"Creating (?:dynamic )?storage backend|Mooncake (?:store|Configuration)", _S.HOST_CACHE),
        (r"waiting mooncake store|Connect to Mooncake store|Created HiCacheFile storage", _S.HOST_CACHE),
        (r"\[Rank \d{1,6}\] HiCacheHF3FS|HiCacheNixl: ", _S.HOST_CACHE),
    )
)
# Said by rank 0 alone in some versions: it tells the stage, but not who is missing.
LEADER_ROWS: _Rows = tuple(
    (re.compile(pattern, re.IGNORECASE), stage)
    for pattern, stage in (
        (r"Capture (?:single-CG |UNO tree |Frozen-KV MTP )?draft ", _S.CUDA_GRAPH),
        (r"Capture \w{1,10} graph (?:bs|num tokens)|\[BCG\]|Register(?:ing|ed) \d+ cuda graph", _S.CUDA_GRAPH),
        (r"Created HiCacheFile|MLA host-dedup|(?:waiting|Connect to) mooncake|Sync fixed-size", _S.HOST_CACHE),
    )
)
# What the main process, the loader of another engine or an HTTP front end says.
MAIN_ROWS: _Rows = tuple(
    (re.compile(pattern), stage)
    for pattern, stage in (
        (r"server_args=(?:ServerArgs\(|\{)", _S.LAUNCHING),
        (r"Loading (?:model from )?.{0,80}(?:checkpoint shards|safetensors files)", _S.LOADING_WEIGHTS),
        (r"Multi-thread loading .{0,20}shards|Loading MLX model: ", _S.LOADING_WEIGHTS),
        (r"Loading (?:pipeline modules|required components)|Loaded module \S{1,80} from ", _S.LOADING_WEIGHTS),
        (r"Worker \d{1,4}: Scheduler loop started|Starting FastAPI server|Processing warmup req", _S.WARMUP),
        (r"INFO: +(?:Started server process|Waiting for application startup|Application startup complete)", _S.WARMUP),
        (r"(?:INFO: +)?Uvicorn running on|Starting embedded Granian|Engine startup timings", _S.WARMUP),
        (r"(?:Start|End) of (?:\w+ ){1,3}warmup|Disaggregation warmup", _S.WARMUP),
        (r"Initialization failed\. warmup error|(?:Sending )?gRPC (?:warmup|server listening)", _S.WARMUP),
        (r"Sending warmup request to gRPC|(?:Standalone )?gRPC scheduler servic", _S.WARMUP),
        (r"Starting standalone gRPC server on ", _S.READY),  # 0.5.3: its last word
        (r"(?:\S{1,60} )?The server is fired up and ready to roll!", _S.READY),
    )
)
# Where an excerpt shows only a failure, its traceback or its text tells the stage. These only move forward.
HINT_ROWS: _Rows = tuple(
    (re.compile(pattern), stage)
    for pattern, stage in (
        (r"\s*File \".{1,400}, in (?:init_torch_distributed|init_distributed_environment)\b", _S.DIST_INIT),
        (r"\s*File \".{1,400}, in (?:load_model|load_weights)\b", _S.LOADING_WEIGHTS),
        (r"\s*File \".{1,400}, in (?:init_memory_pool|alloc_memory_pool|init_kv_cache)\b", _S.KV_CACHE),
        (r"\s*File \".{1,400}, in (?:init_cuda_graphs|init_device_graphs|init_decode_cuda_graph)\b", _S.CUDA_GRAPH),
        (r"\s*File \".{0,400}(?:cuda_graph_runner|eagle_draft_\w+_runner)\.py\", line \d+, in ", _S.CUDA_GRAPH),
        (r"(?:\w+: )?Capture \w{1,10} graph failed", _S.CUDA_GRAPH),
        (
            r"\s*File \".{0,400}/(?:memory_pool_host|pool_host/\w+|hiradix_cache|mem_cache/storage/[\w/]+)\.py\", line",
            _S.HOST_CACHE,
        ),
        (r"(?:\w+: )?(?:Not enough GPU memory for hybrid|Hybrid) \(mamba", _S.MAMBA_CACHE),
        (r"(?:\w+: )?Not enough host memory (?:available|for (?!request))", _S.HOST_CACHE),
        (r"(?:\w+: )?No host memory is left for HiCache|(?:\w+: )?cudaHostRegister failed", _S.HOST_CACHE),
        (r".{0,40}\[Errno 98\] error while attempting to bind", _S.WARMUP),
    )
)
# Where an excerpt shows nothing before them, these tell how far the start-up had come.
EXCERPT_ROWS: _Rows = tuple(
    (re.compile(pattern), stage)
    for pattern, stage in (
        (r"\[Gloo\] Rank \d{1,6} is connected|\[AR\] |Setup Custom allreduce failed", _S.DIST_INIT),
        (r"(?:reading|generating) GPU P2P access cache", _S.DIST_INIT),
        (r"Using model weights format|Shared experts fusion|Fetching \d{1,6} files: ", _S.LOADING_WEIGHTS),
        (r"\S{0,200}model-\d{5}-of-\d{5,6}\.safetensors: ", _S.LOADING_WEIGHTS),
        (r"Using (?:default )?(?:MoE|W8A8) |Config file not found at |(?:Running )?FlashInfer autotune", _S.CUDA_GRAPH),
        (r"Tree cache initialized: .{0,200}(?:hierarchical|hicache_attached)=True", _S.HOST_CACHE),
        (r"Tree cache initialized: |Init Unified Radix|max_total_num_tokens=", _S.CUDA_GRAPH),
        (r"Running warmup |Warmup ended|Start multi-tokenizer worker|INFO: +Started parent process", _S.WARMUP),
        (r"Entering DeepGEMM JIT", _S.WARMUP),
    )
)
# A scheduler's loop runs: start-up is over for it; whether requests were served, the rest of the log tells.
LOOP = re.compile(
    r"\s*File \".{1,400}, in (?:run_event_loop|event_loop_\w+|dispatch_event_loop|forward_thread_func_?)$|"
    r"\s+scheduler\.(?:run_event_loop|event_loop_\w+)\("
)
# Kernels of the model first run when graphs are captured: a start-up that dies of one has come that far.
_FIRST_RUN = re.compile(
    r".{0,200}no kernel image is available|(?:\w+: )?(?:Triton Error|PassManager::run failed)|Entering DeepGEMM JIT"
)
_SERVING = re.compile(
    r"(?:Scheduler )?[Ww]atchdog timeout \(|Health check failed\. Server|KV cache pool is full\. Retract|"
    r"Decode out of memory happened|.{0,200}Failed to check the \"should dump\" flag on TCPStore|"
    r"(?:Prefill|Decode) out of memory\. Try|Gracefully exiting|SIGTERM received\.|INFO: +\S+ - \"POST (?!/generate )|"
    r"(?:\w+: )?(?:token_to_kv_pool_allocator|req_to_token_pool|\w+ pool) memory leak detected|"
    r"(?:\w+: )?alloc_req_slots runs out of memory|Subprocess \S+ \(pid=\d+\) crashed"
)
# A word of each row of these tables: a line that has none of them is told by none
SOME_STAGE = re.compile(
    r"nit |oad|ache|raph|pool|Allocating|dummy|ooncake|storage backend|server_args=|INFO: |Uvicorn|Granian|armup|"
    r"KeyboardInterrupt|"
    r"ngine startup|ready to roll|llreduce|nccl|File \"|emory|profiled|DeepGEMM|HiCache|Attached|Errno|"
    r"atchdog|ealth check|etract|SIGTERM|xiting|crashed|TCPStore|alloc_req|event_loop|kernel image|Triton|PassM|"
    r"apture|Pool|gRPC|ReplaySSM|Gloo|\[AR\]|P2P|Fetching|model-0|xperts|onfig|autotune|adix|multi-tok|parent|"
    r"Loaded module|loop started"
)
_ORDER = {stage: index for index, stage in enumerate(Stage)}
_ORDER[Stage.MAMBA_CACHE] = _ORDER[Stage.KV_CACHE]  # one step: which of the two comes first depends on the version
_WEIGHTS = re.compile(r"(?:Loading .{0,80}|Multi-thread loading .{0,20}):\s+\d{1,3}% Completed \| (\d{1,9})/(\d{1,9})")
_CAPTURE = re.compile(
    r"\s{0,8}(?:Capturing [^:|]{0,40}(?:\([^)]{0,80}\))?:?\s*)?\d{1,3}%\|[^|]{0,400}\| *(\d{1,9})/(\d{1,9}) \["
)


def matching(message: str, rows: _Rows) -> Stage | None:
    """The stage of the first row that matches the message's start."""
    for pattern, stage in rows:
        if pattern.match(message):
            return stage
    return None


def tells_serving(message: str) -> bool:
    """Whether only a server that has worked on requests says this."""
    return _SERVING.match(message) is not None


def bar(message: str) -> Progress | None:
    """The progress that a bar shows: weights (``shards``) or graphs (batch sizes)."""
    found = _WEIGHTS.search(message)
    if found:
        return Progress("shards", int(found[1]), int(found[2]))
    found = _CAPTURE.match(message)
    return Progress("graphs", int(found[1]), int(found[2])) if found else None


class _Place(NamedTuple):
    """Where one rank stands. ``turn`` counts how often it went back (a draft model loads after the target)."""

    turn: int
    order: int
    stage: Stage

    @property
    def position(self) -> tuple[int, int]:
        return self.turn, self.order


@dataclass(slots=True)
class Stages:
    """How far each rank has come, and how long the server as a whole stood in each stage."""

    places: dict[str, _Place] = field(default_factory=dict)
    stood: Counter[_Place] = field(default_factory=Counter)  # how many ranks stand there: few places, many ranks
    main: Stage | None = None
    leader: tuple[tuple[int, int], Stage] | None = None  # where a leader stood, and the stage that it told from there
    expected: tuple[str, ...] | None = None  # the ranks that the arguments imply; ``None``: not yet asked
    progress: Progress | None = None
    spans_: dict[Stage, StageSpan] = field(default_factory=dict)
    current: Stage | None = None
    since: float | None = None
    over: bool = False  # a rank has failed
    told: bool = False  # a rank told one by a line of its own, not the main process or a progress bar

    def copy(self) -> Stages:
        return Stages(
            self.places.copy(),
            self.stood.copy(),
            self.main,
            self.leader,
            self.expected,
            self.progress,
            dict(self.spans_),
            self.current,
            self.since,
            self.over,
            self.told,
        )

    @property
    def stage(self) -> Stage | None:
        """What all ranks have reached, or what the main process says once they have."""
        if self.main in (Stage.WARMUP, Stage.READY):
            return self.main
        if self.places:
            slowest = self._slowest().stage
            return slowest if self.main is None or _ORDER[slowest] >= _ORDER[self.main] else self.main
        return self.main

    @property
    def missing(self) -> tuple[str, ...]:
        """The ranks that the others wait for: behind the furthest, or expected and not heard of."""
        if self.over or self.main in (Stage.WARMUP, Stage.READY) or not any(self.places):
            return ()
        positions = {place: self._stands(place).position for place in self.stood}
        stands = {rank: positions[place] for rank, place in self.places.items()}
        top = max(stands.values())
        behind = {rank for rank, position in stands.items() if position < top}
        unheard = {rank for rank in self.expected or () if rank not in self.places}
        return tuple(sorted(behind | unheard, key=natural))[:64]

    def _stands(self, place: _Place) -> _Place:
        """Where a rank stands: with the leader, if it has come to where the leader spoke for all."""
        if self.leader is not None and place.position == self.leader[0]:
            return _Place(place.turn, _ORDER[self.leader[1]], self.leader[1])
        return place

    def _slowest(self) -> _Place:
        """The furthest behind of the places where ranks stand; of two that are one step, the first rank's."""
        stands = {self._stands(place) for place in self.stood}
        last = min(place.position for place in stands)
        if len([place for place in stands if place.position == last]) > 1:
            return next(at for place in self.places.values() if (at := self._stands(place)).position == last)
        return next(place for place in stands if place.position == last)

    def _put(self, rank: str, place: _Place | None) -> None:
        before = self.places.get(rank)
        if before is not None:
            self.stood[before] -= 1
            if not self.stood[before]:
                del self.stood[before]
        if place is None:
            self.places.pop(rank, None)
        else:
            self.places[rank] = place
            self.stood[place] += 1

    def rank_reached(self, rank: str, stage: Stage, time: float | None) -> None:
        if self.over or (not rank and any(self.places)):
            return  # the main process of a server whose ranks have names
        self.told = True
        if rank and "" in self.places:
            self._put("", None)
        place = self.places.get(rank)
        if place is not None or len(self.places) < 4096:
            again = place is not None and _ORDER[stage] < place.order
            self._put(rank, _Place((place.turn if place else 0) + again, _ORDER[stage], stage))
        self._moved(time)

    def leader_reached(self, rank: str, stage: Stage, time: float | None) -> None:
        """A stage that rank 0 alone tells: all ranks that come to where it stands are in it."""
        if rank not in self.places:
            self.rank_reached(rank, stage, time)
        elif not self.over and _ORDER[stage] > self.places[rank].order:
            self.leader = (self.places[rank].position, stage)
            self._moved(time)

    def failed(self, rank: str, time: float | None) -> None:
        """A rank failed where it stands: that is how far the start came, and what others still reach is no progress."""
        place = self.places.get(rank)
        if place is not None and self.main not in (Stage.WARMUP, Stage.READY) and not self.over:
            self.over, self.places, self.stood = True, {rank: place}, Counter([place])
            self._moved(time)

    def main_reached(self, stage: Stage, time: float | None) -> None:
        if stage is not Stage.READY and self.main is not None and _ORDER[stage] < _ORDER[self.main]:
            return
        if self.main is Stage.READY:
            return
        self.main = stage
        self._moved(time)

    def never_ready(self, time: float | None) -> None:
        """The warm-up failed: what looked like serving were its requests, or others that came early."""
        if self.main is Stage.READY:
            self.main = Stage.WARMUP
            self._moved(time)

    def hint(self, message: str, time: float | None) -> None:
        """Go as far as a message tells that is not said at a stage's begin."""
        stage = matching(message, HINT_ROWS)
        if stage is None and self.stage in (None, Stage.LAUNCHING):
            stage = matching(message, EXCERPT_ROWS)
        elif stage is None and self.stage in (Stage.KV_CACHE, Stage.MAMBA_CACHE) and _FIRST_RUN.match(message):
            stage = Stage.CUDA_GRAPH
        if stage is not None:
            self.hinted(stage, time)

    def hinted(self, stage: Stage, time: float | None) -> None:
        """At least this stage, by what a failure tells."""
        present = self.stage
        named = (present, stage) == (Stage.KV_CACHE, Stage.MAMBA_CACHE)
        if present is None or named or _ORDER[stage] > _ORDER[present]:
            self.main = stage
            if stage not in (Stage.WARMUP, Stage.READY):
                self.places.clear()
                self.stood.clear()
            self.leader = None
            self._moved(time)

    def _moved(self, time: float | None) -> None:
        stage = self.stage
        if stage is self.current or stage is None:
            return
        self.progress = None
        if time is not None and self.since is not None and self.since - LATE <= time:
            time = max(time, self.since)  # ranks write at their own pace: what is told late took no time of its own
        if stage is Stage.MAMBA_CACHE and self.current is Stage.KV_CACHE and self.spans_[self.current].seconds is None:
            # What passed since the weights were loaded went into the pool that is told first.
            begun = self.spans_.pop(Stage.KV_CACHE)
            self.spans_[stage] = StageSpan(stage, begun.start_local)
            self.current = stage
            return
        self._close(time)
        self.current, self.since = stage, time
        if stage not in self.spans_:
            self.spans_[stage] = StageSpan(stage, time)

    def _close(self, time: float | None) -> None:
        if self.current is None:
            return
        span = self.spans_[self.current]
        if time is not None and self.since is not None:
            seconds = (span.seconds or 0.0) + max(0.0, time - self.since)
            self.spans_[self.current] = StageSpan(span.stage, span.start_local, round(seconds, 3))

    def spans(self) -> tuple[StageSpan, ...]:
        """The stages so far, in the order in which they began; the present one's seconds are still open."""
        return tuple(StageSpan(s.stage, s.start_local) if s.stage is self.current else s for s in self.spans_.values())
