"""Where the value behind a secret's name ends: in Python's and JSON's writing, in a shell's, or in no quotes at all.

A value that begins with a quote ends at the same quote, pieces that stand right behind it belong to it (a shell writes
``it's`` as ``'it'"'"'s'``), and one whose quote never ends goes on to the end of its line. In doubt a value is longer.
All patterns are possessive: what has been read is not read again.
"""

from __future__ import annotations

import re

_DOUBLE = rb'"(?:[^"\\\r\n]++|\\\\"(?![\s,)\]}:;]|\Z)|\\[^\r\n])*+"'  # \\" is an escaped quote that was escaped again
_ESCAPING = rb"'(?:[^'\\\r\n]++|\\[^\r\n])*+'"  # in Python
_PLAIN = rb"'[^'\r\n]*+'"  # in a shell
_IN_JSON = rb'\\"(?:[^"\\\r\n]++|\\\\(?:\\\\|\\"|[^\\\r\n]))*+\\"'  # a JSON text inside another
_OUTER = rb"['\"](?=[\]}),:;.]*+(?:\s|\Z)|[\]}),:;]++['\"])"  # a quote that ends what the whole value stands in


def _behind(single: bytes) -> bytes:
    """The pieces that may follow a quoted piece, up to where the word ends for certain."""
    return (
        rb"(?:(?!" + _OUTER + rb")" + _DOUBLE + rb"|(?:(?<=\"'\")|(?!" + _OUTER + rb"))" + single + rb"|\\['\"]|"
        rb"[^\s\x1b'\"\\,)\]}:;&|<>]++)*+(?:(?<!\"'\")(?=" + _OUTER + rb")|(?!['\"]))"
    )


def _quoted(single: bytes) -> bytes:
    prefix = rb"(?:[bBrRuUfF]{1,2}(?=['\"])|\$(?='))?+"
    return rb"(?:" + _IN_JSON + rb"|" + prefix + rb"(?:" + _DOUBLE + rb"|" + single + rb")" + _behind(single) + rb")"


_PIECES = rb"|(?!" + _OUTER + rb")(?:" + _DOUBLE + rb"|" + _PLAIN + rb"|['\"]))++"
_WORD = rb"(?:[^\s'\"\\]++|\\[^\r\n]|\\(?=[\r\n]|\Z)" + _PIECES
_FIELD = (
    rb"(?:[^\s'\"\\,)\]}&]++|\\\S|\\(?=\s|\Z)|[,&](?!\s|\Z|['\"]?[\w.-]{1,60}+['\"]?\s?[=:])|"
    rb"[)\]}](?![)\]},;.:'\"\s]|\Z)" + _PIECES
)
_BEGINS = re.compile(rb"\\?+(?:[bBrRuUfF]{1,2}|\$(?='))?+['\"]")
_PYTHON = re.compile(_quoted(_ESCAPING))
_SHELL = re.compile(_quoted(_PLAIN))
_BARE = {True: re.compile(_WORD), False: re.compile(_FIELD)}
_OPEN = {
    b"'": tuple(re.compile(single[1:] + _behind(single)) for single in (_PLAIN, _ESCAPING)),
    b'"': tuple(re.compile(_DOUBLE[1:] + _behind(single)) for single in (_PLAIN, _ESCAPING)),
}
_ENDED = re.compile(rb"[\s,)\]}:;]|\Z")
_LINE = re.compile(rb"[^\r\n]*+")


def end_of_value(line: bytes, at: int, *, shell: bool) -> int:
    """Where the value ends that begins at ``at``; ``at`` if there is none. ``shell``: it may be a word of a shell."""
    if _BEGINS.match(line, at):
        return _longest(line, at, (_SHELL, _PYTHON) if shell else (_PYTHON,))
    bare = _BARE[shell].match(line, at)
    return bare.end() if bare else at


def end_of_quoted(line: bytes, at: int, quote: bytes, *, shell: bool) -> int:
    """Where a value ends that begins at ``at``, inside quotes that began before: ``'--api-key=…'``."""
    if line[at : at + 1] == quote and _ENDED.match(line, at + 1):
        return at
    return _longest(line, at, _OPEN[quote] if shell else _OPEN[quote][1:])


def _longest(line: bytes, at: int, readings: tuple[re.Pattern[bytes], ...]) -> int:
    """The end by the reading that takes most; by the first one a quote may never end, which takes all of the line."""
    if readings[0].match(line, at):
        return max(found.end() for reading in readings if (found := reading.match(line, at)))
    rest = _LINE.match(line, at)
    return rest.end() if rest else at
