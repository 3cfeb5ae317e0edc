"""One run's log, spooled and read: bytes in, facts out.

It is read in order, from byte 0 to ``offset``. Of a long log that stands on the host already, the head is read first
(until the server was ready), then its end ``ahead`` of the middle, then the middle in order. Facts are of head and end
until the middle has caught up; then those of all bytes in order take their place.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from tui.fleet.spool import SpoolFile, run_spool, tail_path
from tui.sglang.facts import LogFacts
from tui.sglang.parser import LogParser

NEAR = 1 << 20  # bytes that are simply read
HEAD = 2 << 20  # where a server that is not ready yet is no longer waited for
TAIL = 256 << 10
HEAD_STEP, MIDDLE_STEP = 256 << 10, 4 << 20  # bytes asked for at once


def spooled_reader(root: Path, profile: str, server: str, run: str) -> LogReader:
    """The reader of a run's log; without a spool where its folder cannot be made."""
    try:
        return LogReader(run_spool(root, profile, server, run))
    except OSError as error:
        why = f"its log is not kept on this side: {error.filename}: {(error.strerror or str(error)).lower()}"
        return LogReader(None, why)


@dataclass(slots=True)
class _Ahead:
    """The end of a log from ``start`` on, read before the middle. ``offset`` is the next byte of it; its ``file``
    begins with a whole line: half a line may be half a secret, which nobody would know as one."""

    start: int
    parser: LogParser  # goes on from the head
    file: SpoolFile
    offset: int = 0
    lines_before: int = 0
    _first: int | None = None  # where its first whole line begins

    def take(self, data: bytes) -> None:
        self.offset += len(data)
        if self._first is None:
            end = data.find(b"\n") + 1
            self.parser.leap(end or len(data))
            if not end:
                return
            data = data[end:]
            self._first = self.offset - len(data)
        self.file.write(self.offset - len(data) - self._first, data)
        self.parser.feed(data)

    def facts(self, missing: int) -> LogFacts:
        """What head and end say. The number of a line at the end is not known."""
        facts = replace(self.parser.facts(), missing=missing)
        if facts.failure is not None and facts.failure.line_number > self.lines_before:
            facts = replace(facts, failure=replace(facts.failure, line_number=0))
        return facts


