"""What the dashboard and the headless commands know of a fleet: states to read, actions to send."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tui.host.machine import Disk, Gpu, Holder, Machine
from tui.host.question import LockedKey, Question, UnknownHostKey
from tui.sglang.state import ServerState

__all__ = ["Disk", "Gpu", "Holder", "LockedKey", "Machine", "Question", "UnknownHostKey"]  # of hosts, for the view
PATIENCE = 60.0  # seconds for a host that is lost in the middle of a kill to come back
WRONG_PASSPHRASE = "key_locked"  # ``Outcome.details["error"]`` of an ``Answer`` that did not open the key


@dataclass(frozen=True, slots=True)
class ForwardState:
    """A server's port on this machine's loopback. ``trouble``: why it could not be opened again after a reconnect."""

    server: str
    port: int  # on the host
    local: int
    trouble: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.local}"


@dataclass(frozen=True, slots=True)
class HostState:
    """One host at one moment. ``phase``: idle, connecting, connected, unreachable, refused."""

    name: str
    address: str
    phase: str = "idle"
    message: str = ""  # the error, with what to do
    since: float | None = None
    retry_at: float | None = None
    memory_total: int | None = None  # bytes, the cgroup's limit where there is one
    memory_available: int | None = None
    forwards: tuple[ForwardState, ...] = ()
    machine: Machine | None = None  # its memory, GPUs and disks, as last seen
    seen_at: float | None = None  # when
    cpus: int | None = None
    question: Question | None = None  # what the user can answer, so that the next attempt may work


@dataclass(frozen=True, slots=True)
class Launch:
    """Launch a server that does not run."""

    server: str


@dataclass(frozen=True, slots=True)
class Relaunch:
    """End a server if it runs, prove it gone, launch it again; ``overrides`` are flags → values (None removes)."""

    server: str
    overrides: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kill:
    """End a server and prove that nothing of it is left. ``grace``: seconds before SIGKILL, else the profile's.
    ``typed``: the name as the user typed it, without which a server that was found is left alone. ``patience``: seconds
    for its host to come back when it is lost meanwhile."""

    server: str
    grace: float | None = None
    typed: str = ""
    patience: float = PATIENCE


@dataclass(frozen=True, slots=True)
class SmokeTest:
    """One short completion on a ready server."""

    server: str


@dataclass(frozen=True, slots=True)
class Reconnect:
    """Try a host again now."""

    host: str


@dataclass(frozen=True, slots=True)
class Discover:
    """Look for SGLang servers on a host, whoever started them: they become servers of the fleet, marked as found."""

    host: str


@dataclass(frozen=True, slots=True)
class Forward:
    """Bring a server's port to this machine's loopback, or take it away again. ``local``: the port here, else the
    server's own if it is free, else any."""

    server: str
    local: int = 0


@dataclass(frozen=True, slots=True)
class Describe:
    """How a server is launched, as an ``Outcome`` with ``details``: ``flags`` (flag → text, secrets masked) and
    ``command``, a line for a shell."""

    server: str


@dataclass(frozen=True, slots=True)
class PastRuns:
    """The runs of a server that its host keeps: ``details`` has ``runs``, a tuple of ``tui.fleet.runs.PastRun``,
    newest first, as their records tell at once; or with what their logs say, of those in ``logs`` alone."""

    server: str
    logs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FetchLog:
    """Bring the log of any run of a server to this side: ``details`` has ``path``, its spool."""

    server: str
    run: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to a question: ``yes``, or a passphrase, which nothing may show. All hosts that wait for the same
    answer are tried again."""

    question: Question
    reply: str = field(repr=False)


Query = Describe | PastRuns | FetchLog
"""What is asked without changing anything."""

Action = Launch | Relaunch | Kill | SmokeTest | Reconnect | Discover | Forward | Answer | Query


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an action: one line for the person who asked, and details for a report."""

    ok: bool
    message: str
    details: Mapping[str, object] = field(default_factory=dict)


class Source(Protocol):
    """Where states come from: a live fleet on its own thread, saved logs, or fixed states in a test.

    Every method may be called from any thread and returns at once.
    """

    @property
    def title(self) -> str: ...

    @property
    def read_only(self) -> bool: ...

    @property
    def version(self) -> int:
        """Grows with every change of any state."""

    def states(self) -> tuple[ServerState, ...]:
        """One per server, in the profile's order."""

    def hosts(self) -> tuple[HostState, ...]: ...

    def log_path(self, server: str) -> Path | None:
        """A file on this side that holds the raw bytes of the server's current log, growing."""

    def act(self, action: Action) -> Future[Outcome]: ...

    def now(self) -> float:
        """Unix seconds; a frozen clock in tests."""
