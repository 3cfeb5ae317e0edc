"""The spool: the raw bytes of each run's log on this side, at their true offsets, mode 0600.

A run's log never changes once written, and a spool file is named after its run: two programs that spool the same run
write the same bytes at the same places, so they may share a file. Secrets are masked when lines leave it, not here.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from tui.sglang.facts import LogFacts
from tui.sglang.parser import LogParser

_STEP = 64 * 1024
_KEPT_RUNS = 5


def spooled_reader(root: Path, profile: str, server: str, run: str) -> LogReader:
    """The reader of a run's log; without a spool where its folder cannot be made."""
    try:
        return LogReader(run_spool(root, profile, server, run))
    except OSError as error:
        reader = LogReader(None)
        reader.trouble = f"its log is not kept on this side: {error.filename}: {(error.strerror or str(error)).lower()}"
        return reader


def run_spool(root: Path, profile: str, server: str, run: str) -> Path:
    """The spool file of a run; its folders are made with mode 0700, and the oldest runs' files are dropped."""
    folder = root / _plain(profile) / _plain(server)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{_plain(run)}.log"
    others = sorted((p for p in folder.glob("*.log") if p != path), key=lambda p: p.stat().st_mtime, reverse=True)
    for old in others[_KEPT_RUNS - 1 :]:
        with contextlib.suppress(OSError):
            old.unlink()
    return path


def _plain(name: str) -> str:
    """``name`` as one path component, distinct names staying distinct."""
    plain = "".join(c if c.isalnum() or c in "-_." else f"%{ord(c):x}" for c in name)
    return plain if plain.strip(".") else f"%{plain}"


@dataclass
class LogReader:
    """Spools one run's log and reads it: bytes in, facts out. ``offset`` is the next byte wanted from the host."""

    path: Path | None
    offset: int = 0
    trouble: str = ""  # why the spool cannot be written; the log is read all the same
    _fd: int = field(default=-1, repr=False)
    _parser: LogParser = field(default_factory=LogParser, repr=False)

    def open(self) -> LogFacts | None:
        """Read what an earlier session spooled of this run; ``None`` when there is nothing."""
        if self.path is None:
            return None
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            while data := os.pread(self._fd, _STEP, self.offset):
                self._read(data)
        except OSError as error:
            self._give_up(error)
        return self._parser.facts() if self.offset else None

    def feed(self, offset: int, data: bytes) -> LogFacts | None:
        """Take ``data`` at ``offset``; ``None`` when it holds nothing new.

        Raises ``LogGapError`` when bytes before ``offset`` are missing: the follower must go back to ``self.offset``.
        """
        if offset > self.offset:
            raise LogGapError(self.offset, offset)
        data = data[self.offset - offset :]
        if not data:
            return None
        self._write(data)
        self._read(data)
        return self._parser.facts()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, data: bytes) -> None:
        view, at = memoryview(data), self.offset
        try:
            while view and self._fd >= 0:
                done = os.pwrite(self._fd, view, at)
                view, at = view[done:], at + done
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """Go on without the spool: a full disk here must not hide what a server does there."""
        self.trouble = f"its log is not kept on this side: {self.path}: {(error.strerror or str(error)).lower()}"
        self.close()

    def _read(self, data: bytes) -> None:
        self.offset += len(data)
        self._parser.feed(data)


class LogGapError(Exception):
    """Bytes of a log are missing between ``have`` and ``got``."""

    def __init__(self, have: int, got: int) -> None:
        super().__init__(f"log bytes {have} to {got} are missing")
        self.have = have
        self.got = got
