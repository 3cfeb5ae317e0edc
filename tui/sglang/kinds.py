"""What kind of line a line is: for its colour, for filters, and to tell probes from life. Cheap, on raw bytes."""

from __future__ import annotations

import re
from enum import StrEnum


class LineKind(StrEnum):
    """The kinds that the log view tells apart."""

    PLAIN = "plain"
    BATCH = "batch"
    STAGE = "stage"
    POOL = "pool"
    PROBLEM = "problem"
    PROGRESS = "progress"
    HTTP = "http"
    PROBE = "probe"
    TRACEBACK = "traceback"
    WARNING = "warning"


_PROBE_PATHS = (
    rb"(?:health(?:_generate)?|ready|ping|metrics/?|(?:get_)?server_info|(?:get_)?model_info|v1/loads|get_load|"
    rb"v1/models|freeze_gc)"
)
_PROBE = re.compile(rb'"(?:GET|HEAD|POST) /' + _PROBE_PATHS + rb'(?:\?[^ "]*)? HTTP/')
_ONE_TOKEN = re.compile(rb"Prefill batch.{0,12} #new-seq: 1, #new-token: 1, #cached-token: 0,")
_ACCESS = b" HTTP/"
_ROWS = (
    (re.compile(rb"(?:Decode|Prefill) batch[., \[]"), LineKind.BATCH),
    (re.compile(rb"Traceback \(most recent|^\s+File \"|^\s{2,}\S|^\S*(?:Error|Exception)(?::|$)"), LineKind.TRACEBACK),
    (
        re.compile(
            rb"hit an exception|Not enough (?:host )?memory|out of memory|RuntimeError|ValueError|AssertionError|"
            rb"Received sigquit|SIGQUIT received|Initialization failed|Capture .*graph failed|address already in use|"
            rb"[Ww]atchdog timeout|error: |Fatal Python error|ERROR:|exit ?code|crashed|NCCL WARN|illegal memory"
        ),
        LineKind.PROBLEM,
    ),
    (re.compile(rb"ache is allocated|VA upper bound|Allocating .*host|host memory|KV cache allocated"), LineKind.POOL),
    (
        re.compile(
            rb"Init (?:torch distributed|parallel)|Load weight (?:begin|end)|Memory pool end|Capture .*graph|"
            rb"max_total_num_tokens=|Tree cache initialized|ready to roll|Uvicorn running|server_args=|"
            rb"Started server process|Application startup complete|Engine startup timings"
        ),
        LineKind.STAGE,
    ),
    (re.compile(rb"\d+%(?:\||  ?Completed)"), LineKind.PROGRESS),
    (
        re.compile(rb"[Ww]arning|WARNING|WARN |deprecated|Retract requests|capped to|Health check failed"),
        LineKind.WARNING,
    ),
)
_FALSE_ALARM = re.compile(rb"Ignore import error|server_args=|self\.soft=True|falling back")


def is_access(line: bytes) -> bool:
    """Whether ``line`` is uvicorn's record of a request."""
    return _ACCESS in line and b'- "' in line and b"Error" not in line


def is_probe(line: bytes) -> bool:
    """Whether ``line`` only tells of a probe: a health check or figures that somebody, we too, asked for."""
    if _ACCESS in line:
        return _PROBE.search(line) is not None
    return b"#new-token: 1," in line and _ONE_TOKEN.search(line) is not None


def kind_of(line: bytes) -> LineKind:
    """The kind of a raw line (without its end)."""
    if _ACCESS in line and b'- "' in line:
        return LineKind.PROBE if is_probe(line) else LineKind.HTTP
    for pattern, kind in _ROWS:
        if pattern.search(line, 0, 2000):
            if kind is LineKind.BATCH and is_probe(line):
                return LineKind.PROBE
            if kind in (LineKind.PROBLEM, LineKind.WARNING, LineKind.TRACEBACK) and _FALSE_ALARM.search(line, 0, 400):
                return LineKind.PLAIN
            return kind
    return LineKind.PLAIN
