"""What the files of a run directory say, checked field by field where they are read: nobody further on need doubt it.

A field that is absent or null is left out; so is one that is not what it should be, and that is told.
"""

from __future__ import annotations

import json
import os

from .files import open_regular, read_whole
from .tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

LARGEST = 8 << 20  # bytes; the kernel takes command lines of 6 MiB
LATEST = 2e11  # Unix seconds that a calendar can still write
MOST_DIGITS = 20


class Kind(NamedTuple):
    """What a field may hold, and how that is called."""

    words: str
    fits: Callable[[Any], bool]


def _whole(least: int, most: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_moment(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 <= value <= LATEST  # which NaN is not


def _all(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _object(**kinds: Kind) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(kinds[name].fits(value.get(name)) for name in kinds)


TEXT = Kind("text", _is_text)
TEXTS = Kind("a list of texts", _all(_is_text))
MOMENT = Kind("a time in Unix seconds", _is_moment)
PID = Kind("a pid", _whole(1, 2**31 - 1))
PIDS = Kind("a list of pids", _all(PID.fits))
TICKS = Kind("a start time in ticks", _whole(0, 2**63))
PORT = Kind("a port", _whole(0, 65535))
STATUS = Kind("an exit status", _whole(0, 255))
TRUTH = Kind("true or false", lambda value: isinstance(value, bool))
FORMAT = Kind("the number of a format", _whole(0, 2**31))
PROCESS = Kind("a process", _object(pid=PID, start=TICKS))
OBJECT = Kind("an object", _object())
REPORT = Kind("a report", _object(found=TEXTS, signals=TEXTS))

FIELDS: dict[str, dict[str, Kind]] = {
    "run.json": {
        "format": FORMAT, "run": TEXT, "profile": TEXT, "server": TEXT, "argv": TEXTS, "port": PORT, "digest": TEXT,
        "who": TEXT, "started": MOMENT, "boot_id": TEXT, "sglang": TEXT,
    },
    "process.json": {
        "pid": PID, "start": TICKS, "keeper": PROCESS, "boot_id": TEXT, "pid_namespace": TEXT, "cgroup": TEXT,
        "started": MOMENT,
    },
    "exit.json": {
        "at": MOMENT, "status": STATUS, "signal": TEXT, "oom_killed": TRUTH, "left": PIDS, "failed_at": TEXT,
        "error": TEXT,
    },
    "stop.json": {"at": MOMENT, "who": TEXT, "forced": TRUTH},
    "kill.json": {"at": MOMENT, "who": TEXT, "report": REPORT},
    "lock": {"at": MOMENT, "who": TEXT},  # of the server, like the next
    "restarts.lock": {"pid": PID, "start": TICKS, "since": MOMENT, "who": TEXT, "told": OBJECT},
}  # fmt: skip
NEEDED: dict[str, tuple[str, ...]] = {  # without one of these a file says nothing
    "run.json": ("run", "profile", "server", "started"),
    "process.json": ("pid", "start", "boot_id"),
    "exit.json": ("at",),
    "stop.json": ("at",),
    "kill.json": ("at",),
    "lock": ("at",),
    "restarts.lock": ("pid", "start"),
}


class Recorded(NamedTuple):
    """The fields of one file that are what they should be, and the flaw of the others, in words. ``fields`` is
    ``None`` for a file that is absent, empty, or worth nothing."""

    fields: dict[str, Any] | None
    flaw: str = ""


def load(folder: str, name: str) -> Recorded:
    """What ``name`` says, one of ``FIELDS``. Never blocks on what is no file."""
    try:
        fd = open_regular(os.path.join(folder, name))
        if fd is None:
            return Recorded(None, "%s is not a file" % name)
        text = read_whole(fd, LARGEST + 1)
    except FileNotFoundError:
        return Recorded(None, "%s leads nowhere" % name if os.path.islink(os.path.join(folder, name)) else "")
    except OSError as error:
        return Recorded(None, "%s: %s" % (name, error.strerror))
    return _checked(name, text) if text else Recorded(None)


def _checked(name: str, text: bytes) -> Recorded:
    try:
        if len(text) > LARGEST:
            raise ValueError
        told = DECODER.decode(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return Recorded(None, "%s cannot be read" % name)
    if not isinstance(told, dict):
        return Recorded(None, "%s holds no object" % name)
    kinds = FIELDS[name]
    told = {field: told[field] for field in kinds if told.get(field) is not None}
    fields = {field: _encodable(value) for field, value in told.items() if kinds[field].fits(value)}
    wrong = ["%s is not %s" % (field, kinds[field].words) for field in told if field not in fields]
    wrong += ["%s is missing" % field for field in NEEDED[name] if field not in told]
    useless = any(field not in fields for field in NEEDED[name]) and name != "run.json"
    return Recorded(None if useless else fields, "%s: %s" % (name, ", ".join(wrong)) if wrong else "")


def _integer(digits: str) -> int | None:
    """To read a very long number takes time that grows with its square."""
    return int(digits) if len(digits) <= MOST_DIGITS else None


DECODER = json.JSONDecoder(parse_int=_integer)


def _encodable(value: Any) -> Any:
    """JSON can write halves of characters, which nothing can print."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return [_encodable(one) for one in value] if isinstance(value, list) else value
