"""Lines of a log → the ``Trace`` of what may explain a failure: ``observe(trace, line) -> trace``."""

from __future__ import annotations

import re
from dataclasses import replace

from tui.sglang.clue import Clue, better, refines
from tui.sglang.failure_row import SYMPTOM, Place, match
from tui.sglang.failure_table import EXCEPTIONS, LOOSE, NOISE, STARTS, TAILS
from tui.sglang.model import FailureKind
from tui.sglang.trace_state import EMPTY, LogLine, Trace, raw_line, settle, settle_if_tail, spend
from tui.sglang.traceback_lines import (
    FRAME,
    HEADLESS,
    HIT,
    IGNORED_HEADER,
    LOGGED,
    NEAR,
    begin,
    exception,
    frame_or_exception,
    is_exception,
)
from tui.sglang.unwrap import unwrap

__all__ = ["EMPTY", "Trace", "clue", "is_fatal", "observe"]

TEXT_CAP = 2_000  # characters in which words are sought

_BEHEADED = "A process of the server hit this exception; its traceback is not in this log."
_CUT = "A process of the server hit an exception; what it was is not in this log."
_TRACEBACK = "Traceback (most recent call last)"
_HEADER = re.compile(r"^(?P<who>.{0,160}?)" + re.escape(_TRACEBACK))
_DURING = "During handling of the above exception"
_DIRECT = "The above exception was the direct cause"
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
    trace = settle_if_tail(trace)
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
    trace = settle_if_tail(trace)
    best = trace.best
    if best is not None and best.bare:
        best = replace(best, weight=min(best.weight, LOGGED))
    return replace(trace, best=best, bare_end=0)


def _inside(trace: Trace, line: LogLine, message: str) -> Trace:
    """A line while a traceback, or the text of its exception, is being read."""
    if line.prefixed and not line.message.startswith(" "):
        # A record of another process, or the end of this one. Frames may carry the record's prefix on each line.
        if trace.mode == "trace":
            # An exception whose text looks like a record of its own counts as what it is.
            for text in (unwrap(message), unwrap(raw_line(line)[:TEXT_CAP])):
                if is_exception(text):
                    return exception(trace, line, text)
        if _TRACEBACK in message or _TRIGGER.search(message):
            return _outside(settle_if_tail(trace), line, message)
        left = trace.left - 5
        return settle_if_tail(trace) if left > 0 and trace.mode == "tail" else spend(trace, 5)
    text = message if message[:1] in " \t" else unwrap(message)
    if _TRACEBACK in text:
        return _outside(trace, line, text)
    if text.startswith((_DURING, _DIRECT)):
        return replace(trace, chained="during" if text.startswith(_DURING) else "cause")
    if trace.mode == "trace":
        return frame_or_exception(spend(trace, 1), line, text)
    return _tail(spend(trace, 1), line, text)


def _tail(trace: Trace, line: LogLine, text: str) -> Trace:
    """A line of an exception's text: compilers and loaders name the real reason there."""
    chain = trace.chain
    if chain is None or _TRIGGER.search(text) is None:
        return trace
    row = match(text, TAILS)
    if row is not None and refines(chain, row.kind, row.weight):
        clue = replace(
            chain,
            line=raw_line(line),
            number=line.number,
            text=text,
            kind=row.kind,
            explanation=row.explanation,
            weight=row.weight,
        )
        return replace(trace, chain=clue)
    if row is None and match(text, STARTS) is not None:
        return _outside(settle(trace), line, text)
    return trace


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
        begun = begin(trace, trace.announcement if logged else header["who"], logged)
        return replace(begun, best=better(begun.best, _header(line, text))) if begun.context == HIT else begun
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
    if FRAME.match(message) and not line.prefixed:  # a log that was cut: the head of this traceback is not there
        return frame_or_exception(begin(trace, "", logged=False), line, message)
    return _record(trace, line, text)


def _header(line: LogLine, text: str) -> Clue:
    """All that is known where the log ends before the exception does."""
    return Clue(raw_line(line), line.number, text, FailureKind.SCHEDULER_EXCEPTION, _CUT, HEADLESS - 1)


def _record(trace: Trace, line: LogLine, text: str) -> Trace:
    """A log record that may be a clue by itself."""
    row = match(text, STARTS)
    if row is not None and not (Place.LOOSE in row.places and row.kind is None):
        clue = Clue(raw_line(line), line.number, text, row.kind, row.explanation, row.weight)
        if row.weight <= SYMPTOM and (trace.stopping or (trace.ended_itself and "Killed" in text)):
            return trace
        return replace(trace, best=better(trace.best, clue), fatal=trace.fatal or row.fatal)
    if not line.prefixed and is_exception(text) and not NOISE.search(text):
        trace = _headless(trace, line, text)
    row = match(text, LOOSE)
    if row is not None and _SURVIVED.search(text) is None:
        clue = Clue(raw_line(line), line.number, text, row.kind, row.explanation, row.weight)
        if trace.loose is None or line.number - trace.loose.number > NEAR:
            trace = replace(trace, loose=clue)
    return replace(trace, announced=line.number, announcement=text[:200]) if _announces(line, text) else trace


def _headless(trace: Trace, line: LogLine, text: str) -> Trace:
    """An exception without its traceback, in a log that was cut: little, yet more than that something died."""
    row = match(text, EXCEPTIONS)
    kind, explanation = (row.kind, row.explanation) if row else (FailureKind.SCHEDULER_EXCEPTION, _BEHEADED)
    return replace(trace, best=better(trace.best, Clue(raw_line(line), line.number, text, kind, explanation, HEADLESS)))


def _announces(line: LogLine, text: str) -> bool:
    """Whether a traceback in the next line belongs to this record: somebody caught it and goes on."""
    return IGNORED_HEADER.search(text) is not None or (line.prefixed and _ANNOUNCES.search(text) is not None)


def is_fatal(trace: Trace) -> bool:
    """Whether what has been seen ends the server even if its process still lives."""
    return trace.fatal or trace.bare_end > 0


def clue(trace: Trace) -> Clue | None:
    """The line that explains most of what has been seen."""
    return better(trace.best, trace.chain)
