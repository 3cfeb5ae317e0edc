"""Between the words of the profile, of the host, and of the states."""

from __future__ import annotations

import getpass
import os
import socket

from tui.fleet.api import Outcome
from tui.host.api import HostError, HostErrorKind, KillReport, LaunchSpec, RunExit, RunRecord, RunWatch
from tui.profile.model import Server
from tui.profile.secrets import SecretMissing, from_environment
from tui.sglang.events import Watched
from tui.sglang.mask import mask
from tui.sglang.memory import planned_host_gb
from tui.sglang.model import Exit, Failure, FailureKind, MemoryReading, ServerInfo

_LOST = {  # by ``RunRecord.fate``
    "rebooted": "its host was booted since: how it ended was not recorded",
    "unrecorded": "its keeper was killed: nobody recorded how it ended",
    "reused": "its keeper was killed, and its pid is another process's by now: nobody recorded how it ended",
    "zombie": "it has ended and stays as a zombie, which its parent does not reap: nobody recorded how it ended",
    "unreadable": "what is recorded of it cannot be read: nobody knows how it ended",
    "unstarted": "no process was ever recorded for it: its launch broke off",
    "newer": "written by a newer release of hcs-tui, which this one cannot read",
}


def launch_spec(profile: str, server: Server) -> LaunchSpec:
    """What the host is asked to launch, secrets filled in. Raises ``HostError`` for one that is not set."""
    try:
        secrets = tuple(from_environment(name) for name in server.secret_names())
        argv, env = server.argv(from_environment), server.environment(from_environment)
    except SecretMissing as error:
        raise HostError(HostErrorKind.REFUSED, str(error), failure="bad_argument") from error
    return LaunchSpec(
        profile=profile,
        server=server.name,
        argv=argv,
        cwd=server.cwd,
        env=env,
        secrets=secrets,
        setup=server.setup,
        log_link=server.log,
        port=server.port,
        digest=server.digest(),
        who=who(),
    )


def who() -> str:
    """This session, as others are told of it."""
    return f"{getpass.getuser()}@{socket.gethostname()} (pid {os.getpid()})"


def flag_words(argv: tuple[str, ...]) -> list[str]:
    """The words of a command line with each flag's values beside it: ``--hicache-size 150``."""
    grouped: list[str] = []
    for word in argv:
        if grouped and grouped[-1].startswith("--") and not word.startswith("-"):
            grouped[-1] += f" {word}"
        else:
            grouped.append(word)
    return grouped


def other_arguments(server: Server, record: RunRecord) -> str:
    """The flags of a run that differ from the profile's; empty where none does."""
    if record.digest and record.digest == server.digest():
        return ""
    asked, runs = flag_words(server.argv()), flag_words(record.argv)
    more = [flag for flag in runs if flag not in asked]
    less = [f"without {flag}" for flag in asked if flag not in runs]
    return " ".join([*more, *less])


def watched(at: float, event: RunWatch) -> Watched:
    """A look at a run. One that ended says so in ``RunEnded``, after its log: ``alive`` alone would blame it before
    it is explained."""
    memory = None
    if event.pinned is not None and event.available is not None and event.total is not None:
        memory = MemoryReading(event.pinned, event.available, event.total, event.source)
    return Watched(at, event.alive or None, event.listening, memory, warnings=event.warnings)


def server_info(server: Server, version: str | None = None) -> ServerInfo:
    """What of a server's profile is shown and judged by; what its flags ask for depends on SGLang's ``version``."""
    return ServerInfo(
        name=server.name,
        host=server.host.name,
        port=server.port,
        url=server.url,
        model=server.model,
        gpus=server.gpus,
        log=server.log,
        ready_by=server.ready_by,
        ready_timeout=server.ready_timeout,
        stall_after=server.stall_after,
        planned_host_gb=planned_host_gb(server.flags, version),
    )


def run_exit(exit: RunExit) -> Exit:
    refused = refusal(*exit.refused) if exit.refused else None
    return Exit(exit.status, exit.signal, exit.oom_killed, exit.at, exit.left, refused, exit.leftover, exit.unforced)


def refusal(message: str, remedy: str, kind: str) -> Failure:
    """A launch that the host refused, or could not do, as a failure; what it quotes of a log is masked."""
    advice = (remedy,) if remedy else ()
    return Failure(FailureKind(kind), "", 0, mask(message.encode()).decode("utf-8", "replace"), advice)


def lost_words(fate: str) -> str:
    """Of a run that is gone and whose end nobody recorded: why not; else empty."""
    return _LOST.get(fate, "")


def kill_outcome(name: str, report: KillReport) -> Outcome:
    """A kill in one line: how many processes, what it took, and the proof."""
    took = " then ".join(report.signals) or "no signal"
    details = {
        "found": list(report.found),
        "signals": list(report.signals),
        "left": list(report.left),
        "seconds": round(report.seconds, 1),
        "port_free": report.port_free,
        "gpu": report.gpu,
    }
    if report.left:
        return Outcome(False, f"{name}: {len(report.left)} left after {took}: {', '.join(report.left)}", details)
    proof = f"{report.gpu}, nothing left" if report.gpu else "nothing left"
    processes = "1 process" if len(report.found) == 1 else f"{len(report.found)} processes"
    return Outcome(True, f"{name}: {processes}, {took}, {report.seconds:.1f} s, {proof}", details)
