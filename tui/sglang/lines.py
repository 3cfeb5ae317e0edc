"""Bytes → lines → what stands before the message: container wrappers, SGLang's own prefix, ranks.

Total: any bytes in, never an exception, nothing unbounded kept.
"""

from __future__ import annotations

import calendar
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

LINE_CAP = 64 * 1024  # bytes of a line, or of one segment of a progress bar, that are kept

ANSI = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[@-Z\\^_])")
_RANK = r"(?:ATTN_CP|MOE_DP|DP|PP|TP|EP)\d{1,6}"
_PREFIX = re.compile(
    r"\[(?P<time>(?:(?:\d{4}-)?\d{2}-\d{2}[ T])?\d{2}:\d{2}:\d{2})(?:[.,](?P<ms>\d{3}))?"
    r"(?P<words>(?: [\w.]{1,64}(?:\[\d{1,6}\])?){0,8})\] ?"
)
_SHIPPED = re.compile(r"(?:^|\s)(?P<words>(?:" + _RANK + r" ){0,8}" + _RANK + r")\] ")  # a shipper ate the head
_RANKS = re.compile(r"\b" + _RANK + r"\b")
_STAMP = re.compile(r"(?P<time>\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2})")
_LEVEL = r"(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)"
_WRAPPER = re.compile(
    r"(?:"
    r"\((?:[\w:.]{1,80} )?pid=\d+[^)]{0,80}\) ?"  # Ray
    r"|[\w./-]{1,80} {0,40}\| "  # docker compose
    r"|\d{4}-\d\d-\d\dT[\d:.,]{8,24}(?:Z|[+-]\d\d:?\d\d) \S{1,64} [\w.@/-]{1,64}\[\d{1,8}\]: "  # journald, iso
    r"|\d{4}-\d\d-\d\d[T ][\d:.,]{8,24}(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?"  # CRI, kubectl --timestamps
    r"|\[\d{4}-\d\d-\d\dT[\d:.]{8,24}Z?\] "
    r"|\{\w{1,60}=[^{}]{0,400}\} {1,4}"  # the labels that logcli prints
    r"|\[pod/[^\]\s]{1,200}\] "  # kubectl logs --prefix
    r"|\[default\d{1,4}\]:|\[\d{1,4},\d{1,4}\]<std(?:out|err)>: {0,1}|\d{1,4}: "  # torchrun, mpirun, srun
    r"|[A-Z][a-z]{2} {1,2}\d{1,2}, \d{4} @ [\d:.]{8,16}\s{1,8}"  # Kibana
    r"|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \S{1,64} [\w.@/-]{1,64}(?:\[\d{1,8}\])?: "  # journald, syslog
    r"|" + _LEVEL + r" \d\d-\d\d [\d:]{8,12} \[?[\w./]{1,80}:\d{1,6}\] "  # vLLM's logger
    r"|- ?[\w.]{1,80} ?- ?" + _LEVEL + r" ?- ?"
    r"|- (?=\[)|"
    r"(?:\[" + _LEVEL + r"\] |" + _LEVEL + r" )(?:[\w.]{1,120}(?::\d{1,6})?: )?"
    r")"
)
_LOGGER = re.compile(  # before SGLang has set up its logging; and how it named ranks before 0.3.2
    _LEVEL + r" [\w./]{1,80}:\d{1,6}: |\[gpu(?:_id)?=\d{1,4}\] "
)
# What SGLang's messages begin with, sought in lines whose format nobody knows
_HEAD = re.compile(
    r"(?:(?:Decode|Prefill) batch[.,\[ ]|Load weight (?:begin|end)|(?:[\w-]{1,20} )?KV Cache is allocated|"
    r"Mamba Cache is allocated|Memory pool end|Capture [\w -]{1,60}graph (?:begin|end)|Allocating [\d.]{1,12} GB host|"
    r"Allocating \w{1,20} hierarchical|(?<![\w.(])max_total_num_tokens=|"
    r"Init (?:torch distributed|parallel) (?:begin|ends)|"
    r"server_args=|The server is fired up)"
)
# Two processes wrote at once, and only one newline came
_GLUED = re.compile(r"(?<=[^\s\[(:='\"])(?=\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})?(?: [\w.]{1,64}){0,8}\] )")
GLUED_CAP, MOST_GLUED = 8192, 16  # characters of a line in which glued records are sought, and how many
_BAR_END = ("it/s]", "s/it]", "B/s]")


@dataclass(frozen=True, slots=True)
class Line:
    """One message of a log.

    ``number`` counts from 1 over newlines; ``raw`` is the whole line without its end, capped; ``message`` is what is
    left of it, or of one ``\\r`` segment of it, after wrappers and prefix. ``prefixed``: it begins a log record.
    ``time`` is in seconds of the host's local clock.
    """

    number: int
    raw: bytes
    message: str
    ranks: str = ""
    prefixed: bool = False
    time: float | None = None


