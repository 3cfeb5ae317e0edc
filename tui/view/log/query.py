"""What is looked for in lines: a text, or a regular expression that cannot run away."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

NO_REGEX = "no regular expression"


@dataclass(frozen=True, slots=True)
class Query:
    """``regex``: ``term`` is a regular expression. ``case``: whether case counts; ``None``: only where ``term`` has
    capitals. Without a term it is false."""

    term: str = ""
    regex: bool = False
    case: bool | None = None

    def __bool__(self) -> bool:
        return bool(self.term)

    @property
    def fold(self) -> bool:
        """Whether case is ignored."""
        letters = re.sub(r"\\.", "", self.term) if self.regex else self.term
        return letters == letters.lower() if self.case is None else not self.case

    @property
    def wrong(self) -> str:
        """Why nothing can be found with it, in words; empty where something can."""
        if not self.regex:
            return ""
        try:
            re.compile(self.term)
        except (re.error, OverflowError, RecursionError) as error:
            place = f" at character {error.pos + 1}" if isinstance(error, re.error) and error.pos is not None else ""
            return f"{NO_REGEX}: {getattr(error, 'msg', error)}{place}"
        return "a repeat or choice inside a repeat may take for ever" if _nests(self.term) else ""

    @property
    def pattern(self) -> re.Pattern[str]:
        """Of one that is not ``wrong``."""
        return _compiled(self.term if self.regex else re.escape(self.term), self.fold)

    def __str__(self) -> str:
        """As the border tells it: ``/term``, with what was switched by hand."""
        case = "" if self.case is None else " case counts" if self.case else " any case"
        return f"/{self.term}{' regex' if self.regex else ''}{case}"


@lru_cache(maxsize=16)
def _compiled(text: str, fold: bool) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE if fold else 0)


_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,\d*\}|\{\d+\}|[()*+|]", re.DOTALL)


def _nests(term: str) -> bool:
    """Whether a group that holds an unbounded repeat or a choice is itself repeated: what such an expression costs can
    double with each character, and nothing could interrupt it."""
    many = [False]
    closed = False  # whether the token before was the end of a group that holds many
    end = 0
    for token in _TOKEN.finditer(term):
        text = token[0]
        repeats = text in "*+" or (text[0] == "{" and text != "{1}")
        if repeats and closed and token.start() == end:
            return True
        closed = False
        if text == "(":
            many.append(False)
        elif text == ")" and len(many) > 1:
            closed = many.pop()
            many[-1] = many[-1] or closed
        elif text == "|" or (repeats and (text[0] != "{" or "," in text)):
            many[-1] = True
        end = token.end()
    return False
