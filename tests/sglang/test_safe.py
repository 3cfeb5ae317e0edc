"""Nothing that a server prints can reach the terminal as more than text."""

from __future__ import annotations

import pytest

from tui.sglang.safe import safe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Requesting 150.10 GB", "Requesting 150.10 GB"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]52;c;c2VjcmV0\x07clip", "clip"),
        ("\x1b]0;title\x1b\\title", "title"),
        ("cut \x1b[", "cut ["),
        ("\u202eevil\u2066", "\ufffdevil\ufffd"),
        ("bell\x07 nul\x00 c1\x9b2J", "bell\ufffd nul\ufffd c1\ufffd2J"),
        ("ü 漢 ✖ →", "ü 漢 ✖ →"),
    ],
)
def test_escapes_and_controls_are_gone(text: str, shown: str) -> None:
    assert safe(text) == shown
