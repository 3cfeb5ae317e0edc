"""Raw log bytes as lines that are safe to show: no escapes, no control or bidirectional characters, secrets masked."""

from __future__ import annotations

import re

from tui.sglang.mask import mask, mask_text
from tui.sglang.safe import ESCAPE, UNSAFE

MAX_BYTES = 16 * 1024
"""The most of one line that is ever shown."""
READ_BYTES = 4 * MAX_BYTES
"""The most of one line that is ever looked at: secrets are masked before it is cut, or half a secret would be left."""

_GLUED = re.compile(r"(?<=[^\s])(?=\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")


def shown(raw: bytes) -> tuple[str, ...]:
    """The lines that one physical line (without its newline) is shown as.

    A progress bar that was overwritten with ``\\r`` is its newest state; a record glued behind it is a line of its own.
    """
    if len(raw) > READ_BYTES:
        raw = newest(raw) or raw[:READ_BYTES]
    if b"\x1b" not in raw:
        raw = mask(raw)
    text = raw.decode("utf-8", "replace")
    if "\x1b" in text:
        text = mask_text(ESCAPE.sub("", text))
    if "\r" not in text:
        return (_safe(text[:MAX_BYTES]),)
    return tuple(_safe(part[:MAX_BYTES]) for part in _GLUED.split(_newest(text), maxsplit=1))


def newest(raw: bytes) -> bytes:
    """Of a long line that was overwritten near its end, the last of what it showed; nothing of any other."""
    tail = raw[-MAX_BYTES:]
    return tail[tail.index(b"\r") :] if b"\r" in tail[:-1] else b""


def _newest(text: str) -> str:
    """What stands after the last ``\\r`` that is followed by anything visible."""
    parts = [part for part in text.split("\r") if part.strip()]
    return parts[-1] if parts else ""


def _safe(text: str) -> str:
    return text if text.isascii() and text.isprintable() else UNSAFE.sub("", text.expandtabs(8).replace("\n", ""))
