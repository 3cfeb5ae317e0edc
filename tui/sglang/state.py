"""``ServerState``: everything known of one server. It changes only in ``reduce``."""

from __future__ import annotations

from dataclasses import dataclass, field

from tui.sglang.logfacts import LogFacts
from tui.sglang.model import Exit, Failure, MemoryReading, ModelFacts, RunInfo, Sample, ServerInfo
from tui.sglang.restarts import Restarts


@dataclass(frozen=True, slots=True)
class ServerState:
    """One server at one moment. Facts from each source stand apart; ``verdict`` says what they mean together.

    ``listening`` is what stands on the server's port: ``own`` (a socket of this run that accepts), ``foreign``
    (somebody else's), ``none``, or ``None`` while nobody has looked.
    """

    info: ServerInfo
    run: RunInfo | None = None
    log: LogFacts = field(default_factory=LogFacts)
    alive: bool | None = None
    exit: Exit | None = None
    listening: str | None = None
    listener: str | None = None  # whose the foreign socket is: "pid 123 (nginx)"
    http_ready: bool | None = None  # the answer of /ready or /model_info, where ready_by asks for it
    http: Sample | None = None  # the newest live figures by HTTP, where the log is silent
    http_facts: ModelFacts = field(default_factory=ModelFacts)  # what the running server answered about itself
    memory: MemoryReading | None = None
    memory_peak: int = 0  # bytes, the largest ``memory.pinned`` of this run
    grew_at: float | None = None  # when ``memory_peak`` last grew
    vanished: bool = False  # the process is gone and nobody recorded how
    vanished_why: str = ""  # why nobody did, where that is known
    refused: Failure | None = None  # a launch that never became a process
    stop_asked: float | None = None  # when this side, or another session, asked it to end
    unreachable_since: float | None = None
    unreachable_why: str | None = None
    log_at: float | None = None  # when the last byte of its log that is not a probe arrived
    seen_at: float | None = None  # when its host last said anything about it
    ready_at: float | None = None  # when it was first known to be ready
    previous_stages: tuple[tuple[str, float], ...] = ()  # (stage, seconds) of the last run that became ready
    warnings: tuple[str, ...] = ()  # what its host warns of now: little disk left, its keeper killed
    last_warnings: tuple[str, ...] = ()  # of a run that has ended: what its host warned of last
    notes: tuple[str, ...] = ()  # things worth saying that are no failure ("already runs with other flags: …")
    launch_at: float | None = None  # when its launch is due, which waits its turn among those on its host
    restarts: Restarts = field(default_factory=Restarts)


__all__ = ["ServerState"]