@dataclass
class LogReader:
    """``offset`` is the next byte wanted in order; ``trouble`` says why the log is not kept on this side, though it is
    read all the same."""

    path: Path | None
    trouble: str = ""
    offset: int = 0
    lost: int = 0  # bytes that were gone on the host before they were read
    _spooled: int = 0  # bytes that an earlier session left
    _ahead: _Ahead | None = None
    _told: LogFacts | None = None  # of head and end
    _file: SpoolFile = field(init=False)
    _parser: LogParser = field(default_factory=LogParser, repr=False)

    def __post_init__(self) -> None:
        self._file = SpoolFile(self.path)

    @property
    def reach(self) -> int:
        """The next byte wanted at the log's end."""
        return self._ahead.offset if self._ahead else self.offset

    @property
    def missing(self) -> int:
        """Bytes of the middle that facts do not tell of; positive until they are of all bytes in order."""
        return max(1, self._ahead.start - self.offset) if self._ahead else 0

    @property
    def shown(self) -> Path | None:
        """The file to look at: the log's end, as long as its middle is missing."""
        return self._ahead.file.path if self._ahead else self.path

    def open(self, size: int | None = None) -> LogFacts | None:
        """Read what an earlier session spooled of this run, ``None`` for nothing. Of a long spool that agrees with a
        log of ``size`` bytes only the head: its middle can wait, like one that stands on the host."""
        self._file.open()
        for data in self._file.before():
            if data:
                self._parser.feed(data)
            else:
                self._parser.leap(0)
        self._spooled = self._file.size()
        patient = size is not None and size >= self._spooled
        while not (patient and self._has_head and self._spooled - self.offset > NEAR):
            data = self._file.read(self.offset)
            if not data:
                break
            self._parser.feed(data)
            self.offset += len(data)
        self._watch(self._file)
        return self._parser.facts() if self._parser.size else None

    @property
    def _has_head(self) -> bool:
        return self._parser.ready or self.offset >= HEAD

    def head(self, size: int) -> tuple[int, int] | None:
        """The next stretch of the head to read before a log's end at ``size``; ``None``: it is read."""
        if self._has_head or size - self.offset <= NEAR:
            return None
        return self.offset, self.offset + HEAD_STEP

    def leap(self, size: int) -> int:
        """Where to follow a log of ``size`` bytes from: its end, when the middle is long."""
        if size - self.offset <= NEAR:
            return self.offset
        start = size - TAIL
        parser = self._parser.copy()
        parser.leap(start - self.offset)
        file = SpoolFile(tail_path(self.path) if self.path and not self.trouble else None)
        file.open()
        self._watch(file)
        self._ahead = _Ahead(start, parser, file, start, self._parser.lines)
        return start

    def middle(self) -> tuple[int, int] | None:
        """The next stretch of the middle; ``None`` when nothing is missing."""
        return (self.offset, min(self.offset + MIDDLE_STEP, self._ahead.offset)) if self._ahead else None

    @property
    def middle_is_spooled(self) -> bool:
        """Whether the next bytes of the middle are on this side already."""
        return self._ahead is not None and self.offset < self._spooled

    def catch_up(self) -> LogFacts | None:
        """Read a little of the middle from the spool."""
        data = self._file.read(self.offset)
        if not data:  # somebody cut the spool
            self._spooled = self.offset
            return None
        return self._take(data)

    def behind(self, offset: int) -> bool:
        """Whether ``offset`` lies in the middle."""
        return self._ahead is not None and offset <= self.offset

    def feed(self, offset: int, data: bytes, *, anew: bool = False) -> LogFacts | None:
        """Take ``data`` at ``offset``; ``None``: nothing new in it. ``anew``: offsets count from 0 again.

        Raises ``LogGapError`` when bytes before ``offset`` are missing: the follower must go back to ``reach``.
        """
        if anew:
            self._begin_anew()
        at = self.reach if self._ahead and offset > self.offset else self.offset
        if offset > at:
            raise LogGapError(at, offset)
        data = data[at - offset :]
        if not data:
            return None
        if self._ahead and at != self.offset:
            self._ahead.take(data)
            self._watch(self._ahead.file)
            self._told = self._ahead.facts(self.missing)
            return self._told
        self._file.write(self.offset, data)
        self._watch(self._file)
        return self._take(data)

    def _take(self, data: bytes) -> LogFacts | None:
        self.offset += len(data)
        self._parser.feed(data)
        if self._ahead is None:
            return self._parser.facts()
        if self.offset < self._ahead.offset:
            self._told = self._told and replace(self._told, missing=self.missing)
            return self._told
        self._forget_ahead()
        return self._parser.facts()

    def _begin_anew(self) -> None:
        """The log on the host begins at 0 again: what was read stays known and spooled; what was not read is lost."""
        if self._ahead:
            self.lost += max(0, self._ahead.start - self.offset)
            self._parser = self._ahead.parser
            self._forget_ahead()
        self._parser.leap(0)
        self._file.put_aside()
        self.offset = 0

    def _watch(self, file: SpoolFile) -> None:
        self.trouble = self.trouble or file.trouble

    def _forget_ahead(self) -> None:
        if self._ahead:
            self._ahead.file.close(remove=True)
            self._ahead = None

    def close(self) -> None:
        self._forget_ahead()
        self._file.close()


class LogGapError(Exception):
    """Bytes of a log are missing between ``have`` and ``got``."""

    def __init__(self, have: int, got: int) -> None:
        super().__init__(f"log bytes {have} to {got} are missing")
        self.have = have
        self.got = got
