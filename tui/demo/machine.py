"""The simulated hosts' memory and GPUs, as files in a folder of their own.

    hardware.json     what the host has
    proc/meminfo      its memory, in the form of the kernel's file: what the agent reads instead of that
    proc/PID/status   what a simulated process has asked for (``VmData``) and pinned of it so far (``RssAnon``)
    gpus/PID          what it holds on its GPU: what the host's ``nvidia-smi`` tells

Each process writes its own files; those of processes that have ended are removed by the host, and do not count.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tui.demo.sizes import RESERVE

_CHECKOUT = Path(__file__).resolve().parents[2]  # or site-packages
_TOOL = """#!/bin/sh
PYTHONPATH={path} exec {python} -S -m tui.demo.nvidia_smi {root} "$@"
"""


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a host has. Bytes of memory, and how many of them are available before any server runs."""

    memory: int
    available: int
    gpus: int


@dataclass(frozen=True, slots=True)
class OnGpu:
    """What a process holds on a GPU: memory in MiB, and how busy it keeps it in percent."""

    gpu: int
    mib: int
    busy: int


@dataclass(frozen=True, slots=True)
class Machine:
    """A simulated host, which is a folder."""

    root: Path

    @property
    def hardware(self) -> Hardware:
        return Hardware(**json.loads((self.root / "hardware.json").read_text()))

    @property
    def bin(self) -> Path:
        """The folder of its ``nvidia-smi``."""
        return self.root / "bin"

    def build(self, hardware: Hardware) -> None:
        """Make the folder: a host on which nothing runs yet."""
        for folder in (self.root / "proc", self.root / "gpus", self.bin):
            folder.mkdir(parents=True)
        _write(self.root / "hardware.json", json.dumps(asdict(hardware)))
        words = {"path": _CHECKOUT, "python": sys.executable, "root": self.root}
        tool = self.bin / "nvidia-smi"
        _write(tool, _TOOL.format(**{name: shlex.quote(str(word)) for name, word in words.items()}))
        tool.chmod(0o700)
        self.refresh()

    def refresh(self) -> None:
        """Forget the processes that have ended, and write ``meminfo``."""
        for pid in self._pids("proc"):
            if not lives(pid):
                shutil.rmtree(self.root / "proc" / str(pid), ignore_errors=True)
        for pid in self._pids("gpus"):
            if not lives(pid):
                (self.root / "gpus" / str(pid)).unlink(missing_ok=True)
        total = self.hardware.memory
        with self.alone():
            free = self.hardware.available - self._sum("RssAnon")
            text = f"MemTotal:       {total // 1024} kB\nMemAvailable:   {free // 1024} kB\n"
            _write(self.root / "proc" / "meminfo", text)

    def on_gpus(self) -> dict[int, OnGpu]:
        """By pid, what living processes hold on GPUs."""
        texts = {pid: _read(self.root / "gpus" / str(pid)) for pid in self._pids("gpus") if lives(pid)}
        return {pid: OnGpu(**json.loads(text)) for pid, text in texts.items() if text}

    def _pids(self, folder: str) -> list[int]:
        return [int(entry.name) for entry in (self.root / folder).iterdir() if entry.name.isdigit()]

    def _sum(self, key: str) -> int:
        """Bytes of all living processes."""
        texts = (_read(self.root / "proc" / str(pid) / "status") for pid in self._pids("proc") if lives(pid))
        found = (re.search(rf"{key}:\s+(\d+)", text or "") for text in texts)
        return sum(int(match[1]) * 1024 for match in found if match)

    def unclaimed(self) -> int:
        """Bytes that no process has asked for, without those that SGLang leaves alone."""
        return self.hardware.available - self._sum("VmData") - RESERVE

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Whoever is in here is the only one to count memory."""
        with (self.root / "hardware.json").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class Share:
    """What this process has of a machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._asked = self._pinned = 0
        self._on_gpu: OnGpu | None = None

    def claim(self, size: int) -> int:
        """Ask for ``size`` bytes: granted if no more than what is returned, the bytes that were left for it."""
        with self._machine.alone():
            free = self._machine.unclaimed()
            if size <= free:
                self._asked += size
                self._tell()
        return free

    def pin(self, size: int) -> None:
        """Take ``size`` of the bytes that were asked for."""
        self._pinned += size
        self._tell()
        self._machine.refresh()

    def _tell(self) -> None:
        folder = self._machine.root / "proc" / str(os.getpid())
        folder.mkdir(exist_ok=True)
        _write(folder / "status", f"VmData:\t{self._asked // 1024} kB\nRssAnon:\t{self._pinned // 1024} kB\n")

    def use_gpu(self, now: OnGpu) -> None:
        """Tell what this process holds on its GPU, if that has changed."""
        if now != self._on_gpu:
            _write(self._machine.root / "gpus" / str(os.getpid()), json.dumps(asdict(now)))
            self._on_gpu = now


def lives(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    text = _read(Path(f"/proc/{pid}/stat"))
    return text is not None and text.rpartition(")")[2].split()[0] not in ("Z", "X")


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def _write(path: Path, text: str) -> None:
    """Readers see all of it or what stood there before."""
    scratch = path.with_name(f".{path.name}")
    scratch.write_text(text)
    scratch.replace(path)
