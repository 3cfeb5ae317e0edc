"""What a log says, read as it comes: a ``LogParser`` takes chunks of bytes and tells ``LogFacts``.

The parser is a pure fold over the bytes (no clock, no I/O): wherever the chunks are cut, the facts are the same.
``LogFacts`` are frozen and cumulative, so the newer of two replaces the older.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from tui.sglang import failures
from tui.sglang.arguments import expected_ranks, server_args
from tui.sglang.batch import HEAD, Batches
from tui.sglang.batch import head as batch_head
from tui.sglang.facts import LogFacts
from tui.sglang.kinds import is_access, is_probe
from tui.sglang.lines import ANSI, Line, Splitter, messages
from tui.sglang.mask import mask_text
from tui.sglang.model import Failure, Stage
from tui.sglang.pools import Pools
from tui.sglang.stages import Stages, bar, main_stage, rank_stage

CHUNK = 64 * 1024
_WARNINGS = 20
_LAST_LINE = 2000  # characters


_SUMMARY = re.compile(
    r"max_total_num_tokens=(?P<tokens>\d+), .*?max_running_requests=(?P<running>\d+), context_len=(?P<context>\d+)"
)
_SHUTTING = re.compile(
    r"SIGTERM received\. |Gracefully exiting\.\.\.|INFO: +Shutting down|INFO: +Waiting for application shutdown|"
    r"INFO: +Finished server process"
)
_FINISHED = re.compile(r"INFO: +Finished server process|INFO: +Application shutdown complete")
_VERSION = re.compile(
    r"(?:sglang[ =:]+v?|sglang.{0,20}version[ =:]+v?)(0\.\d+\.\d+(?:\.?(?:post|rc)\d+)?)", re.IGNORECASE
)
_WARNINGS_WORTH = re.compile(
    r"max_running_requests (?:is capped|was reduced)|KV pool holds \d+ tokens, fewer|max_total_tokens=\d+ is larger|"
    r"HiCache host KV pool \(|KV cache pool is full|Decode out of memory happened|Health check failed\.|"
    r"Max running requests is reset|.*watchdog timeout .*soft=True"
)


class LogParser:
    """Reads one log from its first byte on. ``feed`` it chunks of any size; ``facts`` says what is known."""

    def __init__(self) -> None:
        self._splitter = Splitter()
        self._lines = 0
        self._size = 0
        self._stages = Stages()
        self._pools = Pools()
        self._batches = Batches()
        self._trace = failures.EMPTY
        self._args: Mapping[str, str] = MappingProxyType({})
        self._summary: tuple[int | None, int | None, int | None] = (None, None, None)
        self._version: str | None = None
        self._ready_local: float | None = None
        self._shutting_down = self._finished = False
        self._warnings: dict[str, None] = {}
        self._last: bytes = b""
        self._last_local: float | None = None

    def feed(self, chunk: bytes) -> None:
        """Read on. Work and memory are bounded by the chunk, not by the log."""
        for start in range(0, len(chunk), CHUNK):
            self._feed(chunk[start : start + CHUNK])

    def facts(self, *, end: bool = False) -> LogFacts:
        """What is known now. ``end`` counts what stands behind the last newline as a line."""
        if end and self._splitter.tail:
            self.feed(b"\n")
        batches, stages = self._batches, self._stages
        ready = stages.main is Stage.READY or self._serves()
        facts = LogFacts(
            lines=self._lines,
            size=self._size,
            version=self._version,
            model=self._args.get("model_path"),
            args=self._args,
            stage=Stage.READY if ready else stages.stage,
            stages=stages.spans(),
            missing_ranks=() if ready else stages.missing,
            progress=stages.progress,
            pools=self._pools.all(),
            max_total_num_tokens=self._summary[0],
            max_running_requests=self._summary[1],
            context_len=self._summary[2],
            ready=ready,
            ready_local=self._ready_local,
            shutting_down=self._shutting_down,
            finished=self._finished,
            latest=batches.latest(),
            after_idle=batches.after_idle,
            series=batches.series(),
            speculative=self._speculative(),
            warnings=tuple(self._warnings),
            last_line=mask_text(ANSI.sub(b"", self._last[:_LAST_LINE]).decode("utf-8", "replace")),
            last_local=self._last_local,
        )
        fatal = failures.fatal(self._trace)
        failure = failures.cause(self._trace, facts)
        return facts if failure is None and not fatal else _with_failure(facts, failure, fatal)

    def _serves(self) -> bool:
        """Whether batch lines prove that it serves: decoding always, prefilling where no start-up is in the log."""
        started = bool(self._stages.ranks) or self._stages.main is not None
        return self._batches.decodes > 0 or (self._batches.prefills > 0 and not started)

    def _speculative(self) -> str | None:
        algorithm = self._args.get("speculative_algorithm")
        return None if algorithm in (None, "None", "") else algorithm

    def _feed(self, chunk: bytes) -> None:
        self._size += len(chunk)
        lines = self._splitter.feed(chunk)
        batch_lines: dict[bytes, bytes] = {}
        counts: dict[bytes, int] = {}
        number = self._lines
        last = b""
        for line in lines:
            number += 1
            at = batch_head(line)
            if at > 0 and b"\r" not in line:
                prefix = line[:at]
                batch_lines[prefix] = line[at:]
                counts[prefix] = counts.get(prefix, 0) + 1
                last = line
            elif is_access(line):
                if not is_probe(line):
                    last = line
            elif line:
                last = line
                self._slow(number, line, batch_lines, counts)
        self._lines = number
        if batch_lines:
            self._batches.read(batch_lines, counts)
            self._last_local = (
                self._batches.last if self._last_local is None else max(self._last_local, self._batches.last or 0)
            )
        if last:
            self._last = last

    def _slow(self, number: int, raw: bytes, batch_lines: dict[bytes, bytes], counts: dict[bytes, int]) -> None:
        for line in messages(number, raw):
            if line.message.startswith(("Decode batch", "Prefill batch")):
                found = HEAD.search(raw)
                if found:
                    prefix = raw[: found.start() + len(found[1])].rpartition(b"\r")[2]
                    batch_lines[prefix] = raw[found.start() + len(found[1]) :].split(b"\r")[0]
                    counts[prefix] = counts.get(prefix, 0) + 1
            else:
                self._message(line)

    def _message(self, line: Line) -> None:
        """One message that is no batch or access line."""
        message = line.message
        if line.time is not None:
            self._last_local = line.time
        progress = bar(message)
        if progress is not None:
            self._stages.progress = progress
            return
        if message.startswith("server_args="):
            self._take_args(message, line)
            return
        self._take_stage(message, line)
        self._pools.read(message, line.ranks)
        self._take_words(message)
        self._trace = failures.observe(self._trace, line)

    def _take_args(self, message: str, line: Line) -> None:
        args = server_args(message)
        if args:
            self._args = args
            self._stages.expected = expected_ranks(args)
        self._stages.main_reached(Stage.LAUNCHING, line.time)

    def _take_stage(self, message: str, line: Line) -> None:
        stage = rank_stage(message)
        if stage is not None:
            self._stages.rank_reached(line.ranks, stage, line.time)
            return
        stage = main_stage(message)
        if stage is not None:
            self._stages.main_reached(stage, line.time)
            if stage is Stage.READY and self._ready_local is None:
                self._ready_local = line.time

    def _take_words(self, message: str) -> None:
        if message.startswith("max_total_num_tokens="):
            found = _SUMMARY.match(message)
            if found and self._summary[0] is None:
                self._summary = (int(found["tokens"]), int(found["running"]), int(found["context"]))
        elif _SHUTTING.match(message):
            self._shutting_down = True
            self._finished = self._finished or _FINISHED.match(message) is not None
        elif _WARNINGS_WORTH.match(message) and len(self._warnings) < _WARNINGS:
            self._warnings[mask_text(message[:300])] = None
        elif self._version is None and "sglang" in message.lower():
            found = _VERSION.search(message)
            if found:
                self._version = found[1]


def _with_failure(facts: LogFacts, failure: Failure | None, fatal: bool) -> LogFacts:
    return replace(facts, failure=failure, fatal=fatal)


def read(chunks: Iterable[bytes]) -> LogFacts:
    """The facts of a whole log."""
    parser = LogParser()
    for chunk in chunks:
        parser.feed(chunk)
    return parser.facts(end=True)
