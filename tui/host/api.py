"""What the rest of the program knows of a host: values, errors and the protocol of a ``Link``.

Nothing here imports asyncssh, so the fleet and tests load in an instant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from tui.host.machine import Machine
from tui.host.question import Question


class HostErrorKind(StrEnum):
    """Why a host or a request on it failed; ``UNREACHABLE``-like kinds end in exit code 4."""

    UNREACHABLE = "unreachable"  # name, route, port, timeout, connection lost
    HOST_KEY_UNKNOWN = "host_key_unknown"
    HOST_KEY_CHANGED = "host_key_changed"
    HOST_KEY_REVOKED = "host_key_revoked"
    LOGIN_REFUSED = "login_refused"
    KEY_LOCKED = "key_locked"  # a key that needs its passphrase
    CONFIG = "config"  # ~/.ssh/config, keys, options that this side cannot use
    NO_PYTHON = "no_python"
    NO_AGENT = "no_agent"  # the agent did not come up, or stopped answering
    REFUSED = "refused"  # the agent answers, but the request cannot be done


class HostError(Exception):
    """A failed connection or request, in the user's words: what happened, and what to do about it. ``question``: what
    the user can answer, so that the next attempt may work (``tui.host.answers``)."""

    def __init__(
        self,
        kind: HostErrorKind,
        message: str,
        remedy: str = "",
        failure: str = "other",
        question: Question | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.remedy = remedy
        self.question = question
        self.failure = failure  # the ``failure.kind`` of cli.md for a refused launch: port_in_use, bad_argument, other

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


@dataclass(frozen=True, slots=True)
class Hello:
    """What the agent says of its host when it comes up."""

    hostname: str
    user: str
    boot_id: str
    utc_offset: int  # seconds east of UTC
    time: float  # Unix seconds on the host
    python: str
    home: str
    cpus: int
    memory_total: int  # bytes, of the machine
    memory_limit: int | None  # bytes, of the cgroup


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """One launch, as asked for. ``env`` reaches the server and never the host's disk; ``secrets`` are the values in
    ``argv`` that must never be written or shown."""

    profile: str
    server: str
    argv: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    setup: str | None = None  # shell lines to source before
    log_link: str | None = None  # relative to cwd, or absolute
    port: int | None = None
    digest: str = ""  # of the server's part of the profile
    who: str = ""  # user@machine on this side


@dataclass(frozen=True, slots=True)
class RunExit:
    """How a run's main process ended, from the keeper's ``exit.json``."""

    status: int | None
    signal: str | None
    oom_killed: bool | None
    at: float
    left: tuple[int, ...] = ()
    refused: tuple[str, str, str] | None = None  # (message, remedy, failure.kind), of a program that never ran
    leftover: str = ""  # what of it lives on, and what ends that
    unforced: bool = False  # ended by SIGKILL, though it was sent SIGTERM alone: SGLang ends itself this way


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run directory of a host. ``alive`` is proven by pid, start time and boot id; ``exit`` may be unknown."""

    run: str
    profile: str
    server: str
    pid: int | None
    started: float
    boot_id: str | None
    argv: tuple[str, ...]
    log: str  # path on the host
    alive: bool
    exit: RunExit | None = None
    port: int | None = None
    digest: str = ""
    who: str = ""
    stop_asked: float | None = None
    log_size: int | None = None  # bytes, when the record was made
    log_inode: int | None = None
    kill_asked: float | None = None  # when somebody last asked to end it, or what was left of it
    at: float | None = None  # when the record was made, by the host's clock like ``started``
    sglang: str | None = None  # its version, where the launch found it beside the interpreter
    fate: str = ""  # running, unkept, ended, unstarted, rebooted, zombie, reused, unrecorded, newer…: see agent/outcome
    trouble: str = ""  # what is the matter with its files on the host, in words


