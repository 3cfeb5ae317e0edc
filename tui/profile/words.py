"""Kinds of words, and why a text is none of one: each reason by itself, with what was found."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """``first`` may stand at the beginning, ``more`` beside it after that; both are told in ``rule``.
    ``most`` characters are allowed; 0: any number."""

    first: str
    more: str
    rule: str
    most: int = 0

    @property
    def pattern(self) -> str:
        """The kind as a regular expression of JSON Schema and of Python."""
        repeated = f"{{0,{self.most - 1}}}" if self.most else "*"
        return f"[{_ranges(self.first)}][{_ranges(self.first + self.more)}]{repeated}"

    def matches(self, text: str) -> bool:
        """Whether ``text`` is of this kind."""
        return not self.error(text)

    def error(self, text: str) -> str:
        """Why ``text`` is none; empty where it is one."""
        if not text:
            return "is empty"
        strange = next((c for c in text if c not in self.first and c not in self.more), None)
        if strange is not None:
            return f"holds {strange!r}; {self.rule}"
        if text[0] not in self.first:
            return f"begins with {text[0]!r}; {self.rule}"
        return f"has {len(text)} characters; at most {self.most}" if 0 < self.most < len(text) else ""


def _ranges(characters: str) -> str:
    """What stands between the brackets of a regular expression."""
    for whole, short in ((string.ascii_uppercase, "A-Z"), (string.ascii_lowercase, "a-z"), (string.digits, "0-9")):
        if whole in characters:
            characters = short + characters.replace(whole, "")
    return characters


_LETTERS = string.ascii_uppercase + string.ascii_lowercase
NAME = Word(
    _LETTERS + string.digits, "._-", "a name takes letters, digits, '.', '_' and '-', a letter or digit first", 64
)
"""What a profile, a host and a server are called: it can be part of a path."""
VARIABLE = Word(_LETTERS + "_", string.digits, "a variable's name takes letters, digits and '_', no digit first")
FLAG = Word(_LETTERS + string.digits, ".-", "a flag takes letters, digits, '.' and '-', a letter or digit first")


def address_error(text: str) -> str:
    """Why ``text`` is no destination for SSH; empty where it is one. Its port is looked at elsewhere."""
    rule = "takes an SSH alias, user@host:port, or local"
    user, at, place = text.rpartition("@")
    if blank := next((c for c in text if c.isspace()), None):
        return f"holds {'a blank' if blank == ' ' else repr(blank)}; {rule}"
    if text.startswith("-") or place.startswith("-"):
        return f"has a '-' in front, which ssh takes for an option; {rule}"
    if "@" in user or (at and not user) or not place:
        return rule
    bare = re.sub(r":\d+$", "", place)
    if bare.startswith("["):
        return (
            ""
            if re.fullmatch(r"\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]", bare)
            else f"has no IPv6 address in its brackets; {rule}"
        )
    if place.count(":") > 1 and not set("[]") & set(place):
        return f"an IPv6 address stands in brackets: {user}{at}[{place}]"
    if ":" in bare:
        return f"has no number for a port, {bare.rpartition(':')[2]!r}; {rule}"
    return rule if set("[]") & set(bare) or not bare else ""
