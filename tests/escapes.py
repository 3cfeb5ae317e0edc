"""What a program may write to a terminal: text, and the sequences that Textual uses. Everything else leaked."""

from __future__ import annotations

import re

from tui.sglang.safe import UNSAFE

_KNOWN = re.compile(
    r"\x1b\[[0-9;]*m"  # colours
    r"|\x1b\[\d+;\d+H|\x1b\[H"  # cursor
    r"|\x1b\[\?(?:7|25|1000|1003|1004|1006|1015|1016|1049|2004|2026|2048)[hl]"  # modes
    r"|\x1b\[\?(?:2026|2048)\$p"  # questions
    r"|\x1b\[(?:>\d+|<)u"  # kitty's keys
    r"|\x1b\]22;[a-z-]+\x07|\x1b\]52;c;[A-Za-z0-9+/=]*\x07|\x07"  # the mouse's shape, the clipboard, the bell
    r"|\r\n"
)
_ON_WHOLE = re.compile(rb"\x1b(?:\[[0-9;?<>$]*|\][^\x07]*)?$")


def leaked(output: bytes) -> str:
    """The first thing that should not be there, with what stands around it; empty where all is well. The end of the
    output may be half a sequence."""
    text = _ON_WHOLE.sub(b"", output).decode("utf-8", "backslashreplace")
    plain = _KNOWN.sub("", text)
    found = UNSAFE.search(plain)
    if found is None:
        return ""
    return f"{found[0]!r} in {plain[max(0, found.start() - 80) : found.end() + 80]!r}"
