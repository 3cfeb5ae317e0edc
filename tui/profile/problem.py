"""Mistakes in a profile, each with its place, and all of them at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake. ``line`` counts from 1; 0 where the file as a whole is meant. ``key`` is a dotted path or empty."""

    file: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return one_line(": ".join(part for part in (place, self.key, self.message) if part))


def one_line(text: str) -> str:
    """``text`` with everything that could move the cursor, colour or reorder what follows as an escape: ``a\\nb``."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class ProfileError(Exception):
    """A profile that cannot be used: every mistake found, in the order of the file's lines."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class UnknownServer(LookupError):
    """A server was asked for that the profile does not have."""


def nearest(word: str, valid: Iterable[str]) -> str:
    """A hint that ends a message: the valid name closest to ``word``, else all of them when they are few."""
    names = list(valid)
    close = get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    if names and len(names) <= 20:
        return "valid: " + ", ".join(names)
    return ""
