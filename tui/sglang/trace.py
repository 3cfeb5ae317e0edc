"""What a log has said so far that may explain a failure: ``observe(trace, line) -> trace``.

A ``Trace`` is small and bounded: a few clues, each one line. Tracebacks are followed line by line, since the
exception that ends one looks like nothing special by itself, and their text may come with foreign prefixes on
each line or without its indent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Protocol

from tui.sglang.failure_table import CLUMSY, EXCEPTIONS, LOOSE, NOISE, STARTS, SYMPTOM, TAILS, match
from tui.sglang.model import FailureKind

LINE_CAP = 16_384  # characters kept of a clue's line
TEXT_CAP = 2_000  # characters in which words are sought
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
class Clue:
    """One line that may explain the failure. ``kind`` ``None``: the stage or the place of the error tells it."""

    line: str
    number: int
    text: str
    kind: FailureKind | None
    explanation: str | None  # None: an exception that no row of the table knows
    weight: int
    frame: str = ""  # the innermost source file of its traceback
    where: str = ""  # "load" | "graph" | "run": which part of SGLang its traceback went through


@dataclass(frozen=True, slots=True)
class Trace:
    """What may explain a failure. ``best`` is settled; ``chain`` is the traceback that is being read."""

    best: Clue | None = None
    chain: Clue | None = None
    loose: Clue | None = None
    fatal: bool = False
    bare_end: int = 0  # ordinary lines that may still follow an uncaught exception before it counts as survived
    ready: bool = False
    stopping: bool = False
    ended_itself: bool = False  # SGLang said that it kills its own processes
    mode: str = ""  # "" | "trace" | "tail"
    context: int = 0  # weight of an unexplained exception in this traceback
    bare: bool = False
    chained: str = ""  # "" | "during" | "cause": how the next traceback hangs on this one
    tail: int = 0
    frame: str = ""
    where: str = ""


EMPTY = Trace()

_HIT = 28  # an unexplained exception under "… hit an exception"
_BARE = 24  # one in a bare traceback
_WARMUP = 20  # one that the warm-up request met

_FOREIGN = re.compile(
    r"(?:\((?:[^()]{1,80})\) |[\w.-]{1,60} +\| |(?:INFO|WARNING|ERROR|CRITICAL|DEBUG) [\d-]+ [\d:.,]+ \S{1,80}\] |"
    r"\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)? (?:(?:stdout|stderr) [FP] )?(?:- \S{1,80} - [A-Z]+ - |\[?[A-Z]{4,8}\]? (?:\S{1,80}: )?)?|"
    r"[A-Z][a-z]{2} [ \d]?\d(?:, \d{4} @)? [\d:.]+\s+|\[[\d /:.,TZ+-]{8,40}\] ?|\*\*)"
)
_TRACEBACK = "Traceback (most recent call last)"
_HEADER = re.compile(r"^(?P<who>.{0,160}?)" + re.escape(_TRACEBACK))
_HIT_HEADER = re.compile(r"\b\w+ hit an exception: *$")
_IGNORED_HEADER = re.compile(
    r"Exception in ASGI|Exception ignored|Exception in thread|Exception in callback|never retrieved|Ignore |[Ww]arning|fall(?:ing)? ?back|"
    r"\[http_server\]|telemetry|retry|Logging error|Task exception|Exception in daemon"
)
_EXCEPTION = re.compile(
    r"^(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*)(?:: (?P<text>.*)| *|:)$",
    re.DOTALL,
)
_EXCEPTION_NAME = re.compile(
    r"(?:Error|Exception|Exit|Interrupt|Warning|Timeout|Failure|Empty|Full|OutOfResources|Unsupported|Refused|Mismatch|Invalid\w*|NotFound)$"
)
_FRAME = re.compile(r'^\s*File "(?P<path>[^"]{1,400})", line \d+')
_DURING = "During handling of the above exception"
_DIRECT = "The above exception was the direct cause"
_PLACES = (
    ("graph", re.compile(r"graph_runner|cuda_graph|graph_capture")),
    (
        "load",
        re.compile(
            r"model_loader|load_model|memory_pool|kv_cache_config|pool_config|memory_pool_host|pool_host|model_executor/model_runner"
        ),
    ),
    (
        "run",
        re.compile(
            r"event_loop|forward_batch|schedule_batch|tp_worker_overlap|layers/attention|sampler|logits_processor"
        ),
    ),
)
_TRIGGER = re.compile(
    r"Traceback|rror|xception|atal|sigquit|SIGQUIT|SIGTERM|Killed|killed|oom|OOM|memory|imeout|dead|died|crashed|terminate|Segfault|Segmentation|"
    r"Aborted|Bus error|ended|exited|[Ee]xit code|kill_process_tree|ready to roll|Gracefully|Shutting down|CUresult|is (?:already )?in use|ProcessGroup|Illegal"
)
_FALSE_ALARM = re.compile(
    r"^(?:server_args=|launch_command|Ignore |Receive: |Finish: |Generate request|Receive(?:d)? request|\[http_server\] Error|Error: |"
    r"Decode out of memory happened|KV cache pool is full|Not enough host memory for request|Using custom SIGQUIT handler|"
    r"Health check failed|You are using a model of type|resource_tracker|nanobind|port \S+ is in use\. Waiting|retry\(\)|"
    r"Pyspy failed|OpenAI Responses API|load snapshot writer|Watchdog \S+ initialized|retract_decode|Testing retraction|"
    r"\S+\.py:\d+: \w*Warning: |Input length|The request is aborted|Prefetch operation|Write page to storage|INFO: )"
)
_SURVIVED = re.compile(
    r"[Ff]all(?:ing|s)? ?back|will use|instead\.|retrying|[Dd]isabl(?:ed|ing)|skipp(?:ed|ing)|[Ii]gnor(?:ed|ing)|Failed to import from"
)
_OWN_END = re.compile(r"^kill_process_tree called: .{0,80}include_parent=True")
_STOPPING = re.compile(r"^(?:SIGTERM received\. signum|Gracefully exiting|INFO: +Shutting down|Shutting down)")


def observe(trace: Trace, line: LogLine) -> Trace:
    """``trace`` after one more line. Total: any line, no exception; a line that says nothing costs one search."""
    message = line.message[:TEXT_CAP]
    if trace.mode:
        return _inside(trace, line, message)
    if _TRIGGER.search(message) is None:
        return _calm(trace, line) if trace.bare_end else trace
    return _outside(trace, line, message)


def _calm(trace: Trace, line: LogLine) -> Trace:
    """Ordinary lines after an uncaught exception: the process lives on, so it was no end."""
    if not line.prefixed:
        return trace
    left = trace.bare_end - 1
    return replace(trace, bare_end=left, fatal=trace.fatal and left > 0) if left else replace(trace, bare_end=0)


def _inside(trace: Trace, line: LogLine, message: str) -> Trace:
    """A line while a traceback, or the text of its exception, is being read."""
    if line.prefixed and not line.message.startswith(" "):
        # A record of another process, or the end of this one. Frames may carry the record's prefix on each line.
        if _TRACEBACK in message or _TRIGGER.search(message):
            candidate = unwrap(message)
            if trace.mode == "trace" and _is_exception(candidate):
                return _exception(trace, line, candidate)
            return _outside(_settle_if_tail(trace), line, message)
        return _settle_if_tail(trace)
    text = message if message[:1] in " \t" else unwrap(message)
    if _TRACEBACK in text:
        return _outside(trace, line, text)
    if text.startswith((_DURING, _DIRECT)):
        return replace(trace, chained="during" if text.startswith(_DURING) else "cause")
    if trace.mode == "trace":
        return _frame_or_exception(trace, line, text)
    return _tail(trace, line, text)


def _frame_or_exception(trace: Trace, line: LogLine, text: str) -> Trace:
    frame = _FRAME.match(text)
    if frame is not None:
        path = frame["path"]
        place = next((name for name, pattern in _PLACES if pattern.search(path)), trace.where)
        # The graph runner is outermost: a forward inside a capture is still the capture.
        if trace.where == "graph":
            place = "graph"
        return replace(trace, frame=path.rpartition("/")[2][:80], where=place)
    if text[:1] in " \t" or not _is_exception(text):
        return trace
    return _exception(trace, line, text)


def _is_exception(text: str) -> bool:
    found = _EXCEPTION.match(text)
    if found is None:
        return False
    name = found["name"]
    return "." in name or found["text"] is not None or _EXCEPTION_NAME.search(name) is not None


def _exception(trace: Trace, line: LogLine, text: str) -> Trace:
    """The exception that ends a traceback: the clue of its chain is the better of what came before and this."""
    if trace.context == 0:
        return replace(trace, mode="tail", tail=TAIL_LINES, chained="")
    new = _clue_of(trace, line, text)
    chain = new if not trace.chained or trace.chain is None else _of_chain(trace.chain, new, trace.chained)
    bare_end = 4 if trace.bare and not trace.ready and new is not None and new.weight > SYMPTOM else trace.bare_end
    fatal = trace.fatal or (trace.bare and not trace.ready)
    return replace(trace, chain=chain, mode="tail", tail=TAIL_LINES, chained="", bare_end=bare_end, fatal=fatal)


def _clue_of(trace: Trace, line: LogLine, text: str) -> Clue:
    raw = _raw(line)
    if NOISE.search(text):
        return Clue(raw, line.number, text, FailureKind.CHILD_DIED, None, 3, trace.frame, trace.where)
    row = match(text, EXCEPTIONS)
    if row is not None:
        weight = min(row.weight, row.weight - (_HIT - trace.context) // 2)
        return Clue(raw, line.number, text, row.kind, row.explanation, weight, trace.frame, trace.where)
    loose = trace.loose
    if loose is not None and line.number - loose.number <= NEAR:
        return replace(loose, weight=trace.context, frame=trace.frame, where=trace.where)
    kind = None if not trace.bare else FailureKind.OTHER
    return Clue(raw, line.number, text, kind, None, trace.context, trace.frame, trace.where)


def _of_chain(old: Clue, new: Clue, how: str) -> Clue:
    """Which of two chained exceptions explains more: the later, which usually repeats the earlier and says where,
    unless only the earlier is known, or the later is a slip of the code that handled the earlier."""
    if new.explanation is None and old.explanation is not None and old.weight > SYMPTOM:
        return old
    if (
        new.explanation is None
        and old.explanation is None
        and old.weight >= new.weight
        and how == "during"
        and CLUMSY.match(new.text)
    ):
        return old
    if new.weight < old.weight and old.weight > SYMPTOM:
        return old
    return replace(new, where=new.where or old.where) if new.where != "graph" and old.where == "graph" else new


def _tail(trace: Trace, line: LogLine, text: str) -> Trace:
    """A line of an exception's text: compilers and loaders name the real reason there."""
    if trace.tail <= 0:
        return _settle(trace)
    trace = replace(trace, tail=trace.tail - 1)
    chain = trace.chain
    if chain is None or _TRIGGER.search(text) is None:
        return trace
    row = match(text, TAILS)
    if row is not None and _refines(chain, row.kind, row.weight):
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


