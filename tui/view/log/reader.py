"""``LogReader``: where somebody reads in a log, and what is on the screen there. No Textual; tested on files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

from rich.cells import cell_len

from tui.view.draw.row import Row, Span, width
from tui.view.log.file import LogFile, line_start
from tui.view.log.filters import INKS, Choice, keeper, kind_of, never
from tui.view.log.heads import HEAD, body
from tui.view.log.rows import cut, marked, picked, timed, wrapped
from tui.view.log.window import LogLine, Window

_SHORT = 192
"""Bytes of a line. More new bytes between two looks than a screen of such lines, unfiltered: the end is looked at anew,
and what is between is not read."""

_STAMP = re.compile(r"\[\d{4}-\d\d-\d\d (\d\d:\d\d:\d\d(?:\.\d+)?)((?: [A-Z_]+\d+)*)\] ?")
TIMES = ("short", "full", "none")
"""How time stamps are shown: without their date, as they are, not at all."""
_KEPT: dict[str, str | Callable[[re.Match[str]], str]] = {
    "short": r"\1\2 ",
    "none": lambda stamp: f"{stamp[2].strip()} " if stamp[2] else "",
}
_DATED = re.compile(r"\[\d{4}-(\d\d-\d\d) " + _STAMP.pattern.partition(" ")[2])
_SPARE = 400
NO_HEADS: Mapping[str, str] = {}


class LogReader:
    """Follows the end of a file, or stays where it was scrolled to while the file grows.

    ``top`` is the index of the first line on the screen, ``sub`` the row within it where lines are wrapped;
    both count only while not ``following``. ``x`` is the first column shown where lines are cut. ``heads`` is what
    stands before the lines of a merged log, with its inks: it stays where it is, and tells nothing of a line's kind.
    """

    def __init__(self, path: Path | None, heads: Mapping[str, str] = NO_HEADS) -> None:
        self.file = LogFile(path)
        self.heads = heads
        self.following = True
        self.wrapped = False
        self.times = TIMES[0]
        self.days = False  # its lines are of several days, which the short times tell
        self.x = 0
        self.top = 0
        self.sub = 0
        self.found: re.Pattern[str] | None = None
        self.hit: int | None = None  # the offset of the line that a search stands on
        self.picked: tuple[int, int] | None = None  # offsets of the lines where picking began, and ended
        self.choice = Choice()
        self.columns, self.rows = 80, 24
        self.window = self._fresh()
        self._generation = 0
        self._drawn: dict[int, tuple[LogLine, list[Row]]] = {}  # what is on the screen, by identity
        self._drawn_as: tuple[object, ...] = ()
        self._offsets: list[int] = []  # of the rows on the screen
        self.look()

    # the file

    def look(self) -> bool:
        """Take in what the file has become; whether the screen may be different."""
        before = self.file.size
        size = self.file.look()
        if self.file.generation != self._generation:
            self._generation = self.file.generation
            self.follow()
            return True
        if not self.following:
            short = len(self.window.lines) - self.top < self.rows and not self.window.at_end
            return size != before or short  # drawing reads on
        filling = len(self.window.lines) < self.rows and not self.window.at_start
        if size == before and not filling and self.window.at_end:
            return False
        if size - self.window.high > _SHORT * (self.rows + 1) and self.choice.all:
            self.window.to_end(self.rows + 1)
        else:
            self.window.more_below(1 << 30)
        self._fill_above()
        self.window.trim_above(3 * self.rows + _SPARE)
        return True

    def choose(self, choice: Choice) -> None:
        """Show other lines, staying near the present place."""
        place = None if self.following else self._place()
        self.choice = choice
        self.window = self._fresh()
        if place is None:
            self.follow()
        else:
            self.go_to(place)

    def _fresh(self) -> Window:
        return Window(self.file, self.kind_of, keeper(self.choice), never(self.choice))

    def kind_of(self, text: str) -> str:
        """The kind of a line, whatever stands before it."""
        return kind_of(body(text) if self.heads else text)

    def _fill_above(self) -> int:
        missing = self.rows + 1 - len(self.window.lines) - len(self.window.living)
        return self.window.more_above(missing) if missing > 0 else 0

    # where one reads

    def follow(self) -> None:
        """Go to the end and stay there."""
        self.following = True
        self.window.to_end(self.rows + 1)
        self._fill_above()

    def go_to(self, offset: int, above: int = 0) -> None:
        """Put the line at ``offset`` on the screen, ``above`` rows below its upper edge."""
        self.following = False
        self.window.reset(line_start(self.file, offset) if offset else 0)
        self.window.more_below(self.rows * 2)
        self.top, self.sub = 0, 0
        if above:
            self.scroll(-above)
        self._settle()

    def home(self) -> None:
        self.go_to(0)

    def scroll(self, rows: int) -> None:
        """Move down by ``rows`` (up where negative). Reaching the end follows again."""
        if self.following:
            if rows >= 0:
                return
            self.top, self.sub = self._tail_top()
            self.following = False
        if rows < 0:
            self._up(-rows)
        else:
            self._down(rows)

    def shift(self, columns: int) -> None:
        """Move to the right by ``columns`` (left where negative)."""
        self.x = max(0, self.x + columns)

    def _up(self, rows: int) -> None:
        while rows > 0:
            if self.sub > 0:
                step = min(self.sub, rows)
                self.sub -= step
                rows -= step
                continue
            if self.top == 0:
                self.top += self.window.more_above(rows + self.rows)
                if self.top == 0:
                    break
            self.top -= 1
            self.sub = self._height(self.window.lines[self.top])
        self.window.trim_below(self.top + 3 * self.rows + _SPARE)

    def _down(self, rows: int) -> None:
        for _ in range(rows):
            if self._bottom_seen():
                self.follow()
                return
            lines = self.window.lines
            if self.sub + 1 < self._height(lines[self.top]):
                self.sub += 1
            else:
                self.top, self.sub = self.top + 1, 0
        if self._bottom_seen():
            self.follow()
            return
        gone = self.window.trim_above(len(self.window.lines) - max(0, self.top - 3 * self.rows - _SPARE))
        self.top -= gone

    def _bottom_seen(self) -> bool:
        """Whether the newest line is on the screen, reading on below it as far as needed."""
        while len(self.window.lines) - self.top <= self.rows and not self.window.at_end:
            if not self.window.more_below(self.rows * 2):
                break
        if len(self.window.lines) - self.top > self.rows:
            return False
        heights = sum(self._height(line) for line in islice(self._all(), self.top, None)) - self.sub
        return heights <= self.rows and self.window.at_end

    def _settle(self) -> None:
        """Follow where the screen would not be full."""
        if self._bottom_seen():
            self.follow()

    def _tail_top(self) -> tuple[int, int]:
        """Where the screen begins while following."""
        left = self.rows
        lines = list(self._all())
        for index in range(len(lines) - 1, -1, -1):
            left -= self._height(lines[index])
            if left <= 0:
                return index, -left
        return 0, 0

    def _place(self) -> int:
        lines = self.window.lines
        return lines[min(self.top, len(lines) - 1)].offset if lines else self.window.high

    def place(self) -> int:
        """The offset of the first line on the screen."""
        if self.following:
            lines = list(self._all())
            return lines[self._tail_top()[0]].offset if lines else self.file.size
        return self._place()

    @property
    def progress(self) -> float:
        """How far into the file the screen is, 0 to 1."""
        return 1.0 if self.following or not self.file.size else self._place() / self.file.size

    # picking lines

    def pick(self, offset: int, *, extend: bool = False) -> None:
        """Pick the line at ``offset``, or all from where picking began up to it."""
        self.picked = (self.picked[0] if extend and self.picked else offset, offset)

    def pick_next(self, step: int, *, extend: bool = False) -> None:
        """Pick the line ``step`` lines (1 or -1) below the one that was picked last, and show it; without one, the
        last on the screen while following, else the first. The screen stands still from then on."""
        if self.following:
            self.top, self.sub = self._tail_top()
            self.following = False
            lines = self._all()
            begin = lines[-1].offset if lines else None
        else:
            begin = self._place()
        if self.picked is None:
            if begin is not None:
                self.pick(begin)
            return
        if not self._near(self.picked[1]):
            self.go_to(self.picked[1], above=self.rows // 3)
            self.following = False
        index, lines = self._beside(self.picked[1], step)
        if index is not None:
            self.pick(lines[index].offset, extend=extend)
            self._show_line(index, lines)

    def _near(self, offset: int) -> bool:
        lines = self._all()
        return bool(lines) and lines[0].offset <= offset <= lines[-1].offset

    def _beside(self, offset: int, step: int) -> tuple[int | None, list[LogLine]]:
        """The place of the next line with another offset, reading on where there is none yet."""
        for more in (True, False):
            lines = self._all()
            places = range(len(lines)) if step > 0 else range(len(lines) - 1, -1, -1)
            for index in places:
                if lines[index].offset > offset if step > 0 else lines[index].offset < offset:
                    return index, lines
            if more and step < 0:
                self.top += self.window.more_above(self.rows)
            elif more:
                self.window.more_below(self.rows)
        return None, lines

    def _show_line(self, index: int, lines: list[LogLine]) -> None:
        if index < self.top or (index == self.top and self.sub):
            self.top, self.sub = index, 0
        while self.top < index and sum(map(self._height, lines[self.top : index + 1])) - self.sub > self.rows:
            self.top, self.sub = self.top + 1, 0

    def offset_at(self, row: int) -> int | None:
        """The line that stands in a row of the screen as it was drawn last."""
        return self._offsets[row] if 0 <= row < len(self._offsets) else None

    # the screen

    def draw(self, columns: int, rows: int, *, bar: bool = True) -> list[Row]:
        """The screen: ``rows`` rows of ``columns``, the last of which is the scroll bar's (empty without ``bar``)."""
        if (columns, rows) != (self.columns, self.rows):
            self.columns, self.rows = columns, rows
            if self.following:
                self._fill_above()
        if not self.following:
            self._bottom_seen()
        top, sub = self._tail_top() if self.following else (self.top, self.sub)
        out: list[Row] = []
        offsets: list[int] = []
        drawn = self._drawn if self._drawn_as == self._manner else {}
        self._drawn, self._drawn_as = {}, self._manner
        for line in islice(self._all(), top, top + rows + 1):
            known = drawn.get(id(line))
            self._drawn[id(line)] = known = known or (line, self._line_rows(line))
            out += known[1]
            offsets += [line.offset] * len(known[1])
            if len(out) - sub >= rows:
                break
        out, self._offsets = out[sub : sub + rows], offsets[sub : sub + rows]
        return self._with_bar(out, columns - 1, rows) if bar else out

    @property
    def _manner(self) -> tuple[object, ...]:
        """All that the rows of a line depend on but the line."""
        return (self.columns, self.x, self.wrapped, self.times, self.days, self.found, self.hit, self.picked)

    def _all(self) -> list[LogLine]:
        return [*self.window.lines, *self.window.living]

    def _height(self, line: LogLine) -> int:
        if not self.wrapped:
            return 1
        head, text = self._parts(line)
        return len(wrapped(text, max(1, self.columns - 1 - cell_len(head))))

    def _text(self, line: LogLine) -> str:
        if self.days and self.times == "short":
            return _DATED.sub(r"\1 \2\3 ", line.text, count=1)
        return line.text if self.times == "full" else _STAMP.sub(_KEPT[self.times], line.text, count=1)

    def _line_rows(self, line: LogLine) -> list[Row]:
        head, text = self._parts(line)
        ink, columns, current = INKS.get(line.kind, "text"), self.columns - 1, line.offset == self.hit
        room = max(1, columns - cell_len(head))
        pieces = wrapped(text, room) if self.wrapped else [cut(text, self.x, room)]
        made: list[Row] = []
        for place, piece in enumerate(pieces):
            row = timed(piece, ink) if not place and (self.wrapped or not self.x) else [Span(piece, ink)]
            if head:
                row = [Span(head if not place else " " * cell_len(head), self.heads.get(head, "muted")), *row]
            made.append(marked(row, self.found, current=current))
        if self.picked and min(self.picked) <= line.offset <= max(self.picked):
            return [picked(row, columns) for row in made]
        return made

    def _parts(self, line: LogLine) -> tuple[str, str]:
        """What stands before a line of a merged log, and the line."""
        text = self._text(line)
        head = HEAD.match(text) if self.heads else None
        return (head[0], text[head.end() :]) if head else ("", text)

    def _with_bar(self, out: list[Row], columns: int, rows: int) -> list[Row]:
        if self.window.at_start and len(self._all()) <= rows and self.window.at_end:
            return out
        thumb = min(rows - 1, int(self.progress * rows))
        out += [[] for _ in range(rows - len(out))]
        return [
            [*row, Span(" " * (columns - width(row))), Span("▐" if n == thumb else " ", "muted")]
            for n, row in enumerate(out)
        ]
