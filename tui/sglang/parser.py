"""The parser of one log: bytes in, everything that is known of it kept, bounded, and told as ``LogFacts``.

Batch and access lines, which are nearly all of a serving log, go by chunk-wide regular expressions; the rest line by
line through the tables of stages, pools and failures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tui.sglang import diagnosis
from tui.sglang.args import implied_ranks, parse_args, same_server
from tui.sglang.batch import fields, is_health_check, is_warmup, tokens
from tui.sglang.bulk import Row, newest_sign, parts, raw, rows, take
from tui.sglang.kinds import is_probe
from tui.sglang.lines import LINE_CAP, Line, local_seconds, parse
from tui.sglang.logfacts import LogFacts
from tui.sglang.model import Failure, Stage
from tui.sglang.numbers import Numbers
from tui.sglang.pools import Pools
from tui.sglang.release import printed_page
from tui.sglang.replicas import Batches, dp_rank
from tui.sglang.stages import (
    LEADER_ROWS,
    LOOP,
    MAIN_ROWS,
    RANK_ROWS,
    SOME_STAGE,
    Stages,
    bar,
    matching,
    tells_serving,
)
from tui.sglang.summary import summary
from tui.sglang.trace import EMPTY, Trace, observe
from tui.sglang.unwrap import bared, wrapper_of
from tui.sglang.wrapped import mended
from tui.sglang.wrapped_batch import Wrapped

HEAD_CAP = 8 << 10  # bytes kept of what a progress bar has shown before in its line

_BLANK = re.compile(rb"(?:\r?\n)++")
_BATCH = re.compile(r"(?P<kind>Decode|Prefill) batch(?:[.,] | \[)(?P<body>.*)", re.DOTALL)
_ACCESS = re.compile(r"INFO: {1,6}\S{1,64} - \"")
_ANSWERED = re.compile(r" HTTP/\S{1,4}\" 2\d\d")
_SERVED = re.compile(r"\"POST /\S{0,200} HTTP/\S{1,4}\" 200")
_STOPPING = re.compile(
    r"SIGTERM received|Gracefully exiting|INFO: +Shutting down|INFO: +Finished server process|"
    r"Signal SIGTERM received while health check failed|KeyboardInterrupt$"
)
_OWN = re.compile(
    r"sglang|server_args=|(?:Decode|Prefill) batch|ready to roll|Load weight (?:begin|end)|Init torch dist"
)


@dataclass(slots=True)
class LogParser:
    """All that is known of one log so far."""

    lines: int = 0
    size: int = 0
    probes: int = 0  # bytes of probe lines
    tail: bytes = b""  # the segment that has not ended
    head: bytes = b""  # what came before it in its line
    shown: bytes = b""  # the newest segment of that
    args: MappingProxyType[str, str] = field(default_factory=lambda: MappingProxyType({}))
    stages: Stages = field(default_factory=Stages)
    pools: Pools = field(default_factory=Pools)
    batches: Batches = field(default_factory=Batches)
    numbers: Numbers = field(default_factory=Numbers)
    trace: Trace = EMPTY
    ready: bool = False
    ready_local: float | None = None
    stopping: bool = False
    recognized: bool = False
    unhealthy: bool = False
    last_raw: bytes = b""
    last_local: float | None = None
    broken: Line | None = None  # a record whose end may stand on the next line
    wrapped: Wrapped = field(default_factory=Wrapped)
    judged: tuple[object, ...] = ()  # what ``failure`` was worked out from
    failure: Failure | None = None
    shipped: re.Pattern[str] | None = None  # what stood before the newest traceback's first line

    def copy(self) -> LogParser:
        """A parser that goes on from here; values that never change are shared."""
        return replace(
            self,
            stages=self.stages.copy(),
            pools=self.pools.copy(),
            batches=self.batches.copy(),
            numbers=self.numbers.copy(),
            wrapped=self.wrapped.copy(),
        )

    # Bytes to segments

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes."""
        self.size += len(chunk)
        if self.tail or self.head:
            end = chunk.find(b"\n")
            self._piece(chunk if end < 0 else chunk[:end])
            if end < 0:
                return
            self._end_line()
            chunk = chunk[end + 1 :]
        cut = chunk.rfind(b"\n") + 1
        if cut:
            self._whole(chunk[:cut])
        self._piece(chunk[cut:])

    def leap(self, size: int) -> None:
        """Go on ``size`` bytes later, at the start of a line; what lies between is not read."""
        self.tail = self.head = self.shown = b""
        self.size += size

    def _whole(self, text: bytes) -> None:
        """Whole lines: those of a server that works many at a time, all others one by one."""
        begun = self._lines(text, start=True)
        for batches, run in parts(rows(text[begun:])) if begun < len(text) else ():
            done = 0
            if batches and self.ready and not self.wrapped.width:
                done = len(run) - self.wrapped.cut(raw(run[-1]))  # the last may go on in the next line
                done = done if done and self._run(run[:done]) else 0
            self._lines(b"\n".join([*map(raw, run[done:]), b""]))

    def _lines(self, text: bytes, *, start: bool = False) -> int:
        """Read whole lines one by one, those of a ``start`` until the server is ready; how many bytes were read."""
        begun = 0
        while begun < len(text) and not (start and self.ready):
            blank = _BLANK.match(text, begun)
            if blank:
                self._blank_lines(text.count(b"\n", begun, blank.end()))
                begun = blank.end()
                continue
            end = text.index(b"\n", begun)
            self._piece(text[begun:end])
            self._end_line()
            begun = end + 1
        return begun

    def _blank_lines(self, count: int) -> None:
        """Blank lines say nothing but to a traceback that waits for its end, and to that not for long."""
        self._release()
        for number in range(self.lines + 1, self.lines + count + 1):
            before, self.trace = self.trace, observe(self.trace, Line(number, b"", ""))
            if self.trace is before:
                break
        self.lines += count

    def _run(self, run: list[Row]) -> bool:
        """Read a run of batch and access lines at once; ``False`` when that cannot be done."""
        self._release()
        taken = take(run, self.batches)
        if taken is None:
            return False
        self.lines += len(run)
        self.probes += taken.probes
        self.unhealthy = self.unhealthy and not taken.figures
        newest = newest_sign(run, self.batches.page)
        if newest is not None:
            self.last_raw = raw(newest)[:4096]
            stamp = local_seconds(newest[1][1:].decode("ascii"), newest[2][1:].decode("ascii") or None)
            self.last_local = stamp if stamp is not None else self.last_local
        return True

    def _piece(self, piece: bytes) -> None:
        """A part of one line: its segments that end here are read, the rest waits."""
        if b"\r" in piece:
            *done, piece = piece.split(b"\r")
            for segment in done:
                segment = self._joined(segment)
                if segment != self.shown or not segment:  # a bar that is drawn again as it was says nothing new
                    self._segment(segment)
                self.shown, self.tail = segment, b""
        self.tail = self._joined(piece)

    def _joined(self, more: bytes) -> bytes:
        if not self.tail:
            return more[:LINE_CAP]
        return self.tail + more[: LINE_CAP - len(self.tail)] if len(self.tail) < LINE_CAP else self.tail

    def _end_line(self) -> None:
        segment, self.tail = self.tail, b""
        if segment or not self.head:
            self._segment(segment)
        self.head = self.shown = b""
        self.lines += 1

    def finish(self) -> None:
        """The log ends here."""
        if self.tail:
            self._segment(self.tail)
            self.tail = b""
        self._release()

    def _segment(self, segment: bytes) -> None:
        raw = self.head + segment if self.head else segment
        if len(self.head) < HEAD_CAP:
            self.head = (raw + b"\r")[:HEAD_CAP]
        if not segment.strip():
            if not self.head.strip():
                self._line(Line(self.lines + 1, b"", ""))
            return
        for line in parse(self.lines + 1, raw, segment):
            self._line(line)

    # Lines

    def _line(self, line: Line) -> None:
        if self.shipped is not None and not line.prefixed:
            line = bared(line, self.shipped)
        if self.wrapped.goes_on(line):
            return
        self._release()
        message = line.message
        if _BATCH.match(message) is not None:
            if self.wrapped.cut(line.raw):
                self.wrapped.hold(line)
            else:
                self._batch(line)
            return
        if _ACCESS.match(message) is not None:
            self._access(line)
            return
        progress = bar(message) if "%" in message else None
        if progress is not None:
            self._stage(line)
            self.stages.progress = progress
            self._living(line)
            return
        if message:
            if is_probe(message):
                self.probes += len(line.raw) + 1
                return
            self._record(line)
            self._living(line)
        self.trace = observe(self.trace, line)

    def _living(self, line: Line) -> None:
        text = line.raw.replace(b"\n", b"")
        self.last_raw = text[-4096:] if b"\r" in text else text[:4096]
        self.last_local = line.time if line.time is not None else self.last_local

    def _record(self, line: Line) -> None:
        line, self.broken = mended(line, self.broken)
        message = line.message
        if message.startswith(("server_args=ServerArgs(", "server_args={")):
            self._server_args(line)
        elif message.startswith("Ignore "):
            return
        elif message.startswith("Scheduler hit an exception"):
            self.stages.failed(line.ranks, line.time)
            self.shipped = wrapper_of(line)
        elif message.startswith("Initialization failed. warmup error"):
            self.stages.never_ready(line.time)
        if not self.recognized:
            seen = message[:2000] if b"\r" in line.raw else line.raw[:2000].decode("latin-1")
            self.recognized = _OWN.search(seen) is not None
        if self.numbers.take(message):
            self.stages.hint(message, line.time or self.last_local)
            return
        if SOME_STAGE.search(message, 0, 400) is not None:
            self._stage(line)
            if _STOPPING.match(message):
                self.stopping = True
            elif message.startswith("Health check failed. Server"):
                self.unhealthy = True

    def _server_args(self, line: Line) -> None:
        args = MappingProxyType(dict(parse_args(line.message)))
        # A killed launch says nothing. Behind a wrapper's name the second dump may be another container's or actor's
        again = self.stages.told and line.raw[:1] in b"[0123456789" and same_server(self.args, args)
        if again or self.stopping or self.ready or diagnosis.fatal(self.trace):
            self._restart()
        elif self.args:
            self.numbers.another(self.args, args)
        self.args, self.stages.expected, self.batches.page = args, None, printed_page(args)
        self.recognized = True

    def _restart(self) -> None:
        """A new launch writes into the same log: what was known of the last one is over."""
        self.stages, self.pools, self.batches, self.numbers = Stages(), Pools(), Batches(), Numbers()
        self.trace, self.ready, self.ready_local, self.stopping = EMPTY, False, None, False

    def _stage(self, line: Line) -> None:
        message, ranks = line.message, line.ranks
        stage = matching(message, RANK_ROWS)
        if stage is not None:
            self._rank_stage(line, stage)
            return
        if LOOP.match(message):
            begun = self.stages.stage not in (None, Stage.LAUNCHING)
            self.stages.hinted(Stage.WARMUP if begun else Stage.READY, line.time or self.last_local)
            return
        stage = matching(message, MAIN_ROWS)
        if stage is Stage.READY:
            self._ready(line.time)
        elif stage is not None:
            self.stages.main_reached(stage, line.time)
        elif tells_serving(message):
            if self.stages.stage in (None, Stage.LAUNCHING):
                self.stages.hinted(Stage.READY, line.time)
        else:
            self.stages.hint(message, line.time or self.last_local)
        if ranks and self.stages.expected is None:
            self._expect(ranks)

    def _rank_stage(self, line: Line, stage: Stage) -> None:
        if line.ranks and self.stages.expected is None:
            self._expect(line.ranks)
        if matching(line.message, LEADER_ROWS) is not None:
            self.stages.leader_reached(line.ranks, stage, line.time)
        else:
            self.stages.rank_reached(line.ranks, stage, line.time)
            self.pools.take(line.ranks, line.message)

    def _expect(self, ranks: str) -> None:
        self.stages.expected = implied_ranks(self.args, ranks)

    def _ready(self, time: float | None) -> None:
        started = self.stages.stage is not None
        self.stages.main_reached(Stage.READY, time)
        if not self.ready:
            self.ready, self.ready_local = True, time
            if started:
                self.batches.awake()
        self.recognized = True

    def _release(self) -> None:
        """Whatever comes next, the batch line that was held is whole."""
        line = self.wrapped.release()
        if line is not None:
            self._batch(line)

    def _batch(self, line: Line) -> None:
        batch = _BATCH.match(line.message)
        if batch is None:
            return
        decode, told = batch["kind"] == "Decode", batch["body"].encode("utf-8", "replace")
        self.recognized = True
        if not decode and is_health_check(told, self.batches.page):
            self.probes += len(line.raw) + 1
            if self.stages.stage in (None, Stage.READY) and not self.ready:
                self._ready(line.time)  # whoever answers these has started, before what the log shows
            return
        found = fields(told)
        started = self.stages.stage not in (None, Stage.READY)
        # Where the start is in the log, requests may be let in before the ready line: only decoding several proves more
        several = found.get("running", 0) > 1 or found.get("queued", 0) > 0
        if not self.ready and ((decode and several) or not (started or (not decode and is_warmup(found)))):
            self._ready(line.time)
        elif not self.ready and not decode:
            self.stages.main_reached(Stage.WARMUP, line.time)
        self.unhealthy = False
        if decode:
            self.batches.decode(dp_rank(line.ranks), line.time, told)
        else:
            self.batches.prefill(dp_rank(line.ranks), line.ranks, line.time, told, *tokens(told))
        self._living(line)

    def _access(self, line: Line) -> None:
        """A request was answered. Where the log shows no start, that alone says how far the server is."""
        if self.stages.stage is None and _ANSWERED.search(line.message):
            self.stages.hinted(Stage.READY, line.time)
        if is_probe(line.message):
            self.probes += len(line.raw) + 1
            return
        self._living(line)
        if not self.ready and self.stages.stage is Stage.READY and _SERVED.search(line.message):
            self._ready(line.time)

    def facts(self, *, end: bool = False) -> LogFacts:
        """What has been read so far. ``end``: the log ends here, and what stands behind its last newline is a line."""
        if end:
            self.finish()
        return summary(self)
