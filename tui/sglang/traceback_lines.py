"""One traceback, line by line: how it begins, its frames, and the exception that ends it.

The exception looks like nothing special by itself, and the text may come with foreign prefixes on each line or without
its indent.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tui.sglang.clue import Clue, of_chain
from tui.sglang.failure_row import FAINT, match
from tui.sglang.failure_table import EXCEPTIONS, NOISE, WARMUP
from tui.sglang.model import FailureKind
from tui.sglang.trace_state import LogLine, Trace, raw_line, settle

TRACE_LINES = 400  # lines that a traceback may have
TAIL_LINES = 200  # lines after an exception that may belong to its text
NEAR = 60  # lines between an ordinary line and the exception that it explains

HIT = 28  # an unexplained exception under "… hit an exception"
_BARE = 24  # one in a bare traceback
_WARMUP = 20  # one that the warm-up request met
LOGGED = 12  # one that was caught and logged
HEADLESS = FAINT - 1  # one whose traceback is not in the log
_ALONE = "A process that this one talks to is gone, or closed the connection; its own error is not in this log."
# The forward thread of old releases has no handler: nobody ends the server then, yet it serves no more
_HIT_HEADER = re.compile(r"\b\w+ hit an exception: *$|^Exception in thread .{0,60}forward_thread")
_WARMUP_HEADER = re.compile(r"warmup error|warmup failed; aborting")  # the latter of image and video servers
IGNORED_HEADER = re.compile(
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
FRAME = re.compile(r'^\s*File "(?P<path>[^"]{1,400})", line \d+, in ')
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


def begin(trace: Trace, who: str, logged: bool) -> Trace:
    """The header of a traceback; ``who`` is what stands before it in its line."""
    if trace.chained:
        return replace(trace, mode="trace", left=TRACE_LINES, frame="")
    trace = settle(trace)
    context, bare = (LOGGED if logged else _BARE), True
    if _HIT_HEADER.search(who):
        context, bare = HIT, False
    elif _WARMUP_HEADER.search(who):
        context, bare = _WARMUP, False
    elif IGNORED_HEADER.search(who):
        context, bare = 0, False
    fatal = trace.fatal or (context > 0 and not bare)
    return replace(trace, mode="trace", left=TRACE_LINES, context=context, bare=bare, fatal=fatal)


def frame_or_exception(trace: Trace, line: LogLine, text: str) -> Trace:
    """A line of a traceback: where it went, or how it ends."""
    frame = FRAME.match(text)
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
    if text[:1] in " \t" or not is_exception(text):
        return trace
    return exception(trace, line, text)


def is_exception(text: str) -> bool:
    """Whether this is how a traceback ends. Exceptions that are not Python's own carry their module's name."""
    found = _EXCEPTION.match(text)
    return found is not None and ("." in found["name"] or _EXCEPTION_NAME.search(found["name"]) is not None)


def exception(trace: Trace, line: LogLine, text: str) -> Trace:
    """The exception that ends a traceback: the clue of its chain is the better of what came before and this."""
    if trace.context == 0 or "openai_harmony" in text:
        return replace(trace, mode="tail", left=TAIL_LINES, chained="")
    new = _clue_of(trace, line, text)
    chain = new if not trace.chained or trace.chain is None else of_chain(trace.chain, new, trace.chained)
    ends = trace.bare and not trace.ready and trace.context > LOGGED and not text.startswith("KeyboardInterrupt")
    return replace(trace, chain=chain, mode="tail", left=TAIL_LINES, chained="", bare_end=4 if ends else trace.bare_end)


def _clue_of(trace: Trace, line: LogLine, text: str) -> Clue:
    raw = raw_line(line)
    if NOISE.search(text) and trace.context == HIT:  # noise beside another failure, the cause where it is alone
        row = match(text, EXCEPTIONS)
        kind, explanation = (row.kind, row.explanation) if row else (FailureKind.SCHEDULER_EXCEPTION, _ALONE)
        return Clue(raw, line.number, text, kind, explanation, FAINT, trace.frame, trace.where)
    if NOISE.search(text):
        return Clue(raw, line.number, text, FailureKind.CHILD_DIED, None, 3, trace.frame, trace.where, trace.bare)
    if trace.context == _WARMUP:
        return Clue(raw, line.number, text, FailureKind.OTHER, WARMUP, _WARMUP, trace.frame, trace.where)
    row = match(text, EXCEPTIONS)
    if row is not None:
        weight = min(row.weight, row.weight - (HIT - trace.context) // 2)
        return Clue(raw, line.number, text, row.kind, row.explanation, weight, trace.frame, trace.where, trace.bare)
    loose = trace.loose
    if loose is not None and line.number - loose.number <= NEAR:
        return replace(loose, weight=trace.context, frame=trace.frame, where=trace.where)
    kind = None if not trace.bare else FailureKind.OTHER
    return Clue(raw, line.number, text, kind, None, trace.context, trace.frame, trace.where, trace.bare)
