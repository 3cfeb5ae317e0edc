"""Exit codes: the contract with scripts."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    """How a command ended."""

    OK = 0
    FAILED = 1  # a server failed, a check failed, something is left
    USAGE = 2  # wrong usage, profile or file; nothing was contacted
    UNDECIDED = 3  # still starting at the deadline; the log does not say
    UNREACHABLE = 4  # a host cannot be reached, or refuses us
    INTERNAL = 70  # a mistake in this program
    HUNG_UP = 129  # 128 + the number of the signal that ended the dashboard
    INTERRUPTED = 130
    QUIT = 131
    BROKEN_PIPE = 141  # the reader of our output went away
    TERMINATED = 143

    @classmethod
    def worst(cls, codes: Iterable[Exit]) -> Exit:
        """The one code for several outcomes; ``OK`` for none."""
        return min(codes, key=PRECEDENCE.index, default=cls.OK)


PRECEDENCE = (
    Exit.BROKEN_PIPE,
    Exit.INTERRUPTED,
    Exit.INTERNAL,
    Exit.USAGE,
    Exit.UNREACHABLE,
    Exit.FAILED,
    Exit.UNDECIDED,
    Exit.OK,
)
