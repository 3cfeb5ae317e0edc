"""Text of a server's log, safe to print: no escapes, no control or direction characters."""

from __future__ import annotations

import re

UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u061c\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Control characters except tab and newline; what cannot be seen, or turns the reading order; halves of characters."""

ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[PX^_][^\x1b]{0,4096}(?:\x1b\\)?|[ -/]*[0-~])?"
)
"""What a terminal obeys, whole: colours and the like, titles, strings for the terminal itself, and shorter ones."""


def safe(text: str) -> str:
    """``text`` without terminal escapes; other control characters become a replacement character."""
    if text.isprintable():
        return text
    return UNSAFE.sub("\ufffd", ESCAPE.sub("", text))
