"""``LogFacts``: what a log says, read up to some byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from tui.sglang.model import Failure, Pool, Progress, Sample, Stage, StageSpan


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What the first ``size`` bytes of a log say. Missing values are ``None``, never zero."""

    lines: int = 0  # lines that end in a newline, of those that were read
    size: int = 0  # bytes
    missing: int = 0  # of them, bytes in the middle that were not read yet: what only they tell is not known
    version: str | None = None  # SGLang's, where the log tells it
    model: str | None = None
    args: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # of the server_args dump, masked
    stage: Stage | None = None  # the stage that all ranks have reached
    stages: tuple[StageSpan, ...] = ()
    missing_ranks: tuple[str, ...] = ()
    progress: Progress | None = None
    pools: tuple[Pool, ...] = ()
    free_before_gib: float | None = None  # GPU memory before the first load of weights, tightest rank
    free_after_gib: float | None = None  # and after the newest
    max_total_num_tokens: int | None = None
    max_running_requests: int | None = None
    context_len: int | None = None
    ready: bool = False  # the ready line, or batch lines of requests that are no probe
    ready_local: float | None = None
    shutting_down: bool = False
    latest: Sample | None = None  # the newest figures, summed over DP ranks
    series: Sequence[Sample] = ()  # one per second that had batch lines, oldest first, at most 600
    speculative: str | None = None  # the algorithm
    failure: Failure | None = None
    fatal: bool = False  # the failure stands even while the process lives
    warnings: tuple[str, ...] = ()
    last_line: str = ""  # the newest line that is no probe's, masked, capped
    last_local: float | None = None  # its time
    last_generate: float | None = None  # tokens/s as last printed, summed over DP ranks, whatever the line before said
    life: int = 0  # bytes that are no probe's: grows when the server gives a sign of life
    retracted: int = 0  # requests thrown back for want of cache
    storage: str | None = None  # the third level of the host cache, where one was attached
    heartbeat: str | None = None  # the clock time of the last sign of life that the newest failed health check names
    heartbeat_stands: bool = False  # the check before it named the same time
    unhealthy: bool = False  # a health check failed, and no batch line came since
    worker_node: bool = False  # a node of a multi-node server that serves no requests itself
    staged: bool = False  # a rank told a stage by a line of its own: ``--log-level warning`` leaves progress bars alone
    recognized: bool = False  # at least one line that only SGLang writes

    def merge(self, later: LogFacts) -> LogFacts:
        """What is known after both: facts are cumulative, so it is the one that has read further. Associative."""
        return later if later.size >= self.size else self
