"""Bytes → lines → what stands before the message: container wrappers, SGLang's own prefix, ranks.

Total: any bytes in, never an exception, nothing unbounded kept.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from functools import lru_cache

LINE_CAP = 16 * 1024  # bytes of a line that are kept; the rest is dropped as it comes

ANSI = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_RANK = r"(?:ATTN_CP|MOE_DP|DP|PP|TP|EP)\d+"
PREFIX = re.compile(
    r"\[(?P<time>\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2})(?:[.,](?P<ms>\d{3}))?"
    r"(?P<ranks>(?: (?:[A-Za-z_.]+|" + _RANK + r")(?:\[\d+\])?)*)\] ?"
)
_SHIPPED = re.compile(
    r"(?:^|\s)(?P<ranks>(?:" + _RANK + r" )*" + _RANK + r")\] "
)  # a log shipper ate the bracket's head
_RANKS = re.compile(_RANK)
_BARE_TIME = re.compile(r"(?P<time>\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2})")
_WRAPPER = re.compile(
    r"(?:"
    r"\((?:[A-Za-z_:.]+ )?pid=\d+[^)]*\) ?"  # Ray
    r"|[\w./-]{1,64}\s*\| "  # docker compose
    r"|\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?"  # CRI, kubectl --timestamps
    r"|\[\d{4}-\d\d-\d\dT[\d:.]+Z?\] "
    r"|[A-Z][a-z]{2} +\d{1,2}, \d{4} @ [\d:.]+\s+"  # Kibana
    r"|(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d [\d:]+ [\w.]+:\d+\] "  # vLLM's logger
    r"|- ?[\w.]+ ?- ?(?:DEBUG|INFO|WARNING|ERROR) ?- ?"
    r"|(?:\[?(?:DEBUG|INFO|WARNING|ERROR)\]? )(?:[\w.]+(?::\d+)?: )?"
    r")"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One message of a log. ``number`` counts from 1 over newlines; ``raw`` is the whole line, without its end;
    ``message`` is what is left of it, or of one ``\\r`` segment of it, after wrappers and prefix. ``time`` is in
    seconds of the host's local clock."""

    number: int
    raw: bytes
    message: str
    ranks: str = ""
    prefixed: bool = False
    time: float | None = None


def messages(number: int, raw: bytes) -> list[Line]:
    """The messages of one line: one per ``\\r`` segment, a record glued behind a progress bar standing alone."""
    if b"\r" not in raw:
        return _parted(number, raw, raw)
    return [line for part in raw.split(b"\r") if part.strip() for line in _parted(number, raw, part)]


def _parted(number: int, raw: bytes, part: bytes) -> list[Line]:
    if b"\x1b" in part:
        part = ANSI.sub(b"", part)
    text = part.decode("utf-8", "replace")
    found = PREFIX.search(text, 0, 2048)
    if found is None:
        return [_unprefixed(number, raw, text)]
    line = Line(
        number,
        raw,
        text[found.end() :],
        " ".join(_RANKS.findall(found["ranks"])),
        True,
        local_seconds(found["time"], found["ms"]),
    )
    before = text[: found.start()]
    if "it/s]" in before or "s/it]" in before:  # a bar that this record was glued to
        return [_unprefixed(number, raw, before), line]
    return [line]


def _unprefixed(number: int, raw: bytes, text: str) -> Line:
    shipped = _SHIPPED.search(text, 0, 512)
    time = _BARE_TIME.search(text, 0, 64)
    seconds = local_seconds(time["time"], None) if time else None
    if shipped:
        return Line(number, raw, text[shipped.end() :], shipped["ranks"], True, seconds)
    start = 0
    for _ in range(4):
        wrapper = _WRAPPER.match(text, start)
        if wrapper is None or wrapper.end() == start:
            break
        start = wrapper.end()
    return Line(number, raw, text[start:], "", False, seconds)


@lru_cache(maxsize=4096)
def local_seconds(stamp: str, milliseconds: str | None) -> float | None:
    """``YYYY-mm-dd HH:MM:SS`` as seconds of the local clock; ``None`` for a time that does not exist."""
    try:
        fields = [int(stamp[a:b]) for a, b in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19))]
        if not (1 <= fields[1] <= 12 and 1 <= fields[2] <= 31):
            return None
        seconds = float(calendar.timegm((*fields, 0, 0, 0)))
    except (ValueError, OverflowError):
        return None
    return seconds + int(milliseconds) / 1000 if milliseconds else seconds


class Splitter:
    """Chunks → whole lines. Keeps at most ``LINE_CAP`` bytes of a line that has not ended."""

    def __init__(self) -> None:
        self._tail = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in ``chunk``, without their ends."""
        lines = (self._tail + chunk).split(b"\n")
        self._tail = lines.pop()[:LINE_CAP]
        return lines

    @property
    def tail(self) -> bytes:
        """What stands behind the last newline."""
        return self._tail
