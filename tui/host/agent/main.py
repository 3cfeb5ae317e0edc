"""The agent's start, its table of requests, and its own end."""

from __future__ import annotations

import _socket as socket
import json
import os
import signal
import sys
import time

from . import check, discover, frames, kill, launch, logfile, look, memory, procs, retention, subject, web
from .files import open_regular
from .follow import Follower
from .lease import Leases
from .loop import Loop, complain, current_trouble, leave, monotonic
from .machine import Machine
from .notify import Notifier
from .requests import Agent, Refused, Request
from .watch import Watcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

SILENCE = 60.0  # seconds without a byte from the other side, after which it is taken for gone
MAX_READ = 4 << 20
READ_ONLY = "This session is read-only: nothing is launched or killed."


class Service:
    """Answers the frames of one channel."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.loop = agent.loop
        self.follower = Follower(agent.loop, Notifier(agent.loop, bool(agent.config.get("inotify", True))))
        self.watcher = Watcher(agent)
        self._machine = Machine(agent, self.watcher)
        self._decoder = frames.Decoder()
        self._silence = float(agent.config.get("silence", SILENCE))
        self._leases = Leases(agent)
        self._changes: Mapping[str, Callable[[Request], None]] = {  # refused where the other side is read-only
            "launch": launch.launch,
            "kill": kill.kill,
            "lease": self._leases.take,
            "prune": retention.prune,
        }
        self._looks: Mapping[str, Callable[[Request], None]] = {
            "http": web.fetch,
            "leases": self._leases.look,
            "check": check.check,
            "machine": self._machine.look,
            "discover": discover.discover,
            "listeners": discover.listeners,
            "runs": self._runs,
            "read": self._read,
            "follow": self._follow,
            "fill": self._fill,
            "unfollow": self._unfollow,
            "watch": self._watch,
            "unwatch": self._unwatch,
        }

    def run(self) -> None:
        self.loop.watch(self.loop.source, self._on_input)
        self.loop.later(self._silence / 4, self._check_silence)
        self.loop.send({"t": "hello"}, json.dumps(hello(self.agent)).encode("ascii"))
        self.loop.run()

    def _on_input(self, event: int) -> None:
        try:
            data = os.read(self.loop.source, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.loop.part()
            return
        self.loop.received = monotonic()
        try:
            found = self._decoder.feed(data)
        except frames.BadFrame as error:
            complain(str(error))
            leave(3)
        for header, body in found:
            self._dispatch(header, body)

    def _dispatch(self, header: dict[str, Any], body: bytes) -> None:
        kind = header.get("t")
        if kind == "ping":
            self.loop.send({"t": "pong", "n": header.get("n")})
        elif kind == "credit":
            self.follower.credit += int(header["n"])
        else:
            self._answer(Request(self.agent, header, body), str(kind))

    def _answer(self, request: Request, kind: str) -> None:
        handler = self._looks.get(kind) or self._changes.get(kind)
        try:
            if kind in self._changes and self.agent.config.get("read_only"):
                raise Refused(READ_ONLY)
            if handler is None:
                raise Refused("This agent does not know the request %r." % kind, "Both sides must be of one release.")
            handler(request)
        except Refused as error:
            request.refuse(error)
        except Exception as error:  # the caller must hear of it, and the agent must live on
            self.loop.send({"t": "trouble"}, current_trouble())
            request.refuse(Refused("The agent failed on %r: %s: %s" % (kind, type(error).__name__, error)))

    def _runs(self, request: Request) -> None:
        request.answer(self.agent.runs.records(request.header.get("profile"), request.header.get("server")))

    def _read(self, request: Request) -> None:
        """A stretch of a log: for looking at its middle without following it."""
        about, header = subject.subject(request), request.header
        found = logfile.find(request.folder(), about.pid if self.agent.runs.alive(about.process) else None)
        fd = open_regular(found.path) if found.path else None
        if fd is None:
            raise Refused("The log of %s cannot be read: %s." % (about.run, found.remark or "it is gone"))
        try:
            inode = os.fstat(fd).st_ino
            data = os.pread(fd, min(int(header["size"]), MAX_READ), int(header["offset"]))
        finally:
            os.close(fd)
        request.raw({"inode": inode}, data)

    def _follow(self, request: Request) -> None:
        header, (path, held) = request.header, self._log_of(request)
        self.follower.follow(int(header["s"]), path, header.get("inode"), int(header.get("offset", 0)), held)
        request.answer()

    def _fill(self, request: Request) -> None:
        """A stretch of a log that is not to delay what is new."""
        header, (path, held) = request.header, self._log_of(request)
        start, end = int(header["offset"]), int(header["end"])
        if not self.follower.fill(
            int(header["s"]), path, header.get("inode"), start, end, int(header["urgency"]), held
        ):
            raise Refused("The log of %s no longer holds bytes %d to %d." % (header["run"], start, end))
        request.answer()

    def _log_of(self, request: Request) -> tuple[str, str | None]:
        """The log of a run, and the descriptor through which its server writes, as long as that lives."""
        about = subject.subject(request)
        if about.log is None:
            raise Refused("There is no log of %s to follow." % about.run)
        return about.log, about.held if self.agent.runs.alive(about.process) else None

    def _unfollow(self, request: Request) -> None:
        self.follower.unfollow(int(request.header["s"]))
        request.answer()

    def _watch(self, request: Request) -> None:
        self.watcher.watch(subject.subject(request))
        request.answer()

    def _unwatch(self, request: Request) -> None:
        self.watcher.drop(str(request.header["run"]))
        request.answer()

    def _check_silence(self) -> None:
        if monotonic() - self.loop.received > self._silence:
            parent = procs.look(os.getppid())
            if parent is not None and parent.name.startswith("sshd"):
                procs.send_signal(parent, signal.SIGTERM)  # its TCP connection would linger for minutes
            self.loop.part()
        self.loop.later(self._silence / 4, self._check_silence)


def hello(agent: Agent) -> dict[str, Any]:
    """Who and where we are."""
    total, _ = memory.machine()
    limit, _ = memory.limits()
    now = time.time()
    return {
        "hostname": socket.gethostname(),
        "user": user_name(),
        "boot_id": agent.runs.boot_id,
        "utc_offset": time.localtime(now).tm_gmtoff,
        "time": now,
        "python": "%d.%d.%d" % sys.version_info[:3],
        "home": os.path.expanduser("~"),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_total": total,
        "memory_limit": limit,
    }


def user_name() -> str:
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return os.environ.get("USER") or "uid %d" % os.getuid()


def start(sources: Mapping[str, str], config: Mapping[str, Any], argv: list[str]) -> None:
    """Entry of the blob. ``look JSON`` is the second look of a kill, ``survey`` a search for servers; else serve
    the channel on stdin and stdout."""
    if sys.version_info < (3, 8):
        complain("the agent needs Python 3.8 or newer, this is %s" % sys.version.split()[0])
        leave(4)
    launch.AGENT_SOURCES = sources
    if argv[:1] in (["look"], ["survey"]):
        agent = Agent(Loop(0, 1), sources, config)
        os.set_blocking(1, True)
        found = look.look(agent, json.loads(argv[1])) if argv[0] == "look" else discover.survey(agent)
        os.write(1, json.dumps(found).encode("ascii"))
        leave()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a terminal's Ctrl-C is the dashboard's business, the channel ours
    Service(Agent(Loop(0, 1), sources, config)).run()
