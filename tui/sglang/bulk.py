"""Batch and access lines, which are nearly all of a serving log, many at a time.

One regular expression takes a chunk apart into rows. The state shows one figure per second and rank: of the lines of
one kind that a rank prints within a second only the last is kept; the tokens of all prefills are summed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, count, groupby
from operator import gt, itemgetter
from typing import NamedTuple

from tui.sglang.batch import HEALTH_CHECK, is_health_check, tokens_of
from tui.sglang.kinds import is_probe
from tui.sglang.lines import LINE_CAP, ranks_in, seconds_of
from tui.sglang.replicas import LATE, Batches, Told, dp_rank
from tui.sglang.series import Line

# Wrapper, time, milliseconds, ranks with the kind of line, the rest; of any other line only the rest. Bounded and
# possessive, so that a line is looked at once.
_ROW = re.compile(
    rb"(?:((?:\[pod/[^\]\n]{1,200}+\] )?+[^\n\[%{\"\x1b\r]{0,120}+)(\[20[\d-]{8} [\d:]{8})((?:[.,]\d{3})?+)"
    rb"([ \w.]{0,60}+\] (?:(?:Decode|Prefill) batch(?:[.,] | \[)|INFO:(?= {1,6}\S{1,64} - \")))"
    rb")?([^\n]*+)\n"
)
Row = tuple[bytes, bytes, bytes, bytes, bytes]
_DECODE, _PREFILL, _ACCESS = "decode", "prefill", "access"


@lru_cache(maxsize=4096)
def _who(who: bytes) -> tuple[str, str, str]:
    """The kind, the ranks and the DP rank that a row's fourth part tells."""
    kind = _ACCESS if who.endswith(b"INFO:") else _DECODE if b"] Decode" in who else _PREFILL
    ranks = ranks_in(who.decode("latin-1"))
    return kind, ranks, dp_rank(ranks)


def rows(text: bytes) -> list[Row]:
    """Whole lines as rows; ``raw`` puts one together again."""
    if b"\r" in text:
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
    times = seconds_of({row[1] for row in run})
    if times is None:
        return None
    kinds = {who: _who(who)[0] for who in {row[3] for row in run}}
    figures, probes = run, 0
    if _ACCESS in kinds.values():
        figures = [row for row in run if kinds[row[3]] is not _ACCESS]
        others = [row for row in run if kinds[row[3]] is _ACCESS and b'"POST /' not in row[4]]
        probes = sum(_size(row) for row in others if is_probe(row[4]))
    if _PREFILL in kinds.values():
        checks = _health_checks([row for row in figures if kinds[row[3]] is _PREFILL], batches.page)
        if checks:
            figures, every = [row for row in figures if row not in checks], figures
            probes += sum(_size(row) for row in every if row in checks)
    if figures:
        _figures(figures, times, batches)
    return Taken(probes, len(figures))


def _health_checks(prefills: list[Row], page: int) -> set[Row]:
    if page == 1:
        return {row for row in prefills if HEALTH_CHECK in row[4]}
    return {row for row in prefills if is_health_check(row[4], page)}


def _size(row: Row) -> int:
    return min(len(raw(row)), LINE_CAP) + 1


def _figures(run: list[Row], times: dict[bytes, float], batches: Batches) -> None:
    seconds = [times[row[1]] for row in run]
    if seconds[0] >= batches.now and seconds == sorted(seconds):
        _piece(run, seconds, batches)
        return
    begun = 0
    for piece in _paced(seconds, batches.now):
        batches.at(piece[0])
        _piece(run[begun : begun + len(piece)], piece, batches)
        begun += len(piece)


def _paced(seconds: list[float], now: float) -> Iterator[list[float]]:
    """The seconds to which lines belong, as ranks write at their own pace; parted where the clock was set back."""
    piece: list[float] = []
    for second in seconds:
        if second < now - LATE:
            if piece:
                yield piece
            piece, now = [], second
        now = max(now, second)
        piece.append(now)
    yield piece


def _piece(run: list[Row], seconds: list[float], batches: Batches) -> None:
    """Read batch lines whose seconds ascend: of each kind and rank the last of a second, in the order of the lines."""
    places = _places(run)
    alone = Counter(_who(who)[::2] for who in places)  # by kind and DP rank
    told: list[Line] = []
    mixed: list[tuple[bytes, Told]] = []
    for who, lines in places.items():
        last = _last(run, seconds, lines, batches.lines + 1, tokens=_who(who)[0] is _PREFILL)
        if alone[_who(who)[::2]] == 1:
            told += _keep(who, last, batches)
        else:
            mixed += ((who, one) for one in last.apart())
    for who, one in sorted(mixed, key=lambda pair: pair[1].order[0]):
        told += _keep(who, one, batches)
    if len(places) > 1:
        told.sort(key=itemgetter(0))
    batches.now = seconds[-1]
    batches.lines += len(run)
    batches.ring.add(told)


def _places(run: list[Row]) -> dict[bytes, Sequence[int]]:
    """Where the lines of each kind and rank stand."""
    whos = [row[3] for row in run]
    if whos.count(whos[0]) == len(whos):
        return {whos[0]: range(len(whos))}
    places: dict[bytes, list[int]] = {who: [] for who in set(whos)}
    for place, who in enumerate(whos):
        places[who].append(place)
    return {**places}


def _keep(who: bytes, told: Told, batches: Batches) -> Sequence[Line]:
    kind, ranks, dp = _who(who)
    return batches.decodes(dp, told) if kind is _DECODE else batches.prefills(dp, ranks, told)


def _last(run: list[Row], seconds: list[float], places: Sequence[int], first: int, *, tokens: bool) -> Told:
    """Of the lines at ``places``, all of one kind and rank, the last of each second."""
    newest = dict(zip((seconds[place] for place in places), count(), strict=False))
    ends = [*newest.values()]
    begins = [0, *(end + 1 for end in ends[:-1])]
    told = Told(
        order=[first + places[end] for end in ends],
        at=[*newest],
        bodies=[run[places[end]][4] for end in ends],
        several=[*map(gt, ends, begins)],
    )
    if not tokens:
        return told
    sums = [[0, *accumulate(numbers)] for numbers in tokens_of([run[place][4] for place in places])]
    new, cached = ([sum_[end + 1] - sum_[begin] for begin, end in zip(begins, ends, strict=True)] for sum_ in sums)
    return told._replace(new=new, cached=cached)


def _is_probe(kind: str, body: bytes, page: int) -> bool:
    if kind is _ACCESS:
        return is_probe(body)
    return kind is _PREFILL and is_health_check(body, page)


def newest_sign(run: list[Row], page: int) -> Row | None:
    """The newest row that is no probe's."""
    return next((row for row in reversed(run) if not _is_probe(_who(row[3])[0], row[4], page)), None)
