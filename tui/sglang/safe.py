"""Text of a server's log, safe to print: no escapes, no control or direction characters."""

from __future__ import annotations

import re

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\u061c]")
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?)?")


def safe(text: str) -> str:
    """``text`` without terminal escapes; other control characters become a replacement character."""
    if text.isprintable():
        return text
    return _UNSAFE.sub("\ufffd", _ESCAPE.sub("", text))
