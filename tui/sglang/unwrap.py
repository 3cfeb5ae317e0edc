"""What foreign programs put before a line of a log: Ray, compose, loggers, log shippers, mpirun, srun."""

from __future__ import annotations

import re

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


def unwrap(message: str) -> str:
    """``message`` without foreign prefixes that are left on it (Ray, compose, loggers, log shippers)."""
    for _ in range(4):
        found = _FOREIGN.match(message)
        if found is None or found.end() == 0:
            break
        message = message[found.end() :]
    return message
