"""What kind of line it is, for colours and filters: cheap, from the text of one line alone."""

from __future__ import annotations

import re
from enum import StrEnum


class LineKind(StrEnum):
    """The kinds of lines that a log pane tells apart."""

    PLAIN = "plain"
    BATCH = "batch"
    STAGE = "stage"
    CACHE = "cache"
    READY = "ready"
    PROGRESS = "progress"
    ERROR = "error"
    WARNING = "warning"
    TRACEBACK = "traceback"
    HTTP = "http"
    PROBE = "probe"


_PROBE_PATHS = (
    r"(?:/health(?:_generate|z)?|/livez|/readyz|/ping|/ready|/metrics/?|"
    r"/get_model_info|/model_info|/get_server_info|/server_info|/get_load|/v1/loads|/v1/models|"
    r"/get_server_args|/get_memory_pool_size|/)(?:\?[^ \"]{0,200})?"
)
_PROBE = re.compile(
    r'"(?:GET|HEAD|OPTIONS) ' + _PROBE_PATHS + r" HTTP/|"
    r"Prefill batch(?: \[\d+\])?[.,] #new-seq: 1, #new-token: 1, #cached-token: 0, .{0,80}#running-req: 0, |"
    r"Endpoint '" + _PROBE_PATHS + r"' is deprecated"
)
# The first row that is found in a line tells its kind
_ROWS: tuple[tuple[re.Pattern[str], LineKind], ...] = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"(?:Decode|Prefill) batch(?:[.,]| \[)", LineKind.BATCH),
        (r"INFO: {1,5}\S{1,60} - \"[A-Z]+ ", LineKind.HTTP),
        (r"ready to roll!", LineKind.READY),
        (r"server_args=", LineKind.STAGE),
        (r"Ignore import error|Ignore \S+ reports ImportError", LineKind.PLAIN),
        (r"Not enough (?:host )?memory(?! for request)", LineKind.ERROR),
        (
            r"(?:KV|Mamba) Cache (?:is allocated|VA upper|skipped)|KV cache allocated|GB host memory|host pool|"
            r"HiCache |Memory pool end|pool stack|unified-memory-pool|"
            r"max_total_num_tokens=|SWAKVPool|[Ss]liding window memory pool",
            LineKind.CACHE,
        ),
        (
            r"Init (?:torch distributed|parallel)|Load weight |[Cc]apture .{1,80} graph|Started server process|"
            r"Application startup complete|Uvicorn running|Engine startup timings|Tree cache initialized|"
            r"[Ww]armup|SIGTERM received|Gracefully exiting|Shutting down",
            LineKind.STAGE,
        ),
        (
            r"^\s+File \"|Traceback \(most recent|^\s+\^+|^\s{4,}\S|^Thread 0x|most recent call first",
            LineKind.TRACEBACK,
        ),
        (r"\d%[| ]|\d%\x20Completed|it/s\]|s/it\]", LineKind.PROGRESS),
        (
            r"^(?:\S+\.)?[A-Z]\w*(?:Error|Exception)\b|hit an exception|\bERROR\b|^(?:\S+: )?error: |[Ff]atal|"
            r"sigquit|SIGQUIT|out of memory\b(?! happened)|Segmentation fault|crashed with|scheduler is dead|"
            r"^Killed|Initialization failed|Watchdog timeout|watchdog timeout",
            LineKind.ERROR,
        ),
        (r"WARN|[Ww]arning|deprecated|Retract|retract|Health check failed|\bcapped\b|reduced|failed", LineKind.WARNING),
    )
)


def is_probe(line: str | bytes) -> bool:
    """Whether the line was caused by a health check, a scrape, or one of our own GETs: neither life nor load."""
    return _PROBE.search(_text(line)) is not None


def kind_of(line: str | bytes) -> LineKind:
    """The kind of one line (of a bar: of its last segment)."""
    text = _text(line)
    for pattern, kind in _ROWS:
        if pattern.search(text):
            if kind in (LineKind.HTTP, LineKind.BATCH) and _PROBE.search(text):
                return LineKind.PROBE
            return kind
    return LineKind.PLAIN


def _text(line: str | bytes) -> str:
    return line[:2000].decode("utf-8", "replace") if isinstance(line, bytes) else line[:2000]