@dataclass(frozen=True, slots=True)
class LogBytes:
    """A stretch of a run's log, at its true offset in the file ``inode``. ``handled`` must be called once the
    bytes are consumed: it returns the credit that lets the agent send more. ``anew``: the file that was followed was
    cut short, or another took its place; offsets count from its start again."""

    run: str
    inode: int
    offset: int
    data: bytes
    anew: bool = False
    handled: Callable[[], None] = field(default=lambda: None, compare=False)


@dataclass(frozen=True, slots=True)
class RunWatch:
    """A look at a run: its processes, memory in bytes, and what listens on its port (own, foreign, none)."""

    run: str
    at: float  # Unix seconds on the host
    alive: bool
    pids: tuple[int, ...] = ()
    pinned: int | None = None
    available: int | None = None
    total: int | None = None
    source: str = "rss"
    listening: str | None = None
    listener: str | None = None  # who, when foreign: "pid 123 (nginx)"
    disk_free: int | None = None  # bytes, where the log is
    log_size: int | None = None  # bytes
    warnings: tuple[str, ...] = ()  # what its host says of it now: little disk left, its keeper killed


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run's main process ended; ``exit`` is ``None`` when nobody recorded how. ``log_size`` is the log's size in
    bytes at that moment: the end may overtake the last bytes of the log, and who explains it waits for them."""

    run: str
    exit: RunExit | None
    log_size: int | None = None


@dataclass(frozen=True, slots=True)
class LinkLost:
    """The connection is gone; the link tries again by itself unless ``final``."""

    error: HostError
    final: bool
    retry_in: float | None = None  # seconds


@dataclass(frozen=True, slots=True)
class LinkUp:
    """The agent answers (again); followed logs and watches go on by themselves."""

    hello: Hello


@dataclass(frozen=True, slots=True)
class Forwarded:
    """After a reconnect a forwarded port listens on this machine again, or cannot: ``trouble``."""

    port: int  # of the host
    local: int
    trouble: str = ""


LinkEvent = LogBytes | RunWatch | RunEnded | LinkLost | LinkUp | Forwarded


@dataclass(frozen=True, slots=True)
class Found:
    """An SGLang server that was found on a host, whoever started it. ``record.run`` names it for ``follow``, ``watch``
    and ``kill``; of a run of this user's own it is that run's record, else ``record.profile`` is empty and
    ``record.log`` too where there is no file to follow (``output`` says why)."""

    record: RunRecord
    kind: str  # server | program (one with an engine inside) | orphans (what a dead main process left)
    owner: str
    cwd: str | None = None
    gpus: str | None = None  # CUDA_VISIBLE_DEVICES
    container: str | None = None  # "docker 0123456789ab"
    job: str | None = None  # "slurm job 77", "systemd unit NAME.service": who may start it again
    elsewhere: str | None = None  # the run that hcs-tui of another user or state folder calls it
    own_network: bool = False  # its ports are not the host's
    output: str = ""  # "goes to a terminal (/dev/pts/3)"
    processes: int = 1
    unreadable: bool = False  # its command line could not be read in time


@dataclass(frozen=True, slots=True)
class KillReport:
    """What a kill found, what it took, and the second look by a fresh process."""

    run: str
    found: tuple[str, ...]  # "pid 123 sglang::scheduler"
    signals: tuple[str, ...]  # "SIGTERM", "SIGKILL"
    left: tuple[str, ...]  # empty is the proof
    seconds: float
    port_free: bool | None = None
    gpu: str = ""  # "no GPU memory held", or why that could not be asked


@dataclass(frozen=True, slots=True)
class Lease:
    """Who restarts a server: one session at a time, this one if ``mine``; ``who`` is empty for nobody. ``told``: what
    another one tells of its restarts."""

    mine: bool
    who: str = ""
    since: float | None = None
    told: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PrunedRun:
    """A run that was, or would be, deleted on its host."""

    run: str
    server: str
    folder: str
    bytes: int
    started: float  # Unix seconds
    gone: bool  # deleted; False in a dry run, and where it could not be


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer of a GET or POST that the agent made to the server's port on its own host."""

    status: int
    body: bytes
    seconds: float
    first: float | None = None  # seconds until the body began: of a stream, its first token