def _refines(chain: Clue, kind: FailureKind | None, weight: int) -> bool:
    """Whether a line of the text says more than the exception: the exception says nothing, or the same less exactly."""
    if chain.explanation is None:
        return True
    if kind is chain.kind:
        return kind in (FailureKind.KERNEL_COMPILE, FailureKind.IMPORT_ERROR) and (
            weight > chain.weight or chain.text.rstrip().endswith(":")
        )
    return False


def _settle(trace: Trace) -> Trace:
    """The chain is complete: keep it if it beats what is known."""
    return replace(trace, best=_better(trace.best, trace.chain), chain=None, mode="", chained="", frame="", where="")


def _settle_if_tail(trace: Trace) -> Trace:
    return _settle(trace) if trace.mode == "tail" and not trace.chained else trace


def _better(old: Clue | None, new: Clue | None) -> Clue | None:
    """The heavier clue, and of equals the earlier."""
    if old is None or new is None:
        return old or new
    return new if new.weight > old.weight else old


def _outside(trace: Trace, line: LogLine, message: str) -> Trace:
    """A line with a word that may matter, outside of tracebacks (or the header of one)."""
    text = unwrap(message)
    if text.startswith("INFO:"):
        return replace(trace, stopping=True) if _STOPPING.match(text) else trace
    header = _HEADER.match(text)
    if header is not None:
        return _begin(trace, header["who"], line.prefixed)
    if _FALSE_ALARM.match(text):
        return trace
    if "ready to roll" in text:
        return replace(trace, ready=True, bare_end=0)
    if _STOPPING.match(text):
        return replace(trace, stopping=True)
    if _OWN_END.match(text):
        return replace(trace, ended_itself=True)
    return _record(trace, line, text)