def parse(number: int, raw: bytes, segment: bytes) -> tuple[Line, ...]:
    """The messages of one segment of line ``raw``: usually one; a record glued behind a progress bar is a second."""
    segment = segment[:LINE_CAP]
    if b"\x1b" in segment:
        segment = ANSI.sub(b"", segment)
    text = segment.decode("utf-8", "replace").rstrip()
    if text.startswith("{"):
        text = _of_json(text)
    if text.count("[20", 1):
        records = _GLUED.split(text[:GLUED_CAP], maxsplit=MOST_GLUED)
        if len(records) > 1:
            records[-1] += text[GLUED_CAP:]
            return tuple(line for record in records for line in _lines(number, raw, record))
    return _lines(number, raw, text)


def _lines(number: int, raw: bytes, text: str) -> tuple[Line, ...]:
    found = _PREFIX.search(text, 0, 4096)
    if found is None:
        return (_unprefixed(number, raw, text),)
    before = text[: found.start()]
    message = text[found.end() :]
    logger = _LOGGER.match(message)
    if logger:
        message = message[logger.end() :]
    ranks = ranks_in(found["words"])
    line = Line(number, raw, message, ranks, True, local_seconds(found["time"], found["ms"]))
    if before.rstrip().endswith(_BAR_END) or "%|" in before:
        return _unprefixed(number, raw, before), line
    if len(before) > 300:
        return (_unprefixed(number, raw, text),)
    return (line,)


def _of_json(text: str) -> str:
    """The message inside a line of a JSON log (docker's json-file, a custom formatter)."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for key in ("log", "message", "msg", "MESSAGE", "body", "line", "event", "textPayload"):
        if isinstance(record, dict) and isinstance(record.get(key), str):
            stamp = record.get("asctime") or record.get("timestamp") or record.get("time")
            message = str(record[key]).rstrip()
            return f"{stamp} {message}" if isinstance(stamp, str) and _STAMP.match(stamp) else message
    return text


def _unprefixed(number: int, raw: bytes, text: str) -> Line:
    stamp = _STAMP.search(text, 0, 80)
    seconds = local_seconds(stamp["time"], None) if stamp else None
    shipped = _SHIPPED.search(text, 0, 512)
    if shipped:
        return Line(number, raw, text[shipped.end() :], shipped["words"], True, seconds)
    start = 0
    for _ in range(4):
        wrapper = _WRAPPER.match(text, start)
        if wrapper is None or wrapper.end() == start:
            break
        start = wrapper.end()
    message = text[start:]
    head = _HEAD.search(message, 0, 240)
    if head is None:
        return Line(number, raw, message, "", False, seconds)
    ranks = ranks_in(message[: head.start()])
    return Line(number, raw, message[head.start() :], ranks, True, seconds)


def ranks_in(words: str) -> str:
    """The ranks in the words of a prefix, as printed."""
    return " ".join(_RANKS.findall(words))


@lru_cache(maxsize=1024)
def local_seconds(stamp: str, milliseconds: str | None = None) -> float | None:
    """``YYYY-mm-dd HH:MM:SS`` as seconds of the local clock; ``None`` for a time that is none, or has no year."""
    if len(stamp) != 19:
        return None
    fields = [int(stamp[a:b]) for a, b in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19))]
    if not (fields[0] >= 1970 and 1 <= fields[1] <= 12 and 1 <= fields[2] <= 31):
        return None
    seconds = float(calendar.timegm((*fields, 0, 0, 0)))
    return seconds + int(milliseconds) / 1000 if milliseconds else seconds


def seconds_of(stamps: Iterable[bytes]) -> dict[bytes, float] | None:
    """The same of many ``[YYYY-mm-dd HH:MM:SS`` in a log; ``None`` when one of them is no time."""
    minutes = {stamp: minute for stamp in {stamp[1:18] for stamp in stamps} if (minute := _minute(stamp)) is not None}
    try:
        return {stamp: minutes[stamp[1:18]] + _SECONDS[stamp[18:]] for stamp in stamps}
    except KeyError:
        return None


@lru_cache(maxsize=64)
def _minute(stamp: bytes) -> float | None:
    plain = _MINUTE.fullmatch(stamp.decode("ascii", "replace"))
    return local_seconds(plain[0] + "00") if plain else None


_MINUTE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:")
_SECONDS = {b"%02d" % second: float(second) for second in range(60)}


def natural(rank: str) -> tuple[tuple[str, int], ...]:
    """A key that sorts ``TP2`` before ``TP10``."""
    return tuple((name, int(number)) for name, number in re.findall(r"([A-Z_]+)(\d+)", rank))
