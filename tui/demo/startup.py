"""The start-up of a simulated scheduler as a sequence of steps, so that a test can read it without running it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tui.demo.arguments import Options
from tui.demo.lines import LOADING, POOLS, Rows
from tui.demo.memory import Memory, Scripted
from tui.demo.sizes import DIST_BYTES, GB, GIB, GPU_BYTES, QWEN, RESERVE, host_slots, host_tokens
from tui.demo.steps import Bar, Die, Hang, Pin, Say, Step, Wait
from tui.demo.tracebacks import gpu_memory, host_memory

_SHARDS = tuple(range(1, 12))
_DRAFT_SHARDS = (1, 2)
_NOISE = (("midashenglm", "torchaudio"), ("inkling", "cutlass"))
Part = Callable[[], Iterator[Step]]


class Startup:
    """Walks through a start-up, asks for host memory, and keeps count of what is left on the GPU, in bytes."""

    def __init__(self, options: Options, memory: Memory | None = None) -> None:
        self.options = options
        self.dialect = options.dialect
        self.scenario = options.scenario
        self.pace = options.scenario.pace
        self.available = GPU_BYTES
        self.memory = memory or Scripted(options)

    def steps(self) -> Iterator[Step]:
        """From the first line of the scheduler to the moment when it can take requests."""
        yield from self._dist()
        for part in self._order():
            yield from part()
        yield from self._summary()
        yield from self._host_pools()

    def _order(self) -> tuple[Part, ...]:
        """With a draft model, releases since 0.5.14 load both weights first, then make both pools."""
        if not self.options.draft_tokens:
            return self._weights, self._pools, self._graphs
        if self.dialect.since("0.5.14"):
            return (
                self._weights, self._draft_weights, self._pools, self._draft_pool, self._graphs, self._draft_graphs,
            )  # fmt: skip
        return self._weights, self._pools, self._graphs, self._draft_weights, self._draft_pool, self._draft_graphs

    def _line(self, table: Mapping[str, Rows], name: str, **values: object) -> Iterator[Say]:
        text = self.dialect.say(table, name, avail=self.available / GIB, **values)
        if text:
            yield Say(text)

    def _elapsed(self, seconds: float) -> float:
        """What a stopwatch would show for ``seconds`` of the scenario."""
        return seconds / self.options.speed

    def _dist(self) -> Iterator[Step]:
        yield from self._line(LOADING, "dist_begin")
        if self.scenario.ending == "hang_nccl":
            yield Hang()
        yield Wait(self.pace.dist)
        self.available -= DIST_BYTES
        yield from self._line(LOADING, "dist_end", elapsed=self._elapsed(self.pace.dist), used=DIST_BYTES / GIB)
        yield from self._line(LOADING, "baseline", used=DIST_BYTES / GIB)
        for module, missing in _NOISE:
            yield from self._line(LOADING, "import_noise", module=module, missing=missing)

    def _weights(self) -> Iterator[Step]:
        yield from self._load(QWEN.type, QWEN.weights, _SHARDS, self.pace.weights)
        if self.scenario.ending == "gpu_memory":
            yield gpu_memory(self.dialect, self.options.flags["mem_fraction_static"])

    def _draft_weights(self) -> Iterator[Step]:
        yield from self._load(QWEN.draft_type, QWEN.draft_weights, _DRAFT_SHARDS, self.pace.draft)

    def _load(self, model: str, size: int, shards: tuple[int, ...], seconds: float) -> Iterator[Step]:
        yield from self._line(LOADING, "load_begin")
        label = self.dialect.say(LOADING, "shards") or ""
        yield Bar(label, shards, seconds, weights=True, newlines=not self.dialect.since("0.5.10"))
        self.available -= size
        yield from self._line(
            LOADING, "load_end", elapsed=self._elapsed(seconds), type=model, used=size / GIB,
        )  # fmt: skip

    def _pools(self) -> Iterator[Step]:
        yield from self._line(LOADING, "kv_dtype")
        yield from self._mamba_pool()
        yield Wait(self.pace.pools / 2)
        size = self.scenario.tokens * QWEN.kv_per_token
        self.available -= size
        yield from self._line(POOLS, "kv", tokens=self.scenario.tokens, half=size / 2 / GIB)
        yield Wait(self.pace.pools / 2)
        yield from self._line(POOLS, "end")
        yield from self._line(LOADING, "linear_attention")

    def _mamba_pool(self) -> Iterator[Step]:
        slots = self.scenario.slots
        conv, ssm = ((slots + 1) * size for size in (QWEN.conv_per_slot, QWEN.ssm_per_slot))
        self.available -= conv + ssm
        text = self.dialect.say(POOLS, "mamba", slots=slots, conv=conv / GIB, ssm=ssm / GIB)
        if text and self.options.draft_tokens:
            states = (self.scenario.running + 1) * self.options.draft_tokens
            conv, ssm = states * QWEN.conv_per_slot, states * QWEN.ssm_per_slot
            self.available -= conv + ssm
            text += self.dialect.say(POOLS, "mamba_draft", conv=conv / GIB, ssm=ssm / GIB) or ""
        if text:
            yield Say(text)

    def _draft_pool(self) -> Iterator[Step]:
        size = self.scenario.tokens * QWEN.draft_kv_per_token
        self.available -= size
        yield from self._line(POOLS, "kv", tokens=self.scenario.tokens, half=size / 2 / GIB)
        yield from self._line(POOLS, "end")

    def _graphs(self) -> Iterator[Step]:
        verify = self.options.draft_tokens
        part = "target verify" if verify else "target decode"
        yield from self._capture("", part, self.pace.graphs, 1.42, verify or 1)

    def _draft_graphs(self) -> Iterator[Step]:
        yield from self._capture("draft ", "draft decode", self.pace.graphs / 3, 0.31, 1)
        if self.dialect.since("0.4.7"):
            yield from self._capture("draft extend ", "draft extend", self.pace.graphs / 3, 0.28, 4)

    def _capture(self, word: str, part: str, seconds: float, gib: float, width: int) -> Iterator[Step]:
        """Capture the graphs of one model; ``width`` is how many tokens a request has in a step."""
        if self.options.flags.get("disable_cuda_graph"):
            return
        most = self.scenario.running
        sizes = tuple(sorted({size for size in (1, 2, 4, 8, 12, 16, 24) if size < most} | {most}, reverse=True))
        listed = sorted(sizes)
        yield from self._line(LOADING, "graph_begin", word=word, part=part, width=width, bs=listed)
        if not word:
            yield from self._line(LOADING, "graph_sizes", word=word, bs=listed)
        label = self.dialect.say(LOADING, "graph_bar", size="{size}", avail=self.available / GIB) or ""
        yield Bar(label, sizes, seconds)
        self.available -= int(gib * GIB)
        yield from self._line(
            LOADING, "graph_end", word=word, part=part, bs=listed, elapsed=self._elapsed(seconds), used=gib,
        )  # fmt: skip

    def _summary(self) -> Iterator[Step]:
        if self.options.draft_tokens:
            yield from self._line(LOADING, "spec_cap")
        yield from self._line(
            LOADING,
            "summary",
            tokens=self.scenario.tokens,
            chunk=self.options.flags["chunked_prefill_size"],
            running=self.scenario.running,
            context=QWEN.context,
        )

    def _host_pools(self) -> Iterator[Step]:
        """The host pools of HiCache: the line comes first, then the silent minutes of pinning."""
        kv, mamba = self.options.host_pools
        if kv:
            yield from self._host_kv(kv)
            if mamba:
                yield from self._host_mamba(mamba)
                yield from self._line(POOLS, "attached", layers=QWEN.layers)
        yield from self._line(POOLS, "tree", hybrid=True, hicache=bool(kv))

    def _host_kv(self, size: int) -> Iterator[Step]:
        tokens = host_tokens(size, QWEN)
        yield from self._claim(tokens * QWEN.kv_per_token)
        yield from self._line(POOLS, "host_kv", tokens=tokens, gb=tokens * QWEN.kv_per_token / GB)
        yield Pin(tokens * QWEN.kv_per_token, self.pace.host_kv)

    def _claim(self, size: int) -> Iterator[Step]:
        """The check of a host pool against the memory that the pools before it left: it precedes the pool's line."""
        free = self.memory.claim(size)
        yield from self._line(POOLS, "headroom", free=(free + RESERVE) / GIB)
        if size > free:
            yield host_memory(self.dialect, size / GB, free / GB)

    def _host_mamba(self, size: int) -> Iterator[Step]:
        slots = host_slots(size, QWEN)
        half = slots * QWEN.slot // 2
        yield from self._claim(slots * QWEN.slot)
        layout = self.options.flags.get("hicache_mem_layout", "layer_first")
        yield from self._line(POOLS, "host_mamba", slots=slots, gb=slots * QWEN.slot / GB, layout=layout)
        yield Pin(half, self.pace.host_mamba / 2)
        match self.scenario.ending:
            case "silent_death":
                yield Die(main=True)
            case "child_death":
                yield Die(main=False)
            case "hang":
                yield Hang()
        yield Pin(slots * QWEN.slot - half, self.pace.host_mamba / 2)
