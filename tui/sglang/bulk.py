"""Batch and access lines, which are nearly all of a serving log, many at a time.

One regular expression takes a chunk apart into rows. The state shows one figure per second and rank: of the lines of
one kind that a rank prints within a second only the last is kept; the tokens of all prefills are summed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

from tui.sglang.batch import HEALTH_CHECK, is_health_check, tokens
from tui.sglang.kinds import is_probe
from tui.sglang.lines import LINE_CAP, ranks_in, seconds_of
from tui.sglang.replicas import LATE, Batches, dp_rank

# Wrapper, time, milliseconds, ranks with the kind of line, the rest; of any other line only the rest. Bounded and
# possessive, so that a line is looked at once.
_ROW = re.compile(
    rb"(?:((?:\[pod/[^\]\n]{1,200}+\] )?+[^\n\[%{\"\x1b\r]{0,120}+)(\[20[\d-]{8} [\d:]{8})((?:[.,]\d{3})?+)"
    rb"([ \w.]{0,60}+\] (?:(?:Decode|Prefill) batch(?:[.,] | \[)|INFO:(?= {1,6}\S{1,64} - \")))"
    rb")?([^\n]*+)\n"
)
Row = tuple[bytes, bytes, bytes, bytes, bytes]
Times = dict[bytes, float]
Whos = dict[bytes, tuple[str, str, str]]
Key = tuple[bytes, bytes]  # of a row: its time, and its ranks and kind
_DECODE, _PREFILL, _ACCESS = "decode", "prefill", "access"


@lru_cache(maxsize=4096)
def _who(who: bytes) -> tuple[str, str, str]:
    """The kind, the ranks and the DP rank that a row's fourth part tells."""
    kind = _ACCESS if who.endswith(b"INFO:") else _DECODE if b"] Decode" in who else _PREFILL
    ranks = ranks_in(who.decode("latin-1"))
    return kind, ranks, dp_rank(ranks)


def rows(text: bytes) -> list[Row]:
    """Whole lines as rows; ``raw`` puts one together again."""
    if b"\r\n" in text:
        text = text.replace(b"\r\n", b"\n")
    table: list[Row] = _ROW.findall(text)
    stamped = len([row for row in table if row[1]])
    if b"\r" in text or b"\x1b" in text or text.count(b"[20") > stamped:  # bars, colours, glued records
        return [(b"", b"", b"", b"", raw(row)) if _odd(row[4]) else row for row in table]
    return table


def _odd(body: bytes) -> bool:
    return b"\r" in body or b"\x1b" in body or b"[20" in body


def raw(row: Row) -> bytes:
    """A line as it stood in the log, without its end."""
    return b"".join(row)


def parts(table: list[Row]) -> Iterator[tuple[bool, list[Row]]]:
    """The table cut into runs of batch and access lines (``True``) and of other lines (``False``)."""
    if b"" not in [row[1] for row in table]:
        yield True, table
        return
    for batches, run in groupby(table, key=lambda row: row[1] != b""):
        yield batches, list(run)


class Taken(NamedTuple):
    """What a run held: bytes of probe lines, and how many lines with figures."""

    probes: int
    figures: int


def take(run: list[Row], batches: Batches) -> Taken | None:
    """Read a run of batch and access lines; ``None`` when it must be read line by line."""
    times: Times = {}
    for stamp in {row[1] for row in run}:
        second = seconds_of(stamp)
        if second is None:
            return None
        times[stamp] = second
    whos = {who: _who(who) for who in {row[3] for row in run}}
    decodes, prefills = ({who for who, told in whos.items() if told[0] is kind} for kind in (_DECODE, _PREFILL))
    if len(decodes) == len(whos):
        _figures(run, times, whos, batches)
        return Taken(0, len(run))
    told = [row for row in run if row[3] in decodes or (row[3] in prefills and HEALTH_CHECK not in row[4])]
    others = run if not told else [row for row in run if row[3] not in decodes] if len(told) < len(run) else []
    probes = sum(min(len(raw(row)), LINE_CAP) + 1 for row in others if _is_probe(whos[row[3]][0], row[4]))
    if told:
        _figures(told, times, whos, batches)
    return Taken(probes, len(told))


def _figures(run: list[Row], times: Times, whos: Whos, batches: Batches) -> None:
    _, stamps, _, kinds, bodies = zip(*run, strict=True)
    if list(stamps) != sorted(stamps):  # ranks write at their own pace, and clocks are set back
        late = list(accumulate(stamps, max))
        pairs = set(zip(late, stamps, strict=True))
        if any(max(batches.now, times[newest]) - times[stamp] > LATE for newest, stamp in pairs):
            for piece in _ascending(run):
                _figures(piece, times, whos, batches)
            return
        stamps = tuple(late)
    keys = list(zip(stamps, kinds, strict=True))
    newest = dict(zip(keys, range(len(keys)), strict=True))
    counts = Counter(keys) if len(newest) < len(keys) else {}
    prefills = {who for who, told in whos.items() if told[0] is _PREFILL}
    sums = (
        _sums([(key, body) for key, body in zip(keys, bodies, strict=True) if key[1] in prefills]) if prefills else {}
    )
    for index in sorted(newest.values()):
        key = keys[index]
        kind, ranks, dp = whos[key[1]]
        if kind is _DECODE:
            batches.decode(dp, times[key[0]], bodies[index], key in counts and counts[key] > 1)
        else:
            batches.prefill(dp, ranks, times[key[0]], bodies[index], *sums[key])


def _sums(prefills: list[tuple[Key, bytes]]) -> dict[Key, tuple[int, int]]:
    """New and cached tokens of all prefills, per second and rank."""
    sums: dict[Key, tuple[int, int]] = {}
    for key, body in prefills:
        new, cached = tokens(body)
        before = sums.get(key)
        sums[key] = (new, cached) if before is None else (before[0] + new, before[1] + cached)
    return sums


def _is_probe(kind: str, body: bytes) -> bool:
    if kind is _ACCESS:
        return b'"POST /' not in body and is_probe(body)
    return kind is _PREFILL and is_health_check(body)


def newest_sign(run: list[Row]) -> Row | None:
    """The newest row that is no probe's."""
    return next((row for row in reversed(run) if not _is_probe(_who(row[3])[0], row[4])), None)


def _ascending(run: list[Row]) -> Iterator[list[Row]]:
    """The run, parted where times go back."""
    begun = 0
    for index, (before, row) in enumerate(pairwise(run), 1):
        if row[1] < before[1]:
            yield run[begun:index]
            begun = index
    yield run[begun:]
