"""What a log has said so far that may explain a failure: ``observe(trace, line) -> trace``.

A ``Trace`` is small and bounded: a few clues, each one line. Tracebacks are followed line by line, since the
exception that ends one looks like nothing special by itself, and their text may come with foreign prefixes on
each line or without its indent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Protocol

from tui.sglang.clue import Clue, better, of_chain, refines
from tui.sglang.failure_row import FAINT, SYMPTOM, Place, match
from tui.sglang.failure_table import EXCEPTIONS, LOOSE, NOISE, STARTS, TAILS, WARMUP
from tui.sglang.model import FailureKind
from tui.sglang.unwrap import unwrap

LINE_CAP = 16_384  # characters kept of a clue's line
TEXT_CAP = 2_000  # characters in which words are sought
TRACE_LINES = 400  # lines that a traceback may have
TAIL_LINES = 200  # lines after an exception that may belong to its text
NEAR = 60  # lines between an ordinary line and the exception that it explains


class LogLine(Protocol):
    """The part of ``lines.Line`` that is read here."""

    @property
    def number(self) -> int: ...
    @property
    def raw(self) -> bytes: ...
    @property
    def message(self) -> str: ...
    @property
    def prefixed(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Trace:
    """What may explain a failure. ``best`` is settled; ``chain`` is the traceback that is being read."""

    best: Clue | None = None
    chain: Clue | None = None
    loose: Clue | None = None
    fatal: bool = False
    bare_end: int = 0  # ordinary lines that may still follow an uncaught exception before it counts as survived
    announced: int = 0  # number of the newest line that announced an exception which somebody caught
    announcement: str = ""
    ready: bool = False
    stopping: bool = False
    ended_itself: bool = False  # SGLang said that it kills its own processes
    mode: str = ""  # "" | "trace" | "tail"
    context: int = 0  # weight of an unexplained exception in this traceback
    bare: bool = False
    chained: str = ""  # "" | "during" | "cause": how the next traceback hangs on this one
    left: int = 0  # lines that the traceback, or its text, may still have
    frame: str = ""
    where: str = ""
    before_gib: float | None = None  # free GPU memory before the first load of weights, tightest rank
    after_gib: float | None = None  # and after the newest
    heartbeat: str = ""  # the time of the last sign of life, as the newest failed health check tells it
    heartbeat_stands: bool = False  # the one before told the same


EMPTY = Trace()

_HIT = 28  # an unexplained exception under "… hit an exception"
_BARE = 24  # one in a bare traceback
_WARMUP = 20  # one that the warm-up request met
_LOGGED = 12  # one that was caught and logged
_HEADLESS = FAINT - 1  # one whose traceback is not in the log
_BEHEADED = "A process of the server hit this exception; its traceback is not in this log."
_ALONE = "A process that this one talks to is gone, or closed the connection; its own error is not in this log."
_CUT = "A process of the server hit an exception; what it was is not in this log."

_TRACEBACK = "Traceback (most recent call last)"
_HEADER = re.compile(r"^(?P<who>.{0,160}?)" + re.escape(_TRACEBACK))
# The forward thread of old releases has no handler: nobody ends the server then, yet it serves no more
_HIT_HEADER = re.compile(r"\b\w+ hit an exception: *$|^Exception in thread .{0,60}forward_thread")
_WARMUP_HEADER = re.compile(r"warmup error|warmup failed; aborting")  # the latter of image and video servers
_IGNORED_HEADER = re.compile(
    r"Exception in ASGI|Exception ignored|Exception in thread|Exception in callback|never retrieved|Ignore |"
    r"[Ww]arning|fall(?:ing)? ?back|"
    r"\[http_server\]|telemetry|torch/_dynamo/metrics_context|retry|Logging error|Task exception|Exception in daemon"
)
_EXCEPTION = re.compile(
    r"^(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*)(?:: (?P<text>.*)| *|:)$",
    re.DOTALL,
)
_EXCEPTION_NAME = re.compile(
    r"^Exception$|\w(?:Error|Exception|Exit|Interrupt|Warning|Timeout|Failure|Iteration|OutOfResources|Unsupported)$"
)
_FRAME = re.compile(r'^\s*File "(?P<path>[^"]{1,400})", line \d+, in ')
_DURING = "During handling of the above exception"
_DIRECT = "The above exception was the direct cause"
_PLACES = (
    ("host", re.compile(r"memory_pool_host|pool_host|hicache|hiradix|hi_mamba")),
    ("graph", re.compile(r"graph_runner|cuda_graph|graph_capture")),
    (
        "load",
        re.compile(
            r"model_loader|load_model|memory_pool|kv_cache_config|pool_config|"
            r"model_executor/model_runner"
        ),
    ),
)
_LOOP = re.compile(r", in (?:event_loop|forward_thread|run_batch)")
_WORKER = re.compile(r"/srt/(?:models|layers|mem_cache|model_executor|speculative|lora)/.{1,200}, in \w")  # no import
_STDLIB = re.compile(r"/lib/python3\.\d+/(?!(?:site|dist)-packages/)")
_TRIGGER = re.compile(
    r"Traceback|rror|xception|  File \"|atal|sigquit|SIGQUIT|SIGTERM|Killed|killed|oom|OOM|emory|imeout|dead|died|"
    r"crashed|terminate|Segfault|Segmentation|"
    r"Aborted|Bus error|ended|exited|[Ee]xit code|kill_process_tree|ready to roll|Gracefully|Shutting down|"
    r"CUresult|is (?:already )?in use|ailed|annot|an not|nable to|ProcessGroup|Illegal|corrupt|invalid pointer|"
    r"invalid size|EADDR|\*\*\* SIG|not found|No module named|No such file|Permission denied|docker: "
)
_FALSE_ALARM = re.compile(
    r"^(?:Ignore |"
    r"\[http_server\] Error|Error: |"
    r"Decode out of memory happened|KV cache pool is full|Not enough host memory for request|"
    r"Using custom SIGQUIT handler|"
    r"Health check failed|You are using a model of type|resource_tracker|nanobind|"
    r"port \S+ is in use\. Waiting|retry\(\)|"
    r"Pyspy failed|OpenAI Responses API|load snapshot writer|Watchdog \S+ initialized|retract_decode|"
    r"Testing retraction|"
    r"\S+\.py:\d+: \w*Warning: |Input length|The request is aborted|Prefetch operation|Write page to storage|INFO: )"
)
_HEARTBEAT = re.compile(r"Health check failed\. .{0,200}last_heartbeat time: (?P<at>[\d:]{8})")
_QUOTES = re.compile(
    r"^(?:server_args=|launch_command|Receive: |Received? request|Finish: |Generate request)"
)  # may hold any text
_SURVIVED = re.compile(
    r"[Ff]all(?:ing|s)? ?back|will use|instead\.|retrying|[Dd]isabl(?:ed|ing)|skipp(?:ed|ing)|[Ii]gnor(?:ed|"
    r"ing)|Failed to import from"
)
_ANNOUNCES = re.compile(r"(?i)\b(?:error|failed|failure|exception|unable|can ?not)\b")
_LAST_WORDS = re.compile(
    r"kill_process_tree|sigquit|SIGQUIT|SIGTERM|Traceback|Exit code|scheduler is dead|hit an exception|crashed with|"
    r"died during|process|shutdown"
)
_FREE = re.compile(r"Load weight (?P<edge>begin|end)\..{0,400}?avail mem=(?P<free>\d{1,6}\.?\d{0,4}) GB")
_OWN_END = re.compile(r"^kill_process_tree called: .{0,80}include_parent=True")
_STOPPING = re.compile(r"^(?:SIGTERM received\. signum|Gracefully exiting|INFO: +Shutting down|Shutting down)")


def observe(trace: Trace, line: LogLine) -> Trace:
    """``trace`` after one more line. Total: any line, no exception; a line that says nothing costs one search."""
    message = line.message[:TEXT_CAP]
    if trace.bare_end and line.prefixed and not _LAST_WORDS.search(message):
        trace = _calm(trace, message)
    if message.startswith("Load weight "):
        return _weights(trace, message)
    if trace.mode:
        return _inside(trace, line, message)
    if _TRIGGER.search(message) is None:
        return trace
    return _outside(trace, line, message)


def _weights(trace: Trace, message: str) -> Trace:
    """Free GPU memory around a load of weights: ranks print it in turn, a draft model loads after the target."""
    trace = _settle_if_tail(trace)
    found = _FREE.match(message)
    if found is None:
        return trace
    free = float(found["free"])
    if found["edge"] == "begin":
        if trace.after_gib is None:
            return replace(trace, before_gib=min(free, trace.before_gib or free))
        return replace(trace, after_gib=None) if trace.mode == "" else trace
    return replace(trace, after_gib=min(free, trace.after_gib or free))


def _calm(trace: Trace, message: str) -> Trace:
    """An ordinary record after an uncaught exception: once there are some, the process lives on, so it was no end."""
    left = 0 if "Application startup complete" in message else trace.bare_end - 1
    if left > 0:
        return replace(trace, bare_end=left)
    trace = _settle_if_tail(trace)
    best = trace.best
    if best is not None and best.bare:
        best = replace(best, weight=min(best.weight, _LOGGED))
    return replace(trace, best=best, bare_end=0)


def _inside(trace: Trace, line: LogLine, message: str) -> Trace:
    """A line while a traceback, or the text of its exception, is being read."""
    if line.prefixed and not line.message.startswith(" "):
        # A record of another process, or the end of this one. Frames may carry the record's prefix on each line.
        if trace.mode == "trace":
            # An exception whose text looks like a record of its own counts as what it is.
            for text in (unwrap(message), unwrap(_raw(line)[:TEXT_CAP])):
                if _is_exception(text):
                    return _exception(trace, line, text)
        if _TRACEBACK in message or _TRIGGER.search(message):
            return _outside(_settle_if_tail(trace), line, message)
        left = trace.left - 5
        return _settle_if_tail(trace) if left > 0 and trace.mode == "tail" else _spend(trace, 5)
    text = message if message[:1] in " \t" else unwrap(message)
    if _TRACEBACK in text:
        return _outside(trace, line, text)
    if text.startswith((_DURING, _DIRECT)):
        return replace(trace, chained="during" if text.startswith(_DURING) else "cause")
    if trace.mode == "trace":
        return _frame_or_exception(_spend(trace, 1), line, text)
    return _tail(_spend(trace, 1), line, text)


def _spend(trace: Trace, lines: int) -> Trace:
    """A traceback whose end never comes is given up after a while."""
    return replace(trace, left=trace.left - lines) if trace.left > lines else _settle(trace)


def _frame_or_exception(trace: Trace, line: LogLine, text: str) -> Trace:
    frame = _FRAME.match(text)
    if frame is not None:
        path = frame["path"]
        if _LOOP.search(text):
            place = "run"
        elif trace.where in ("run", "graph"):
            place = trace.where  # what is called while serving, or while capturing, is still that
        else:
            place = next((name for name, pattern in _PLACES if pattern.search(path)), trace.where)
            place = place or ("worker" if _WORKER.search(text) else "")
        own = trace.frame if _STDLIB.search(path) else "/".join(path.split("/")[-2:])[:160]
        return replace(trace, frame=own, where=place)
    if text[:1] in " \t" or not _is_exception(text):
        return trace
    return _exception(trace, line, text)


def _is_exception(text: str) -> bool:
    """Whether this is how a traceback ends. Exceptions that are not Python's own carry their module's name."""
    found = _EXCEPTION.match(text)
    return found is not None and ("." in found["name"] or _EXCEPTION_NAME.search(found["name"]) is not None)


def _exception(trace: Trace, line: LogLine, text: str) -> Trace:
    """The exception that ends a traceback: the clue of its chain is the better of what came before and this."""
    if trace.context == 0 or "openai_harmony" in text:
        return replace(trace, mode="tail", left=TAIL_LINES, chained="")
    new = _clue_of(trace, line, text)
    chain = new if not trace.chained or trace.chain is None else of_chain(trace.chain, new, trace.chained)
    ends = trace.bare and not trace.ready and trace.context > _LOGGED and not text.startswith("KeyboardInterrupt")
    return replace(trace, chain=chain, mode="tail", left=TAIL_LINES, chained="", bare_end=4 if ends else trace.bare_end)


def _clue_of(trace: Trace, line: LogLine, text: str) -> Clue:
    raw = _raw(line)
    if NOISE.search(text) and trace.context == _HIT:  # noise beside another failure, the cause where it is alone
        row = match(text, EXCEPTIONS)
        kind, explanation = (row.kind, row.explanation) if row else (FailureKind.SCHEDULER_EXCEPTION, _ALONE)
        return Clue(raw, line.number, text, kind, explanation, FAINT, trace.frame, trace.where)
    if NOISE.search(text):
        return Clue(raw, line.number, text, FailureKind.CHILD_DIED, None, 3, trace.frame, trace.where, trace.bare)
    if trace.context == _WARMUP:
        return Clue(raw, line.number, text, FailureKind.OTHER, WARMUP, _WARMUP, trace.frame, trace.where)
    row = match(text, EXCEPTIONS)
    if row is not None:
        weight = min(row.weight, row.weight - (_HIT - trace.context) // 2)
        return Clue(raw, line.number, text, row.kind, row.explanation, weight, trace.frame, trace.where, trace.bare)
    loose = trace.loose
    if loose is not None and line.number - loose.number <= NEAR:
        return replace(loose, weight=trace.context, frame=trace.frame, where=trace.where)
    kind = None if not trace.bare else FailureKind.OTHER
    return Clue(raw, line.number, text, kind, None, trace.context, trace.frame, trace.where, trace.bare)


def _tail(trace: Trace, line: LogLine, text: str) -> Trace:
    """A line of an exception's text: compilers and loaders name the real reason there."""
    chain = trace.chain
    if chain is None or _TRIGGER.search(text) is None:
        return trace
    row = match(text, TAILS)
    if row is not None and refines(chain, row.kind, row.weight):
        clue = replace(
            chain,
            line=_raw(line),
            number=line.number,
            text=text,
            kind=row.kind,
            explanation=row.explanation,
            weight=row.weight,
        )
        return replace(trace, chain=clue)
    if row is None and match(text, STARTS) is not None:
        return _outside(_settle(trace), line, text)
    return trace