class Link(Protocol):
    """One host. All methods are coroutines of one event loop and raise ``HostError``; none hangs."""

    name: str

    async def open(self) -> Hello: ...

    async def close(self) -> None: ...

    def subscribe(self, on_event: Callable[[LinkEvent], None]) -> None:
        """Call ``on_event`` for everything that comes by itself. It must return quickly and never raise."""

    async def launch(self, spec: LaunchSpec) -> RunRecord: ...

    async def runs(self, profile: str | None = None, server: str | None = None) -> list[RunRecord]:
        """Newest first."""

    async def prune(
        self, profile: str, server: str, *, keep: int | None = None, keep_bytes: float | None = None, dry: bool = False
    ) -> list[PrunedRun]:
        """Delete a server's old runs on the host: all but the newest ``keep`` and what is within ``keep_bytes``."""

    async def read(self, run: str, offset: int, size: int) -> bytes:
        """A stretch of a run's log, at most 4 MiB; less at the log's end."""

    async def follow(self, run: str, offset: int = 0, inode: int | None = None) -> None:
        """Send the run's log from ``offset`` on, as ``LogBytes``, until ``unfollow``; survives reconnects."""

    async def fill(self, run: str, start: int, end: int, inode: int | None = None, *, middle: bool = False) -> None:
        """Send bytes ``start`` to ``end`` of the run's log, as ``LogBytes``, whenever nothing new waits to be sent;
        ``middle``: nor any stretch that is none. One at a time per run; survives reconnects. Raises ``HostError``
        (``REFUSED``) where the log no longer holds them."""

    async def unfollow(self, run: str) -> None:
        """Send no more of the run's log, stretches included."""

    async def watch(self, run: str) -> None:
        """Send ``RunWatch`` at least each second while it changes, and ``RunEnded`` at once when it ends."""

    async def unwatch(self, run: str) -> None: ...

    async def kill(
        self, run: str, grace: float, *, who: str = "", sweep: bool = False, again: bool = False, settle: float = 60.0
    ) -> KillReport:
        """SIGTERM, ``grace`` seconds, SIGKILL, and ``settle`` seconds for that to work; the host carries it through
        even if the link is lost. ``sweep``: only what a run that is over has left, which is no wish that it stays
        ended. ``again``: the answer to an earlier one was lost; this one tells what that one did, too."""

    async def leases(
        self, profile: str, servers: Sequence[str], *, take: bool = False, who: str = "", told: object = None
    ) -> Mapping[str, Lease]:
        """Who restarts each server. ``take``: from now on this session does, as ``who``, where nobody else does;
        ``told``, JSON by server, is for other sessions to read."""

    async def get(
        self,
        port: int,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 5.0,  # the agent keeps it
    ) -> HttpAnswer: ...

    async def post(
        self,
        port: int,
        path: str,
        body: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,  # the agent keeps it
    ) -> HttpAnswer: ...

    async def check(self, spec: LaunchSpec) -> list[tuple[str, str, str, str]]:
        """Preflight on the host: (check, pass|warn|fail, found, advice)."""

    async def discover(self) -> list[Found]:
        """All SGLang servers on the host, whoever started them."""

    async def listeners(self, ports: Sequence[int]) -> Mapping[int, str]:
        """Who listens on those of ``ports`` that are taken: ``pid 123 (nginx)``."""

    async def machine(self, paths: Sequence[tuple[str, str]] = ()) -> Machine:
        """Memory, GPUs and disks of the host; ``paths`` are (what, path) on the file systems to look at."""

    async def forward(self, port: int, *, address: str = "127.0.0.1", local: int = 0) -> int:
        """Bring ``address:port`` of the host to this machine's loopback, as port ``local`` (0: any free one), until
        ``unforward``; survives reconnects. The local port, which every user of this machine can reach."""

    def unforward(self, port: int) -> None: ...
