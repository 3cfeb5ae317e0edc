"""What foreign programs put before a line of a log: Ray, compose, loggers, log shippers, mpirun, srun."""

from __future__ import annotations

import re
from dataclasses import replace

from tui.sglang.lines import ANSI, LINE_CAP, Line

_FOREIGN = re.compile(
    r"(?:\[rank\d{1,4}\]: |\((?:[^()]{1,80})\) |[\w.-]{1,60} +\| |(?:INFO|WARNING|ERROR|CRITICAL|"
    r"DEBUG) [\d-]+ [\d:.,]+ \S{1,80}\] |"
    r"\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)? (?:(?:stdout|stderr) [FP] )?(?:- \S{1,80} - [A-Z]+ - |"
    r"\[?[A-Z]{4,8}\]? (?:\S{1,80}: )?)?|"
    r"[A-Z][a-z]{2} [ \d]?\d(?:, \d{4} @)? [\d:.]+\s+|\[[\d /:.,TZ+-]{8,40}\] ?|\*\*(?![* ])|"
    r"\| [A-Z]{4,8} {1,5}\| [\w.:<>-]{1,80} [|-] |"  # loguru
    r"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})?\[\d{1,4},\d{1,6}\]<std(?:out|err)>:|"  # mpirun
    r"\d{1,4}: (?=\S| {2}))"  # srun -l
)
_LONGEST_WRAPPER = 300  # characters


def unwrap(message: str) -> str:
    """``message`` without foreign prefixes that are left on it (Ray, compose, loggers, log shippers)."""
    for _ in range(4):
        found = _FOREIGN.match(message)
        if found is None or found.end() == 0:
            break
        message = message[found.end() :]
    return message


def wrapper_of(line: Line) -> re.Pattern[str] | None:
    """What stands before a record, as a pattern in which numbers may be others; ``None`` if nothing does.

    A shipper that nobody knows puts it before the lines of a traceback too, which have no prefix of their own.
    """
    text = _text(line)
    before = text[: text.rfind("[", 0, max(0, text.find(line.message)))]
    if not line.prefixed or not before.strip() or before[:1] == "{" or len(before) > _LONGEST_WRAPPER:
        return None
    return re.compile(re.sub(r"[0-9]+", r"[0-9]+", re.escape(before)))


def bared(line: Line, wrapper: re.Pattern[str]) -> Line:
    """A line without the wrapper that stands before it, if it does."""
    found = wrapper.match(_text(line)) if line.message else None
    return line if found is None else replace(line, message=_text(line)[found.end() :])


def _text(line: Line) -> str:
    """The line as it was shipped; of a progress bar nothing, since only its parts are lines."""
    raw = b"" if b"\r" in line.raw.rstrip(b"\r") else line.raw[:LINE_CAP]
    return ANSI.sub(b"", raw).decode("utf-8", "replace").rstrip()
