"""Nothing that a server prints can reach the terminal as more than text."""

from __future__ import annotations

import pytest

from tui.sglang.model import Failure, FailureKind
from tui.sglang.safe import safe
from tui.sglang.short import short


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Requesting 150.10 GB", "Requesting 150.10 GB"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]52;c;c2VjcmV0\x07clip", "clip"),
        ("\x1b]0;title\x1b\\title", "title"),
        ("a \x1bP+q544e\x1b\\string \x1b_for\x1b\\it, \x1b(Ba \x1b7set", "a string it, a set"),
        ("cut \x1b[", "cut "),
        ("\u202eevil\u2066", "\ufffdevil\ufffd"),
        ("bell\x07 nul\x00 c1\x9b2J", "bell\ufffd nul\ufffd c1\ufffd2J"),
        ("ü 漢 ✖ →", "ü 漢 ✖ →"),
    ],
)
def test_escapes_and_controls_are_gone(text: str, shown: str) -> None:
    assert safe(text) == shown


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: [2026-11-30 12:58:51] \x1bP+q544e\x1b\\odd \x01thing",
        "[2026-11-30 12:58:51] \x1b[31mRuntimeError: odd\x1b[0m thing",
        "\x1b[31m[2026-11-30 12:58:51,123 TP0]\x1b[0m odd thing",
    ],
)
def test_a_failure_in_a_few_words_has_no_time_and_no_escapes(line: str) -> None:
    assert short(Failure(FailureKind.OTHER, line, 5, "", ())) == "failed: odd thing"
