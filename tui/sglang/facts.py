"""``LogFacts``: what a log says, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tui.sglang.model import Failure, Pool, Progress, Sample, Stage, StageSpan


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What the lines read so far say, together. Missing values are ``None``, never zero.

    Facts are cumulative: of two about one log, the one with more bytes replaces the other.
    """

    lines: int = 0  # lines that end in a newline
    size: int = 0  # bytes
    version: str | None = None  # SGLang's, where the log tells it
    model: str | None = None
    args: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({})
    )  # of the server_args dump, secrets masked
    stage: Stage | None = None  # the stage that all ranks have reached
    stages: tuple[StageSpan, ...] = ()
    missing_ranks: tuple[str, ...] = ()
    progress: Progress | None = None
    pools: tuple[Pool, ...] = ()
    max_total_num_tokens: int | None = None
    max_running_requests: int | None = None
    context_len: int | None = None
    ready: bool = False  # the ready line, or batch lines of requests that are no probe
    ready_local: float | None = None
    shutting_down: bool = False
    finished: bool = False  # it said itself that it ended in good order
    latest: Sample | None = None  # the newest figures, summed over DP ranks
    after_idle: bool = False  # the newest throughput averages over idle time
    series: tuple[Sample, ...] = ()  # one per second that had batch lines, oldest first, at most 600
    speculative: str | None = None  # the algorithm
    failure: Failure | None = None
    fatal: bool = False  # the failure stands even while the process lives
    warnings: tuple[str, ...] = ()
    last_line: str = ""  # the newest line that is no probe's, masked, capped
    last_local: float | None = None  # its time
