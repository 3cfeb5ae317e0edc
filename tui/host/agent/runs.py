"""Run directories: ``STATE/runs/MACHINE/PROFILE/SERVER/RUN/``, the truth about every launch.

``run.json`` what was asked · ``process.json`` who lives · ``server.log`` · ``exit.json`` how it ended ·
``stop.json`` that somebody asked it to stop · ``kill.json`` that somebody wanted it gone, alive or not.
Homes may be shared between hosts, hence MACHINE.
"""

from __future__ import annotations

import _socket as socket
import os
import time

from . import logfile, outcome
from .files import FORMAT, plain_name, read_text, safe_name
from .procs import boot_id, is_alive
from .recorded import Recorded, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

ALIVE = ("running", "unkept")  # of ``outcome.fate``


class Runs:
    """All runs of this user on this machine."""

    def __init__(self, state_dir: str | None) -> None:
        state = os.path.expanduser(state_dir or "~/.local/state/hcs-tui")
        machine = (read_text("/etc/machine-id") or "").strip() or "no-machine-id"
        self.root = os.path.join(state, "runs", safe_name(machine + "+" + socket.gethostname()))
        self.boot_id = boot_id()

    def server_dir(self, profile: str, server: str) -> str:
        return os.path.join(self.root, safe_name(profile), safe_name(server))

    def folders(self, profile: str | None = None, server: str | None = None) -> Iterator[str]:
        """Run directories, in no order."""
        for profile_dir in self._entries(self.root, profile):
            for server_dir in self._entries(profile_dir, server):
                for folder in self._entries(server_dir, None):
                    if os.path.isdir(folder):
                        yield folder

    @staticmethod
    def _entries(folder: str, name: str | None) -> list[str]:
        if name is not None:
            return [os.path.join(folder, safe_name(name))]
        try:
            return [os.path.join(folder, entry) for entry in os.listdir(folder)]
        except OSError:
            return []

    def find(self, run: str) -> str | None:
        """The directory of a run."""
        name = safe_name(run)
        for profile_dir in self._entries(self.root, None):
            for server_dir in self._entries(profile_dir, None):
                folder = os.path.join(server_dir, name)
                if os.path.lexists(os.path.join(folder, "run.json")):
                    return folder
        return None

    def records(self, profile: str | None = None, server: str | None = None) -> list[dict[str, Any]]:
        """Newest first."""
        found = [record for record in map(self.record, self.folders(profile, server)) if record]
        return sorted(found, key=lambda record: (record["started"], record["run"]), reverse=True)

    def record(self, folder: str) -> dict[str, Any] | None:
        """What is known of one run, or ``None`` where there is no ``run.json``. Whatever stands in its files, its names
        are those of its folder, and every value is of its type; ``trouble`` says what was none."""
        about = load(folder, "run.json")
        if about.fields is None and not os.path.lexists(os.path.join(folder, "run.json")):
            return None
        recorded, ended_as = load(folder, "process.json"), load(folder, "exit.json")
        names = named(folder)
        asked, process = about.fields or {}, recorded.fields or {}
        alive = self.alive(process)
        log = logfile.find(folder, process["pid"] if alive else None, bool(process))
        told = "; ".join(flaw for flaw in (_flaw(about, names), recorded.flaw, ended_as.flaw) if flaw)
        if asked.get("format", FORMAT) > FORMAT:
            told = ""  # its fields may be others
        known = dict(asked, **names) == asked and "started" in asked
        started = asked["started"] if known else process.get("started", 0) if alive else 0
        ended, fate = self._end(folder, asked, process, bool(told))
        return {
            **names,
            "pid": process.get("pid"),
            "started": float(started),  # what nobody knows counts as older than all runs
            "boot_id": process.get("boot_id") or asked.get("boot_id"),
            "argv": asked.get("argv") or [],
            "log": os.path.join(folder, "server.log"),
            "log_size": log.size,
            "log_inode": log.inode,
            "alive": alive if fate == "newer" else fate in ALIVE,
            "fate": fate,
            "keeper": process.get("keeper") if process.get("boot_id") == self.boot_id else None,
            "exit": ended,
            "port": asked.get("port"),
            "digest": asked.get("digest", ""),
            "who": asked.get("who", ""),
            "stop_asked": (load(folder, "stop.json").fields or {}).get("at"),
            "sglang": asked.get("sglang"),
            "kill_asked": (load(folder, "kill.json").fields or {}).get("at"),
            "trouble": "; ".join(words for words in (told and "unreadable: " + told, log.remark) if words),
            "at": time.time(),
        }

    def _end(
        self, folder: str, asked: dict[str, Any], process: dict[str, Any], flawed: bool
    ) -> tuple[dict[str, Any] | None, str]:
        """How it ended, and its fate. A keeper that is gone may have written how since that was looked for."""
        for _ in range(2):
            ended = outcome.ended(folder, process, self.boot_id)
            fate = outcome.fate(asked, process, ended, self.boot_id, flawed)
            if ended is not None or fate in ALIVE:
                break
        return ended, fate

    def alive(self, process: dict[str, Any]) -> bool:
        """Whether the main process that ``process.json`` describes lives."""
        return process.get("boot_id") == self.boot_id and is_alive(process.get("pid"), process.get("start"))


def _flaw(about: Recorded, names: dict[str, str]) -> str:
    """What is wrong with a ``run.json`` that is there, in the folder that says ``names``."""
    if about.fields is None:
        return about.flaw or "run.json is empty"
    foreign = any(about.fields.get(name, value) != value for name, value in names.items())
    return "run.json is another run's" if foreign else about.flaw


def named(folder: str) -> dict[str, str]:
    """What the path of a run directory says: ``profile``, ``server`` and ``run``."""
    profile, server, run = map(plain_name, folder.split(os.sep)[-3:])
    return {"profile": profile, "server": server, "run": run}