def _begin(trace: Trace, who: str, prefixed: bool) -> Trace:
    """The header of a traceback."""
    if not trace.chained:
        trace = _settle(trace)
    context, bare = _BARE, True
    if _HIT_HEADER.search(who):
        context, bare = _HIT, False
    elif "warmup error" in who:
        context, bare = _WARMUP, False
    elif _IGNORED_HEADER.search(who):
        context, bare = 0, False
    elif trace.chained:
        context, bare = trace.context, trace.bare
    fatal = trace.fatal or (context > 0 and not bare)
    return replace(
        trace,
        mode="trace",
        context=context,
        bare=bare,
        fatal=fatal,
        frame="",
        where=trace.where if trace.chained else "",
    )


def _record(trace: Trace, line: LogLine, text: str) -> Trace:
    """A log record that may be a clue by itself."""
    row = match(text, STARTS)
    if row is not None and not (row.places & row.places.LOOSE and row.kind is None):
        clue = Clue(_raw(line), line.number, text, row.kind, row.explanation, row.weight)
        if row.weight <= SYMPTOM and (trace.stopping or (trace.ended_itself and "Killed" in text)):
            return trace
        return replace(trace, best=_better(trace.best, clue), fatal=trace.fatal or row.fatal)
    row = match(text, LOOSE)
    if row is not None and _SURVIVED.search(text) is None:
        clue = Clue(_raw(line), line.number, text, row.kind, row.explanation, row.weight)
        if trace.loose is None or line.number - trace.loose.number > NEAR:
            return replace(trace, loose=clue)
    return trace


def unwrap(message: str) -> str:
    """``message`` without foreign prefixes that are left on it (Ray, compose, loggers, log shippers)."""
    for _ in range(4):
        found = _FOREIGN.match(message)
        if found is None or found.end() == 0:
            break
        message = message[found.end() :]
    return message


def _raw(line: LogLine) -> str:
    return line.raw[: LINE_CAP * 4].decode("utf-8", "replace")[:LINE_CAP]


def clue(trace: Trace) -> Clue | None:
    """The line that explains most of what has been seen."""
    return _better(trace.best, trace.chain)
