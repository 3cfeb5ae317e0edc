"""Raw log bytes as lines that are safe to show: no escapes, no control or bidirectional characters, secrets masked."""

from __future__ import annotations

import re

from tui.sglang.mask import mask, mask_text
from tui.sglang.safe import UNSAFE

MAX_BYTES = 16 * 1024
"""The most of one line that is ever looked at."""

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[PX^_][^\x1b]{0,4096}(?:\x1b\\)?|[ -/]*[0-~])?"
)
_GLUED = re.compile(r"(?<=[^\s])(?=\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")


def shown(raw: bytes) -> tuple[str, ...]:
    """The lines that one physical line (without its newline) is shown as.

    A progress bar that was overwritten with ``\\r`` is its newest state; a record glued behind it is a line of its own.
    """
    if len(raw) > MAX_BYTES:
        raw = raw[-MAX_BYTES:] if b"\r" in raw[-MAX_BYTES:-1] else raw[:MAX_BYTES]
    if b"\x1b" not in raw:
        raw = mask(raw)
    text = raw.decode("utf-8", "replace")
    if "\x1b" in text:
        text = mask_text(_ANSI.sub("", text))
    if "\r" not in text:
        return (_safe(text),)
    return tuple(_safe(part) for part in _GLUED.split(_newest(text), maxsplit=1))


def _newest(text: str) -> str:
    """What stands after the last ``\\r`` that is followed by anything visible."""
    parts = [part for part in text.split("\r") if part.strip()]
    return parts[-1] if parts else ""


def _safe(text: str) -> str:
    return text if text.isascii() and text.isprintable() else UNSAFE.sub("", text.expandtabs(8).replace("\n", ""))
