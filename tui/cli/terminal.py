"""Whether this terminal can show a dashboard. Asked before Textual is loaded, which would write escapes to anything."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Mapping
from typing import Protocol

from tui.cli.errors import fail


class Stream(Protocol):
    """What is asked of a standard stream."""

    @property
    def encoding(self) -> str: ...

    def isatty(self) -> bool: ...


def terminal_problem(
    stdin: Stream | None, stderr: Stream | None, environ: Mapping[str, str], *, ascii: bool = False
) -> str:
    """Why a dashboard cannot be shown here, in one line with a way out; empty when it can.

    A stream that was closed before the start is ``None``. ``ascii``: nothing beyond ASCII is going to be drawn, which
    every encoding can write."""
    if stdin is None or stderr is None or not stdin.isatty() or not stderr.isatty():
        return "the dashboard needs a terminal on stdin and stderr; for scripts there are status, up and snapshot"
    if environ.get("TERM", "") in ("", "dumb", "unknown"):
        return f"TERM={environ.get('TERM', '')} cannot show a dashboard; set TERM, or use status, up and snapshot"
    try:
        utf8 = codecs.lookup(stderr.encoding or "ascii").name == "utf-8"
    except LookupError:
        utf8 = False
    if not (utf8 or ascii):
        return f"the dashboard needs a UTF-8 locale, and this one is {stderr.encoding}; try LC_ALL=C.UTF-8 or --ascii"
    return ""


def has_terminal(*, ascii: bool = False) -> bool:
    """Whether a dashboard can be shown here."""
    return not _problem_here(ascii)


def require_terminal(*, ascii: bool = False) -> None:
    """End the command with exit code 2 where no dashboard can be shown."""
    problem = _problem_here(ascii)
    if problem:
        fail(problem)


def _problem_here(ascii: bool) -> str:
    return terminal_problem(sys.__stdin__ or sys.stdin, sys.__stderr__ or sys.stderr, os.environ, ascii=ascii)
