"""What can happen to a server, as frozen values for ``reduce``. ``at`` is Unix seconds on this side."""

from __future__ import annotations

from dataclasses import dataclass

from tui.sglang.logfacts import LogFacts
from tui.sglang.model import Exit, Failure, MemoryReading, ModelFacts, RunInfo, Sample, ServerInfo
from tui.sglang.restarts import Restarts


@dataclass(frozen=True, slots=True)
class Launched:
    """A run began, or was found running or ended (``run.adopted``): all facts of an earlier run are dropped. ``info``:
    what the profile says of the server now, where that may have changed."""

    at: float
    run: RunInfo
    previous_stages: tuple[tuple[str, float], ...] = ()
    info: ServerInfo | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A launch that never became a process: no such directory, interpreter, port taken, somebody else won."""

    at: float
    failure: Failure


@dataclass(frozen=True, slots=True)
class LogRead:
    """A batch of the run's log, already read by ``facts``."""

    at: float
    facts: LogFacts


@dataclass(frozen=True, slots=True)
class Watched:
    """The agent's look at a run's processes, memory and port, or at the port of a server that was never launched;
    fields that it could not read are ``None``."""

    at: float
    alive: bool | None = None
    listening: str | None = None
    memory: MemoryReading | None = None
    listener: str | None = None  # who, when ``listening`` is foreign
    warnings: tuple[str, ...] | None = None  # what its host warns of now


@dataclass(frozen=True, slots=True)
class HttpRead:
    """An answer of the server by HTTP: ready or not, live figures, and what it says of itself, where it has them."""

    at: float
    ready: bool | None = None
    sample: Sample | None = None
    facts: ModelFacts | None = None


@dataclass(frozen=True, slots=True)
class Exited:
    """The main process ended, seen by its keeper."""

    at: float
    exit: Exit


@dataclass(frozen=True, slots=True)
class Vanished:
    """The run's process is gone and nobody recorded how (reboot, keeper killed): ``why``, where that is known."""

    at: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """Somebody asked the server to end."""

    at: float


@dataclass(frozen=True, slots=True)
class HostLost:
    """The server's host cannot be reached; what is known stays known, with its age."""

    at: float
    why: str


@dataclass(frozen=True, slots=True)
class HostBack:
    """The server's host answers again."""

    at: float


@dataclass(frozen=True, slots=True)
class Noted:
    """Something worth saying about the server that is no failure."""

    at: float
    note: str


@dataclass(frozen=True, slots=True)
class Queued:
    """A launch waits its turn among those on its host until ``due``; ``None``: it waits no longer."""

    at: float
    due: float | None


@dataclass(frozen=True, slots=True)
class RestartsTold:
    """How the server's restarts stand now."""

    at: float
    restarts: Restarts


Event = (
    Launched
    | Refused
    | LogRead
    | Watched
    | HttpRead
    | Exited
    | Vanished
    | StopAsked
    | HostLost
    | HostBack
    | Noted
    | Queued
    | RestartsTold
)
