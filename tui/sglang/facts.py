"""A log's bytes → what they say: ``facts(chunk, carry) -> (LogFacts, carry)``.

A carry holds all that was read so far, and facts are cumulative: the facts of a chunk are those of the whole log up to
its end. So chunk borders do not matter, and of two facts of one log the one that has read further holds the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tui.sglang.logfacts import LogFacts
from tui.sglang.parser import LogParser

__all__ = ["Carry", "LogFacts", "facts", "finish", "merge", "read"]

BLOCK = 256 << 10  # bytes that a whole log is read in: what fits into the caches of a core


@dataclass(frozen=True, slots=True)
class Carry:
    """How far a log has been read. A value: ``facts`` leaves the one that it was given as it is."""

    parser: LogParser = field(default_factory=LogParser)


def facts(chunk: bytes, carry: Carry) -> tuple[LogFacts, Carry]:
    """Read the next bytes of a log, cut anywhere. Total: any bytes, no exception."""
    parser = carry.parser.copy()
    parser.feed(chunk)
    return parser.facts(), Carry(parser)


def finish(carry: Carry) -> LogFacts:
    """The facts of a log that ends here."""
    return carry.parser.copy().facts(end=True)


def merge(first: LogFacts, second: LogFacts) -> LogFacts:
    """What is known after both, in either order."""
    return first.merge(second)


def read(chunks: Iterable[bytes]) -> LogFacts:
    """The facts of a whole log."""
    parser = LogParser()
    for block in _blocks(chunks):
        parser.feed(block)
    return parser.facts(end=True)


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in larger pieces: a log that is read whole needs no facts in between."""
    held, size = [], 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= BLOCK:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)
