"""``Prefill batch`` and ``Decode batch`` lines → figures per second.

Speed decides the shape: a serving log is almost nothing but these lines. Of all the lines of one second, rank and kind
only the last is taken apart, and that by a regular expression learnt from the first line of its shape.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tui.sglang.lines import PREFIX, local_seconds
from tui.sglang.model import Sample

HEAD = re.compile(rb"(Decode|Prefill) batch(?:\.|,| \[\d+\],)")
_HEAD_REACH = 160  # bytes before the head: container wrappers and SGLang's prefix
_PAIR = re.compile(rb"([#A-Za-z][^:,\[\]\n]*?): *(-?\d+(?:\.\d+)?|nan|inf|True|False)(?=%?(?:,|\s*$|\s))")
_SHAPES = 64
KEEP_SECONDS = 600
IDLE_SECONDS = 5.0  # a decode line after a longer gap averages over the idle time

FIELDS = {
    b"gen throughput (token/s)": "generate",
    b"input throughput (token/s)": "prefill",
    b"#running-req": "running",
    b"#queue-req": "queued",
    b"token usage": "kv",
    b"full token usage": "kv",
    b"gpu token usage": "kv",
    b"mamba usage": "mamba",
    b"swa token usage": "swa",
    b"accept len": "accept_len",
    b"accept rate": "accept_rate",
    b"#new-token": "new",
    b"#cached-token": "cached",
    b"#new-seq": "seqs",
}
_DP = re.compile(rb"\bDP(\d+)\b")


def head(line: bytes) -> int:
    """Where ``Decode batch`` or ``Prefill batch`` ends its first word in ``line``; -1 for other lines."""
    at = line.find(b" batch", 0, _HEAD_REACH)
    if at > 0 and (line[at - 6 : at] == b"Decode" or line[at - 7 : at] == b"Prefill"):
        return at
    return -1


class Shapes:
    """Learns one regular expression per shape of line: literal keys, captured values."""

    def __init__(self) -> None:
        self._known: list[tuple[re.Pattern[bytes], tuple[str, ...]]] = []

    def values(self, tail: bytes) -> dict[str, float]:
        """The wanted fields of a line, given what follows ``batch``."""
        for index, (pattern, names) in enumerate(self._known):
            found = pattern.match(tail)
            if found:
                if index:
                    self._known.insert(0, self._known.pop(index))
                return dict(zip(names, map(float, found.groups()), strict=True))
        self._learn(tail)
        return {FIELDS[k]: float(v) for k, v in _pairs(tail) if k in FIELDS and v not in (b"True", b"False")}

    def _learn(self, tail: bytes) -> None:
        parts, names, at = [], [], 0
        for found in _PAIR.finditer(tail):
            if found[2] in (b"True", b"False", b"nan", b"inf"):
                parts.append(re.escape(tail[at : found.start(2)]) + rb"\w+")
            elif found[1].strip() in FIELDS:
                parts.append(re.escape(tail[at : found.start(2)]) + rb"(-?\d+(?:\.\d+)?)")
                names.append(FIELDS[found[1].strip()])
            else:
                parts.append(re.escape(tail[at : found.start(2)]) + rb"-?\d+(?:\.\d+)?")
            at = found.end(2)
        if parts and len(set(names)) == len(names):
            pattern = re.compile(b"".join(parts) + re.escape(tail[at:]) + rb"$")
            self._known.insert(0, (pattern, tuple(names)))
            del self._known[_SHAPES:]


def _pairs(tail: bytes) -> list[tuple[bytes, bytes]]:
    return [(found[1].strip(), found[2]) for found in _PAIR.finditer(tail)]


@dataclass
class Tick:
    """What one DP rank said in one second: its last decode and prefill values, and how many decode lines."""

    values: dict[str, float] = field(default_factory=dict)
    decodes: int = 0


@dataclass
class Batches:
    """The figures of a server from its batch lines."""

    decodes: int = 0  # decode lines in all
    prefills: int = 0  # prefill lines in all that are no probe's
    last: float | None = None
    _ticks: dict[float, dict[bytes, Tick]] = field(default_factory=dict)
    _latest: dict[bytes, dict[str, float]] = field(default_factory=dict)
    _decoded_at: dict[bytes, list[float]] = field(default_factory=dict)  # the last two seconds with decode lines
    _shapes: Shapes = field(default_factory=Shapes)
    _clock: float = 0.0  # for lines without a time: one second each
    _done: list[Sample] = field(default_factory=list)  # of the seconds before ``_open``
    _decoded_before: dict[bytes, float] = field(default_factory=dict)
    _open: float = float("-inf")

    def read(self, lines: dict[bytes, bytes], counts: dict[bytes, int]) -> None:
        """Take the lines of a chunk: the last one after each text before `` batch``, and how many there were."""
        for prefix, tail in lines.items():
            decode, count = prefix.endswith(b"Decode"), counts[prefix]
            values = self._shapes.values(tail)
            if not decode and values.get("seqs", 0) <= 1 and values.get("new", 0) + values.get("cached", 0) <= 1:
                continue  # a health probe
            self._take(prefix, decode, count, values)

    def _take(self, prefix: bytes, decode: bool, count: int, values: dict[str, float]) -> None:
        second, dp = self._place(prefix)
        if second < self._open:
            self._reopen()
        tick = self._ticks.setdefault(second, {}).setdefault(dp, Tick())
        tick.values.update(values)
        latest = self._latest.setdefault(dp, {})
        latest.update(values)
        self.last = second if self.last is None else max(self.last, second)
        if decode:
            self.decodes += count
            tick.decodes += count
            seen = self._decoded_at.setdefault(dp, [])
            if not seen or seen[-1] != second:
                seen.append(second)
                del seen[:-2]
        else:
            self.prefills += count
        if len(self._ticks) > KEEP_SECONDS + 60:
            for old in sorted(self._ticks)[:-KEEP_SECONDS]:
                del self._ticks[old]

    def _place(self, prefix: bytes) -> tuple[float, bytes]:
        text = prefix.decode("utf-8", "replace")
        found = PREFIX.search(text)
        time = local_seconds(found["time"], None) if found else _any_time(text)
        if time is None:
            self._clock += 1.0
            time = self._clock
        dp = _DP.search(prefix)
        return time, dp[1] if dp else b""

    @property
    def after_idle(self) -> bool:
        """Whether the newest throughput averages over idle time: its decode line came alone after a gap."""
        newest = max(self._decoded_at.items(), key=lambda item: item[1][-1], default=None)
        if newest is None:
            return False
        dp, seen = newest
        gap = len(seen) == 1 or seen[-1] - seen[-2] > IDLE_SECONDS
        return gap and self._ticks.get(seen[-1], {}).get(dp, Tick(decodes=2)).decodes == 1

    def latest(self) -> Sample | None:
        """The newest figures of all DP ranks together."""
        if self.last is None:
            return None
        return _sample(self.last, list(self._latest.values()))

    def series(self) -> tuple[Sample, ...]:
        """One sample per second that had lines, idle-time averages left out, oldest first."""
        fresh = sorted(second for second in self._ticks if second >= self._open)
        for second in fresh:
            if second > self._open:
                self._close(self._open)
                self._open = second
        last = [self._sample_of(fresh[-1], dict(self._decoded_before))] if fresh else []
        return (*self._done, *last)

    def _close(self, second: float) -> None:
        if second in self._ticks:
            self._done.append(self._sample_of(second, self._decoded_before))
            del self._done[:-KEEP_SECONDS]

    def _sample_of(self, second: float, decoded: dict[bytes, float]) -> Sample:
        rows = []
        for dp, tick in self._ticks[second].items():
            values = tick.values
            if tick.decodes:
                if tick.decodes == 1 and second - decoded.get(dp, float("-inf")) > IDLE_SECONDS:
                    values = {k: v for k, v in values.items() if k != "generate"}
                decoded[dp] = second
            rows.append(values)
        return _sample(second, rows)

    def _reopen(self) -> None:
        """A line came late: what was closed is computed anew."""
        self._done, self._decoded_before, self._open = [], {}, float("-inf")


_SUMMED = ("generate", "prefill")
_LARGEST = ("kv", "mamba", "swa", "accept_len", "accept_rate")


def _sample(second: float, rows: list[dict[str, float]]) -> Sample:
    def total(name: str) -> float | None:
        values = [row[name] for row in rows if name in row]
        return round(sum(values), 4) if values else None

    def largest(name: str) -> float | None:
        return max((row[name] for row in rows if name in row), default=None)

    running, queued, new, cached = total("running"), total("queued"), total("new"), total("cached")
    hit = cached / (new + cached) if new is not None and cached is not None and new + cached > 0 else None
    return Sample(
        second,
        **{name: total(name) for name in _SUMMED},
        running=None if running is None else int(running),
        queued=None if queued is None else int(queued),
        **{name: largest(name) for name in _LARGEST},
        cache_hit=hit,
    )


_ANY_TIME = re.compile(r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})")


def _any_time(text: str) -> float | None:
    found = _ANY_TIME.search(text)
    return local_seconds(f"{found[1]} {found[2]}", None) if found else None


__all__ = ["Batches", "Shapes", "head"]