def _settle(trace: Trace) -> Trace:
    """The chain is complete: keep it if it beats what is known."""
    return replace(trace, best=better(trace.best, trace.chain), chain=None, mode="", chained="", frame="", where="")


def _settle_if_tail(trace: Trace) -> Trace:
    return _settle(trace) if trace.mode == "tail" and not trace.chained else trace


def _outside(trace: Trace, line: LogLine, message: str) -> Trace:
    """A line with a word that may matter, outside of tracebacks (or the header of one)."""
    text = unwrap(message)
    if text.startswith("INFO:"):
        return replace(trace, stopping=True) if _STOPPING.match(text) else trace
    if _QUOTES.match(text):
        return trace
    header = _HEADER.match(text)
    if header is not None:
        logged = not header["who"] and trace.announced > 0 and line.number - trace.announced <= 1 and not line.prefixed
        begun = _begin(trace, trace.announcement if logged else header["who"], logged)
        return replace(begun, best=better(begun.best, _header(line, text))) if begun.context == _HIT else begun
    beat = _HEARTBEAT.match(text)
    if beat is not None:
        return replace(trace, heartbeat_stands=beat["at"] == trace.heartbeat, heartbeat=beat["at"])
    if _FALSE_ALARM.match(text):
        return replace(trace, announced=line.number, announcement=text[:200]) if _announces(line, text) else trace
    if "ready to roll" in text:
        best = None if trace.best is not None and trace.best.bare else trace.best
        return replace(trace, ready=True, bare_end=0, best=best)
    if _STOPPING.match(text):
        return replace(trace, stopping=True)
    if _OWN_END.match(text):
        return replace(trace, ended_itself=True)
    if _FRAME.match(message) and not line.prefixed:  # a log that was cut: the head of this traceback is not there
        return _frame_or_exception(_begin(trace, "", logged=False), line, message)
    return _record(trace, line, text)


