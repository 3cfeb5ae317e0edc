"""Which message begins which stage. A table: the next SGLang's wording is a row."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tui.sglang.model import Progress, Stage, StageSpan

_S = Stage
# (pattern at the message's start, the stage in which the server is from then on); first match counts
RANK_ROWS: tuple[tuple[re.Pattern[str], Stage], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), stage)
    for pattern, stage in (
        (r"Init (?:torch distributed|parallel) (?:begin|ends)", _S.DIST_INIT),
        (r"sglang is using nccl", _S.DIST_INIT),
        (r"Load weight begin", _S.LOADING_WEIGHTS),
        (r"Load weight end\. Committed", _S.CUDA_GRAPH),
        (r"Load weight end", _S.KV_CACHE),
        (r"Mamba Cache is allocated", _S.MAMBA_CACHE),
        (r"(?:[\w.\- ]+ )?KV Cache (?:is allocated|VA upper bound|skipped)", _S.KV_CACHE),
        (r"Use [Ss]liding window memory pool|\[unified-memory-pool\]|DSV4 (?:memory|pool)", _S.KV_CACHE),
        (r"Memory pool end", _S.KV_CACHE),
        (r"Capture .*graph.* (?:begin|end)\b|Capture (?:cuda|cpu|npu) graph bs|\[BCG\] Capture", _S.CUDA_GRAPH),
        (r"Capture (?:cuda|cpu|npu) graph num tokens", _S.CUDA_GRAPH),
        (r"Allocating .* host (?:memory|pool)", _S.HOST_CACHE),
        (r"(?:HiCache (?:auto-sizing|staging|memory headroom)|Attached hybrid )", _S.HOST_CACHE),
        (r"(?:\w+: )?Not enough host memory (?:available|for \S+ (?:indexer|index|paged|state))", _S.HOST_CACHE),
        (r"Creating (?:dynamic )?storage backend", _S.HOST_CACHE),
    )
)
MAIN_ROWS: tuple[tuple[re.Pattern[str], Stage], ...] = tuple(
    (re.compile(pattern), stage)
    for pattern, stage in (
        (r"server_args=", _S.LAUNCHING),
        (r"INFO: +(?:Started server process|Waiting for application startup|Application startup complete)", _S.WARMUP),
        (r"INFO: +Uvicorn running on|Uvicorn running on|Starting embedded Granian", _S.WARMUP),
        (r"Start of (?:prefill|pd disaggregation) warmup|Engine startup timings", _S.WARMUP),
        (r"The server is fired up and ready to roll!", _S.READY),
    )
)
_ORDER = {stage: index for index, stage in enumerate(Stage)}
_WEIGHTS = re.compile(r"(?:Loading .* shards|Multi-thread loading .*shards):\s+\d+% Completed \| (\d+)/(\d+)")
_CAPTURE = re.compile(r"(?:Capturing [^:|]*(?:\([^)]*\))?:?\s*)?\d+%\|[^|]*\| *(\d+)/(\d+) \[")


def rank_stage(message: str) -> Stage | None:
    """The stage that a scheduler's message begins."""
    for pattern, stage in RANK_ROWS:
        if pattern.match(message):
            return stage
    return None


def main_stage(message: str) -> Stage | None:
    """The stage that a message of the main process begins."""
    for pattern, stage in MAIN_ROWS:
        if pattern.match(message):
            return stage
    return None


def bar(message: str) -> Progress | None:
    """The progress that a bar shows."""
    if "%" not in message or "/" not in message:
        return None
    weights = _WEIGHTS.search(message)
    if weights:
        return Progress("shards", int(weights[1]), int(weights[2]))
    if "Capturing" in message or message.lstrip()[:5].rstrip().endswith("%|"):
        capture = _CAPTURE.search(message)
        if capture:
            return Progress("graphs", int(capture[1]), int(capture[2]))
    return None


@dataclass
class Stages:
    """How far each rank has come, and how long the server as a whole stood in each stage."""

    ranks: dict[str, Stage] = field(default_factory=dict)  # where each rank stands
    furthest: dict[str, Stage] = field(default_factory=dict)
    main: Stage | None = None
    expected: tuple[str, ...] = ()
    progress: Progress | None = None
    _spans: dict[Stage, StageSpan] = field(default_factory=dict)
    _current: Stage | None = None
    _since: float | None = None

    @property
    def stage(self) -> Stage | None:
        """What all ranks have reached."""
        if self.main in (Stage.WARMUP, Stage.READY):
            return self.main
        if self.ranks:
            return min(self.ranks.values(), key=_ORDER.__getitem__)
        return self.main

    @property
    def missing(self) -> tuple[str, ...]:
        """The ranks that the others wait for."""
        if self.main in (Stage.WARMUP, Stage.READY) or not self.furthest:
            return ()
        top = max(_ORDER[stage] for stage in self.furthest.values())
        behind = [rank for rank, stage in self.furthest.items() if _ORDER[stage] < top and rank]
        unheard = [rank for rank in self.expected if rank not in self.furthest]
        return tuple(sorted({*behind, *unheard}, key=_natural)) if len(self.furthest) > 1 else ()

    def rank_reached(self, rank: str, stage: Stage, time: float | None) -> None:
        if not rank and any(self.ranks):
            return  # the main process of a server whose ranks have names
        if rank:
            self.ranks.pop("", None)
            self.furthest.pop("", None)
        self.ranks[rank] = stage
        if _ORDER[stage] >= _ORDER.get(self.furthest.get(rank, Stage.LAUNCHING), 0):
            self.furthest[rank] = stage
        self._moved(time)

    def main_reached(self, stage: Stage, time: float | None) -> None:
        if self.main is Stage.READY and stage is Stage.WARMUP:
            return
        if stage is Stage.LAUNCHING and (self.ranks or self.main):
            return
        self.main = stage
        self._moved(time)

    def _moved(self, time: float | None) -> None:
        stage = self.stage
        if stage is self._current or stage is None:
            return
        self.progress = None
        self._close(time)
        self._current, self._since = stage, time
        if stage not in self._spans:
            self._spans[stage] = StageSpan(stage, time)

    def _close(self, time: float | None) -> None:
        if self._current is None:
            return
        span = self._spans[self._current]
        if time is not None and self._since is not None:
            seconds = (span.seconds or 0.0) + max(0.0, time - self._since)
            self._spans[self._current] = StageSpan(span.stage, span.start_local, round(seconds, 3))

    def spans(self) -> tuple[StageSpan, ...]:
        """The stages so far, in the order in which they began; the current one's seconds are still open."""
        return tuple(StageSpan(s.stage, s.start_local) if s.stage is self._current else s for s in self._spans.values())


def _natural(rank: str) -> tuple[object, ...]:
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", rank))
