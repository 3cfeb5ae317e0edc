"""A batch line that a terminal broke at its width, whole again.

Whether a line may be broken is told by the line and the width that the log has shown, never by what follows it, so that
it does not matter where a log is cut into chunks. What stands behind it goes on with it only where both together are
a list of fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import product

from tui.sglang.batch import fields
from tui.sglang.lines import Line

_MOST_BREAKS = 5  # in a line: that of 400 characters at 80 columns
_NARROWEST = 40  # columns
_RATE = re.compile(rb"(?:gen|input) throughput \(token/s\): (?:\d++\.\d\d|nan)")
_ENDS = b"0123456789%,e"  # a number, a share, a comma, True or False
_QUEUE = re.compile(rb"#queue-req: \d")
_LOST_BLANK = re.compile(r"([:,])(?=\S)")
_VALUE = r"(?:-?\d[\d.]*%?|nan%?|True|False)"
_KEY = r"[#A-Za-z][\w.+/()# -]{0,40}"
_FIELDS = re.compile(
    rf"(?: ?\[\d{{1,12}}\])?[.,] ?(?:{_KEY}: ?{_VALUE}, ?)*+"
    rf"(?:{_KEY}(?:: ?(?:-?[\d.]*%?|na?n?%?|T(?:r(?:ue?)?)?|F(?:a(?:l(?:se?)?)?)?))?)?,? ?"
)


@dataclass(slots=True)
class Wrapped:
    """The newest batch line, while it may go on, and the width at which this log is broken."""

    first: Line | None = None
    raw: bytes = b""
    pieces: list[str] = field(default_factory=list)
    width: int = 0  # characters; 0: no batch line was broken so far

    def copy(self) -> Wrapped:
        return replace(self, pieces=self.pieces[:])

    def cut(self, raw: bytes) -> bool:
        """Whether a batch line may go on in the next: its usual end is missing, or it is as wide as the terminal."""
        if self.width and len(raw.rstrip()) > self.width:
            self.width = 0
        return bool(self.width and len(raw) >= self.width - 1) or unfinished(raw)

    def hold(self, line: Line) -> None:
        """Wait for what follows ``line``, which is ``cut``."""
        self.first, self.raw, self.pieces = line, line.raw, [line.message]

    def goes_on(self, line: Line) -> bool:
        """Whether ``line`` was the next piece of the line held, which it then has been added to."""
        first = self.first
        if first is None or line.prefixed or len(self.pieces) > _MOST_BREAKS:
            return False
        width, piece = len(first.raw.rstrip(b"\r")), line.message
        full = len(self.pieces) == 1 or len(self.pieces[-1]) >= width - 1
        if not full or width < _NARROWEST or not piece.strip() or len(piece) > width + 1:
            return False
        before, after = _best(self.pieces), _best([*self.pieces, piece])
        if not after or not (":" in piece or _told(after) != _told(before)):
            return False
        self.pieces.append(piece)
        self.raw += b"\n" + line.raw
        self.width = max(self.width, width)
        return True

    def release(self) -> Line | None:
        """The line held, whole; nothing is held any longer. Of one that was broken, ``raw`` has the newlines."""
        line, pieces = self.first, self.pieces
        self.first, self.pieces = None, []
        return replace(line, raw=self.raw, message=_best(pieces)) if line is not None and len(pieces) > 1 else line


def unfinished(raw: bytes) -> bool:
    """Whether a batch line lacks what every release prints near its end."""
    rated = b"Decode batch" in raw or b"put throughput" in raw
    ends = raw.rstrip()[-1:] in _ENDS
    return not ends or _QUEUE.search(raw) is None or (rated and _RATE.search(raw) is None)


def _best(pieces: list[str]) -> str:
    """Of the readings that are a list of fields the one that tells most; at a break a blank may be gone."""
    if len(pieces) == 1:
        return pieces[0]
    glue = product(("", " "), repeat=len(pieces) - 1)
    texts = (pieces[0] + "".join(map("".join, zip(blanks, pieces[1:], strict=True))) for blanks in glue)
    readings = (text for text in texts if _FIELDS.fullmatch(text, _start(text)))
    return _LOST_BLANK.sub(r"\1 ", max(readings, key=lambda text: len(_told(text)), default=""))


def _start(text: str) -> int:
    return text.find(" batch") + len(" batch")


def _told(text: str) -> dict[str, float]:
    return dict(fields(text[_start(text) :].encode("utf-8", "replace")))