def _header(line: LogLine, text: str) -> Clue:
    """All that is known where the log ends before the exception does."""
    return Clue(_raw(line), line.number, text, FailureKind.SCHEDULER_EXCEPTION, _CUT, _HEADLESS - 1)


def _begin(trace: Trace, who: str, logged: bool) -> Trace:
    """The header of a traceback; ``who`` is what stands before it in its line."""
    if trace.chained:
        return replace(trace, mode="trace", left=TRACE_LINES, frame="")
    trace = _settle(trace)
    context, bare = (_LOGGED if logged else _BARE), True
    if _HIT_HEADER.search(who):
        context, bare = _HIT, False
    elif _WARMUP_HEADER.search(who):
        context, bare = _WARMUP, False
    elif _IGNORED_HEADER.search(who):
        context, bare = 0, False
    fatal = trace.fatal or (context > 0 and not bare)
    return replace(trace, mode="trace", left=TRACE_LINES, context=context, bare=bare, fatal=fatal)


def _record(trace: Trace, line: LogLine, text: str) -> Trace:
    """A log record that may be a clue by itself."""
    row = match(text, STARTS)
    if row is not None and not (Place.LOOSE in row.places and row.kind is None):
        clue = Clue(_raw(line), line.number, text, row.kind, row.explanation, row.weight)
        if row.weight <= SYMPTOM and (trace.stopping or (trace.ended_itself and "Killed" in text)):
            return trace
        return replace(trace, best=better(trace.best, clue), fatal=trace.fatal or row.fatal)
    if not line.prefixed and _is_exception(text) and not NOISE.search(text):
        trace = _headless(trace, line, text)
    row = match(text, LOOSE)
    if row is not None and _SURVIVED.search(text) is None:
        clue = Clue(_raw(line), line.number, text, row.kind, row.explanation, row.weight)
        if trace.loose is None or line.number - trace.loose.number > NEAR:
            trace = replace(trace, loose=clue)
    return replace(trace, announced=line.number, announcement=text[:200]) if _announces(line, text) else trace


def _headless(trace: Trace, line: LogLine, text: str) -> Trace:
    """An exception without its traceback, in a log that was cut: little, yet more than that something died."""
    row = match(text, EXCEPTIONS)
    kind, explanation = (row.kind, row.explanation) if row else (FailureKind.SCHEDULER_EXCEPTION, _BEHEADED)
    return replace(trace, best=better(trace.best, Clue(_raw(line), line.number, text, kind, explanation, _HEADLESS)))


def _announces(line: LogLine, text: str) -> bool:
    """Whether a traceback in the next line belongs to this record: somebody caught it and goes on."""
    return _IGNORED_HEADER.search(text) is not None or (line.prefixed and _ANNOUNCES.search(text) is not None)


def _raw(line: LogLine) -> str:
    return line.raw[: LINE_CAP * 4].decode("utf-8", "replace")[:LINE_CAP]


def is_fatal(trace: Trace) -> bool:
    """Whether what has been seen ends the server even if its process still lives."""
    return trace.fatal or trace.bare_end > 0


def clue(trace: Trace) -> Clue | None:
    """The line that explains most of what has been seen."""
    return better(trace.best, trace.chain)
