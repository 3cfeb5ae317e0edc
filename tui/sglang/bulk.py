"""Runs of batch and access lines, read many at a time.

A serving log is nearly nothing else, so lines are split off a chunk by one regular expression per shape. The state
shows one figure per second and rank: of the lines that a rank prints within a second only the last is read field by
field; all prefills are summed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from tui.sglang.batch import SERIES
from tui.sglang.kinds import is_probe

# Wrapper, prefix with the kind of line, the rest. Anchored and bounded, or a long line is searched from each byte.
_LINE = re.compile(
    rb"^([^\n\[]{0,120})(\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]\n]{0,60}\] "
    rb"(?:Decode batch|Prefill batch|INFO:))([^\n]*)\n",
    re.MULTILINE,
)
_TOKENS = re.compile(rb"[^#]{0,20}#new-seq: (\d{1,12}), #new-token: (\d{1,12}), #cached-token: (\d{1,12}),")


@dataclass(slots=True)
class Run:
    """Consecutive batch and access lines."""

    wrappers: list[bytes]
    prefixes: list[bytes]
    bodies: list[bytes]
    keys: list[bytes]  # the prefixes without milliseconds: what a rank prints of one kind within a second shares one

    def part(self, begin: int, end: int) -> Run:
        return Run(self.wrappers[begin:end], self.prefixes[begin:end], self.bodies[begin:end], self.keys[begin:end])

    def raw(self, index: int) -> bytes:
        """A line as it stood in the log."""
        return self.wrappers[index] + self.prefixes[index] + self.bodies[index]


@dataclass(slots=True)
class Group:
    """What a rank printed of one kind within one second: its last line, how many there were, and prefills summed."""

    prefix: bytes
    body: bytes
    lines: int
    new: int = 0
    cached: int = 0


@dataclass(slots=True)
class Digest:
    """A run in short."""

    groups: list[Group] = field(default_factory=list)
    probes: int = 0  # bytes of probe lines


def runs(body: bytes) -> Iterator[tuple[bytes, Run | None]]:
    """Whole lines as text that needs a closer look, each followed by the run behind it."""
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n")
        if b"\r" in body:  # progress bars
            yield body, None
            return
    parts = _LINE.split(body)
    between, prefixes = parts[0::4], parts[2::4]
    keys = [p[:20] + p[24:] if p[20:21] == b"." else p for p in prefixes]
    lines = Run(parts[1::4], prefixes, parts[3::4], keys)
    begun = 0
    for index, text in enumerate(between):
        if not text:
            continue
        if index > begun:
            yield from _in_order(lines.part(begun, index))
            begun = index
        yield text, None
    if begun < len(keys):
        yield from _in_order(lines.part(begun, len(keys)) if begun else lines)


def _in_order(run: Run) -> Iterator[tuple[bytes, Run]]:
    """The run, parted where times go back: ranks write at their own pace, and clocks are set."""
    seconds = [key[1:20] for key in run.keys]
    if seconds == sorted(seconds):
        yield b"", run
        return
    begun = 0
    for index, (before, second) in enumerate(pairwise(seconds), 1):
        if second < before:
            yield b"", run.part(begun, index)
            begun = index
    yield b"", run.part(begun, len(seconds))


def digest(run: Run) -> Digest | None:
    """A run in short; ``None`` where it must be read line by line (other lines of uvicorn's)."""
    keys = run.keys
    newest = dict(zip(keys, range(len(keys)), strict=True))
    result = Digest()
    access = {key for key in newest if key.endswith(b"INFO:")}
    if access and not _access(run, keys, access, result):
        return None
    prefills = {key for key in newest if key.endswith(b"Prefill batch")}
    sums = _prefills(run, keys, prefills, newest, result) if prefills else {}
    counts = Counter(keys) if len(newest) < len(keys) else {}
    batches = sorted((index, key) for key, index in newest.items() if index >= 0 and not key.endswith(b"INFO:"))
    for index, key in batches[_oldest(batches) :]:
        new, cached = sums.get(key, (0, 0))
        result.groups.append(Group(key, _fields(run.bodies[index]), counts.get(key, 1), new, cached))
    return result


def _fields(body: bytes) -> bytes:
    """The part of a batch line behind its head (``. ``, ``, `` or `` [17], ``)."""
    return body[2:] if body[:1] in b",." else body[body.find(b"]") + 3 :]


def _oldest(batches: list[tuple[int, bytes]]) -> int:
    """Where the seconds begin that a series still holds."""
    if len(batches) <= SERIES:
        return 0
    seconds = sorted({key[1:20] for _, key in batches})
    if len(seconds) <= SERIES + 2:
        return 0
    first = seconds[-SERIES - 2]
    return next(place for place, (_, key) in enumerate(batches) if key[1:20] >= first)


def _access(run: Run, keys: list[bytes], access: set[bytes], result: Digest) -> bool:
    """Count the probes among access lines; ``False`` when a line is none."""
    for index in [index for index, key in enumerate(keys) if key in access]:
        body = run.bodies[index]
        if b' - "' not in body:
            return False
        if b'"POST /' not in body and is_probe(body):
            _probe(run, index, result)
    return True


def _prefills(
    run: Run, keys: list[bytes], prefills: set[bytes], newest: dict[bytes, int], result: Digest
) -> dict[bytes, tuple[int, int]]:
    """New and cached tokens per second and rank; health checks count as probes, and not as a rank's newest line."""
    sums: dict[bytes, tuple[int, int]] = {}
    last = dict.fromkeys(prefills, -1)
    for index, key in enumerate(keys):
        if key not in last:
            continue
        found = _TOKENS.match(run.bodies[index])
        if found is not None:
            sequences, more, hits = found.groups()
            if more == b"1" and hits == b"0" and sequences == b"1":
                _probe(run, index, result)
                continue
            new, cached = sums.get(key, (0, 0))
            sums[key] = new + int(more), cached + int(hits)
        last[key] = index
    newest.update(last)
    return sums


def _probe(run: Run, index: int, result: Digest) -> None:
    result.probes += len(run.raw(index)) + 1
