"""The spool: the raw bytes of each run's log on this side, mode 0600.

A spool file is named after its run and always holds the log's beginning, without a gap: two programs that spool the
same run write the same bytes at the same places, so they share the file. Where the log began anew on its host
(truncated, or another file in its place), what was spooled is put aside, numbered. Secrets are masked when lines
leave the spool, not here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tui.fleet.places import private_folder

_STEP = 64 * 1024
_KEPT_RUNS = 5


def run_spool(root: Path, profile: str, server: str, run: str) -> Path:
    """The spool file of a run; its folders are made with mode 0700, and the oldest runs' files are dropped."""
    folder = root / _plain(profile) / _plain(server)
    private_folder(folder)
    path = folder / f"{_plain(run)}.log"
    others = sorted((p for p in folder.glob("*.log") if p != path), key=_changed, reverse=True)
    for old in others[_KEPT_RUNS - 1 :]:
        for file in (old, *_beside(old)):
            with contextlib.suppress(OSError):
                file.unlink()
    for tail in _beside(path):
        _drop_orphan(tail)
    return path


def tail_path(spool: Path) -> Path:
    """Where this program keeps the log's end while the middle is missing."""
    return spool.with_name(f"{spool.name}.tail-{os.getpid()}")


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another program has dropped it
        return 0.0


def _beside(spool: Path) -> list[Path]:
    return [path for path in spool.parent.iterdir() if path.name.startswith(spool.name + ".")]


def _drop_orphan(path: Path) -> None:
    """Remove a tail whose program is gone."""
    pid = path.name.rpartition(".tail-")[2]
    if pid != path.name and pid.isdigit() and int(pid) != os.getpid():
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            path.unlink(missing_ok=True)
        except OSError:
            pass


def _plain(name: str) -> str:
    """``name`` as one path component, distinct names staying distinct."""
    plain = "".join(c if c.isalnum() or c in "-_." else f"%{ord(c):x}" for c in name)
    return plain if plain.strip(".") else f"%{plain}"


class SpoolFile:
    """A private file that is written at offsets. Once it cannot be written it is given up, and ``trouble`` says why."""

    def __init__(self, path: Path | None, trouble: str = "") -> None:
        self.path = path
        self.trouble = trouble
        self._fd = -1

    def open(self) -> None:
        if self.path is None or self._fd >= 0:
            return
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self._give_up(error)

    def before(self) -> Iterator[bytes]:
        """What was put aside, oldest first; ``b""`` stands behind each file."""
        for aside in self._aside():
            with contextlib.suppress(OSError), aside.open("rb") as file:
                yield from iter(lambda: file.read(_STEP), b"")
                yield b""

    def size(self) -> int:
        return os.fstat(self._fd).st_size if self._fd >= 0 else 0

    def read(self, at: int) -> bytes:
        """The next bytes there, a few; none at its end."""
        try:
            return os.pread(self._fd, _STEP, at) if self._fd >= 0 else b""
        except OSError as error:
            self._give_up(error)
            return b""

    def write(self, at: int, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view and self._fd >= 0:
                done = os.pwrite(self._fd, view, at)
                view, at = view[done:], at + done
        except OSError as error:
            self._give_up(error)

    def put_aside(self) -> None:
        """Begin a new file. Of two programs that share the old one, one puts it aside."""
        if self.path is None or self._fd < 0:
            return
        with contextlib.suppress(OSError):
            if os.fstat(self._fd).st_ino == self.path.stat().st_ino:
                self.path.rename(self.path.with_name(f"{self.path.name}.{len(self._aside()) + 1}"))
        self.close()
        self.open()

    def _aside(self) -> list[Path]:
        if self.path is None or self._fd < 0:
            return []
        numbered = [p for p in _beside(self.path) if p.suffix[1:].isdigit()]
        return sorted(numbered, key=lambda p: int(p.suffix[1:]))

    def _give_up(self, error: OSError) -> None:
        """Go on without the spool: a full disk here must not hide what a server does there."""
        self.trouble = f"its log is not kept on this side: {self.path}: {(error.strerror or str(error)).lower()}"
        self.close()

    def close(self, *, remove: bool = False) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            if remove and self.path is not None:
                self.path.unlink(missing_ok=True)
