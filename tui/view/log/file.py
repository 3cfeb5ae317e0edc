"""A log file on this side that grows, read by offsets."""

from __future__ import annotations

import os
from pathlib import Path

BLOCK = 64 * 1024


class LogFile:
    """A file that grows; missing is empty. A file that was replaced or cut is seen as ``generation`` + 1."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.size = 0
        self.generation = 0
        self._fd = -1
        self._inode = -1

    def look(self) -> int:
        """The size now."""
        if self.path is None:
            return 0
        try:
            told = self.path.stat()
        except OSError:
            return self.size
        if told.st_ino != self._inode or told.st_size < self.size:
            self.close()
            try:
                self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return self.size
            self._inode = told.st_ino
            self.generation += 1
        self.size = told.st_size
        return self.size

    def read(self, start: int, end: int) -> bytes:
        """Bytes ``start`` to ``end``, fewer at the file's end."""
        if self._fd < 0 or end <= start:
            return b""
        return os.pread(self._fd, end - start, start)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._inode, self.size = -1, -1, 0


def line_start(file: LogFile, offset: int) -> int:
    """The start of the line that the byte before ``offset`` belongs to, or ``offset`` itself after a newline."""
    while offset > 0:
        start = max(0, offset - BLOCK)
        found = file.read(start, offset).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        offset = start
    return 0
