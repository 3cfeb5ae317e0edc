"""Run directories: ``STATE/runs/MACHINE/PROFILE/SERVER/RUN/``, the truth about every launch.

``run.json`` what was asked · ``process.json`` who lives · ``server.log`` · ``exit.json`` how it ended ·
``stop.json`` that somebody asked it to stop · ``kill.json`` that somebody wanted it gone, alive or not.
Homes may be shared between hosts, hence MACHINE.
"""

from __future__ import annotations

import _socket as socket
import os
import time

from . import outcome
from .files import read_json, read_text, safe_name
from .procs import boot_id, is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator


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
                if os.path.isfile(os.path.join(folder, "run.json")):
                    return folder
        return None

    def records(self, profile: str | None = None, server: str | None = None) -> list[dict[str, Any]]:
        """Newest first."""
        found = [record for record in map(self.record, self.folders(profile, server)) if record]
        return sorted(found, key=lambda record: (record["started"], record["run"]), reverse=True)

    def record(self, folder: str) -> dict[str, Any] | None:
        """What is known of one run, or ``None`` where there is no ``run.json``."""
        asked = read_json(os.path.join(folder, "run.json"))
        if asked is None or "run" not in asked:
            return None
        process = read_json(os.path.join(folder, "process.json")) or {}
        ended = outcome.ended(folder)
        log = os.path.join(folder, "server.log")
        try:
            stat = os.stat(log)
            size, inode = stat.st_size, stat.st_ino
        except OSError:
            size, inode = None, None
        stop = read_json(os.path.join(folder, "stop.json")) or {}
        fate = outcome.fate(asked, process, ended, self.boot_id)
        return {
            "run": asked["run"],
            "profile": asked.get("profile", ""),
            "server": asked.get("server", ""),
            "pid": process.get("pid"),
            "started": number(asked.get("started")),
            "boot_id": process.get("boot_id") or asked.get("boot_id"),
            "argv": [str(word) for word in asked.get("argv") or []],
            "log": log,
            "log_size": size,
            "log_inode": inode,
            "alive": self.alive(process),
            "fate": fate,
            "keeper": process.get("keeper") if process.get("boot_id") == self.boot_id else None,
            "exit": ended,
            "port": asked.get("port"),
            "digest": asked.get("digest", ""),
            "who": asked.get("who", ""),
            "stop_asked": stop.get("at"),
            "sglang": asked.get("sglang"),
            "kill_asked": (read_json(os.path.join(folder, "kill.json")) or {}).get("at"),
            "at": time.time(),
        }

    def alive(self, process: dict[str, Any]) -> bool:
        """Whether the main process that ``process.json`` describes lives."""
        return process.get("boot_id") == self.boot_id and is_alive(process.get("pid"), process.get("start"))


def number(value: Any) -> float:
    """``value`` as it stands in a file of whatever release."""
    return float(value) if isinstance(value, (int, float)) else 0.0
