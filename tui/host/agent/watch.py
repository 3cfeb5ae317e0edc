"""Watched runs: who lives, what memory they hold, what listens on their port; and the end, told at once."""

from __future__ import annotations

import os
import time

from . import memory, outcome, procs, sockets
from .connect import Connect
from .disk import Room
from .loop import IN, Timer
from .requests import Agent
from .subject import Subject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PERIOD = 0.5  # seconds between two looks at processes and memory
CALM = 1.0  # the same, while nothing changes
RESCAN = 5.0  # seconds until new processes are looked for, while nothing changes
NOISE = 1 << 20  # bytes of memory that are no change
AT_LEAST = 1.0  # seconds between two reports, however little has changed
UNKEPT = "its keeper was killed: nobody will record how it ends"
POLL = 0.1  # seconds between two looks at a main process that cannot be waited for
EXIT_PATIENCE = 1.0  # seconds for the keeper to write how it ended
LEFT_PERIOD = 2.0  # seconds until what has outlived the main process is looked at, and again


class Watch:
    """One watched run."""

    def __init__(self, watcher: Watcher, about: Subject) -> None:
        self._watcher, self._agent, self.run, self._folder = watcher, watcher.agent, about.run, about.folder
        self._log, self.process, self.port = about.log, about.process, about.port
        self._pidfd = self._open_pidfd()
        self._timer: Timer | None = None
        self._room = Room(self._log) if self._log else None
        self._last: dict[str, Any] = {}
        self._sent = 0.0
        self._accepts: dict[str, bool] = {}  # by socket inode: did a connect() get through?
        self._strangers: dict[str, str] = {}
        self.over = False  # its end was told; what it has left is still looked at
        self._left_told = False

    def begin(self) -> None:
        """Wait for the end, which may have come long ago: then this tells it, and may drop the watch, at once."""
        self._poll_end(seen_alive=False)

    def _open_pidfd(self) -> int:
        """Readable when the main process ends; -1 where the kernel or Python is too old."""
        opener = getattr(os, "pidfd_open", None)
        try:
            fd: int = opener(self.process["pid"]) if opener and self.process else -1
        except OSError:
            return -1
        if fd >= 0:
            os.set_inheritable(fd, False)
            self._agent.loop.watch(fd, lambda event: self._poll_end(), IN)
        return fd

    @property
    def pids(self) -> list[int]:
        """The run's processes, as of the last look."""
        return list(self._last.get("pids", ()))

    def close(self) -> None:
        if self._pidfd >= 0:
            self._agent.loop.unwatch(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        if self._timer is not None:
            self._timer.cancel()

    def _poll_end(self, seen_alive: bool = True) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._agent.runs.alive(self.process):
            self._timer = self._agent.loop.later(CALM if self._pidfd >= 0 else POLL, self._poll_end)
        else:
            if self._pidfd >= 0:
                self._agent.loop.unwatch(self._pidfd)
                os.close(self._pidfd)
                self._pidfd = -1
            self._await_exit(time.monotonic() + EXIT_PATIENCE, seen_alive)

    def _await_exit(self, until: float, seen_alive: bool) -> None:
        """The keeper writes ``exit.json`` within milliseconds; a killed keeper never does."""
        ended = self._exit()
        writing = outcome.keeper_lives(self.process) and time.monotonic() < until
        if ended is None and writing:
            self._timer = self._agent.loop.later(0.01, lambda: self._await_exit(until, seen_alive))
            return
        ended = ended or self._exit()  # written just before the keeper left
        try:
            size = os.stat(self._log).st_size if self._log else None
        except OSError:
            size = None
        self.over = True
        if seen_alive and ended:
            ended = dict(ended, leftover=[])  # most go in a moment
        self._left_told = bool(ended and ended.get("leftover"))
        self._agent.loop.send({"t": "ended", "run": self.run, "exit": ended, "log_size": size})
        if ended and ended.get("left"):
            self._timer = self._agent.loop.later(LEFT_PERIOD, self._look_left)
        else:
            self._watcher.drop(self.run)

    def _look_left(self) -> None:
        """What has outlived the main process is told for as long as it lives."""
        ended = self._exit() or {}
        pids, words = ended.get("left") or [], ended.get("leftover") or []
        if words or self._left_told:
            warnings = [": ".join(words)] if words else []
            report = {"t": "watch", "run": self.run, "at": time.time(), "alive": False, "pids": pids}
            self._agent.loop.send(dict(report, warnings=warnings))
            self._left_told = bool(words)
        if pids:
            self._timer = self._agent.loop.later(LEFT_PERIOD, self._look_left)
        else:
            self._watcher.drop(self.run)

    def _exit(self) -> dict[str, Any] | None:
        return outcome.ended(self._folder, self.process, self._agent.runs.boot_id) if self._folder else None

    def sample(self, found: dict[int, procs.Proc], free: tuple[int, int]) -> bool:
        """Look, and report what has changed, or anyway after a second. True: look again soon."""
        now = time.monotonic()
        pids = sorted(procs.members(self.process, found))
        self._remember(pids, found)
        listening, listener = self._listening(pids)
        report = {
            "t": "watch",
            "run": self.run,
            "at": time.time(),
            "alive": self._agent.runs.alive(self.process),
            "pids": pids,
            "pinned": memory.resident(pids),
            "available": free[1],
            "total": free[0],
            "source": "rss",
            "listening": listening,
            "listener": listener,
            **self._around(now),
        }
        changed = self._differs(report)
        if now - self._sent >= AT_LEAST - 0.05 or changed:
            self._last, self._sent = report, now
            self._agent.loop.send(report)
        return changed or bool(self.port and listening != "own")  # somebody waits for the socket

    def _remember(self, pids: list[int], found: dict[int, procs.Proc]) -> None:
        """Once its keeper was killed, a daemon's origin shows no more: a kill knows those that were seen before."""
        seen = self._agent.seen.get(self.run, {})
        kept = {pid: start for pid, start in seen.items() if pid in found and found[pid].start == start}
        self._agent.seen[self.run] = {**kept, **{pid: found[pid].start for pid in pids}}

    def _around(self, now: float) -> dict[str, Any]:
        """The room that is left to the log, and what deserves a warning."""
        warnings = []
        unkept = self._folder and not outcome.keeper_lives(self.process)
        if unkept and self._agent.runs.alive(self.process):  # in this order: else the keeper may have ended properly
            warnings.append(UNKEPT)
        if self._room is None:
            return {"warnings": warnings}
        self._room.look(now)
        if self._room.warning:
            warnings.append(self._room.warning)
        return {"disk_free": self._room.free, "log_size": self._room.size, "warnings": warnings}

    def _differs(self, report: dict[str, Any]) -> bool:
        keys = ("alive", "pids", "listening", "listener", "warnings")
        grown = abs(report["pinned"] - self._last.get("pinned", 0)) > NOISE
        return grown or any(self._last.get(key) != report[key] for key in keys)

    def _listening(self, pids: list[int]) -> tuple[str | None, str | None]:
        """``own`` once a socket of this run accepts; ``foreign`` with its owner; else ``none``."""
        found = sockets.listeners(self.port) if self.port else []
        inodes = {listener.inode for listener in found}
        self._accepts = {inode: ok for inode, ok in self._accepts.items() if inode in inodes}
        if not inodes:
            return "none", None
        if any(self._accepts.values()):
            return "own", None
        own = next((inode for inode in (sockets.holds(pid, inodes) for pid in pids) if inode), None)
        own = own or (self._by_owner(found) if self._folder is None else None)
        if own is None:
            key = ",".join(sorted(inodes))
            if key not in self._strangers:
                self._strangers = {key: sockets.owner(inodes) or "a process of another user"}
            return "foreign", self._strangers[key]
        if own not in self._accepts:
            self._accepts[own] = False
            Connect(self._agent.loop, sockets.reachable(found), self.port, self._on_connect(own))
            return None, None  # the answer comes with the next look
        return "none", None

    def _by_owner(self, found: list[sockets.Listener]) -> str | None:
        """The socket on the port of a server whose descriptors cannot be seen, since it is another user's."""
        pid = self.process["pid"]
        if os.access("/proc/%d/fd" % pid, os.R_OK):
            return None
        uid = procs.owner(pid)
        return next((listener.inode for listener in found if listener.uid == uid), None)

    def _on_connect(self, inode: str) -> Any:
        def connected(sock: Any, error: str | None) -> None:
            if sock is not None:
                sock.close()
            if error:
                self._accepts.pop(inode, None)  # ask again at the next look
            else:
                self._accepts[inode] = True
                self._watcher.look_now()

        return connected


class Watcher:
    """All watched runs; one scan of /proc serves them all."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._watches: dict[str, Watch] = {}
        self._timer: Timer | None = None
        self._calm = False
        self._scanned = 0.0

    def watch(self, about: Subject) -> None:
        self.drop(about.run)
        self._watches[about.run] = watch = Watch(self, about)
        watch.begin()
        self._calm = False
        self.look_now()

    def drop(self, run: str) -> None:
        watch = self._watches.pop(run, None)
        if watch is not None:
            watch.close()

    def runs_of_pids(self) -> dict[int, str]:
        """The watched run of each process that belongs to one, as of the last look."""
        return {pid: run for run, watch in self._watches.items() for pid in watch.pids}

    def look_now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.agent.loop.later(0.0, self._look)

    def _look(self) -> None:
        self._timer = None
        living = [watch for watch in self._watches.values() if not watch.over]
        if not living:
            return
        found = self._processes()
        free = memory.available()
        changed = [watch.sample(found, free) for watch in living]
        self._calm = not any(changed)
        self._timer = self.agent.loop.later(CALM if self._calm else PERIOD, self._look)

    def _processes(self) -> dict[int, procs.Proc]:
        """All processes; while nothing changes, most of the time only those that are known, and the keepers."""
        now = time.monotonic()
        if self._calm and now < self._scanned + RESCAN:
            keepers = [(watch.process.get("keeper") or {}).get("pid") for watch in self._watches.values()]
            known = {pid for run in self._watches for pid in self.agent.seen.get(run, ())}
            return procs.glance(known | {pid for pid in keepers if pid})
        self._scanned = now
        return self.agent.scanner.scan()
