"""Reading logs of any size and shape: following, scrolling, filters, search, bytes that no terminal may get."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.view import sources
from tui.view.draw.row import plain, width
from tui.view.log.clean import MAX_BYTES, shown
from tui.view.log.file import LogFile
from tui.view.log.filters import FILTERS, Choice
from tui.view.log.query import Query
from tui.view.log.reader import LogReader
from tui.view.log.search import Hits, find


def reader(path: Path, columns: int = 60, rows: int = 5) -> LogReader:
    made = LogReader(path)
    made.draw(columns, rows)
    return made


def screen(of: LogReader) -> list[str]:
    return [line.rstrip("▐ ") for line in plain(of.draw(of.columns, of.rows)).split("\n")]


def numbered(folder: Path, count: int) -> Path:
    path = folder / "numbered.log"
    path.write_text("".join(f"line {n}\n" for n in range(count)))
    return path


def test_follows_a_growing_file(tmp_path: Path) -> None:
    path = numbered(tmp_path, 10)
    log = reader(path)
    assert screen(log) == [f"line {n}" for n in range(5, 10)]
    with path.open("a") as file:
        file.write("line 10\nline 1")
    assert log.look()
    assert screen(log) == [f"line {n}" for n in range(7, 11)] + ["line 1"]
    with path.open("a") as file:
        file.write("1\n")
    assert log.look()
    assert screen(log)[-2:] == ["line 10", "line 11"]
    assert not log.look()


def test_stays_where_it_was_scrolled_to(tmp_path: Path) -> None:
    path = numbered(tmp_path, 1000)
    log = reader(path)
    log.scroll(-10)
    before = screen(log)
    assert before == [f"line {n}" for n in range(985, 990)]
    with path.open("a") as file:
        file.write("more\n" * 50)
    log.look()
    assert screen(log) == before
    log.scroll(10_000)
    assert log.following and screen(log)[-1] == "more"


@pytest.mark.parametrize("wrapped", [False, True])
def test_every_line_is_reached_once_by_scrolling(tmp_path: Path, wrapped: bool) -> None:
    path = numbered(tmp_path, 30_000)
    log = reader(path)
    log.wrapped = wrapped
    log.home()
    assert screen(log)[0] == "line 0" and not log.following
    seen = []
    while not log.following:
        seen += screen(log)
        log.scroll(5)
    seen += screen(log)
    assert list(dict.fromkeys(seen)) == [f"line {n}" for n in range(30_000)]
    for _ in range(6000):
        log.scroll(-5)
    assert screen(log)[0] == "line 0"


def test_page_up_then_down_is_where_it_was(tmp_path: Path) -> None:
    log = reader(numbered(tmp_path, 5000))
    log.scroll(-2000)
    before = screen(log)
    log.scroll(-1234)
    log.scroll(1234)
    assert screen(log) == before


def test_a_huge_file_is_opened_at_its_end_by_a_few_reads(tmp_path: Path) -> None:
    path = tmp_path / "huge.log"
    with path.open("wb") as file:
        file.truncate(2_000_000_000)  # sparse: 2 GB of NULs, one line
        file.seek(0, 2)
        file.write(b"\n" + b"".join(b"end %d\n" % n for n in range(100)))
    log = reader(path)
    assert screen(log)[-1] == "end 99"
    assert len(log.window.lines) < 1000


def test_an_endless_line_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_bytes(b"before\n" + b"x" * 5_000_000 + b"\nafter\n")
    log = reader(path)
    assert [line[:6] for line in screen(log)] == ["before", "xxxxxx", "after"]
    assert all(len(line.text) <= MAX_BYTES for line in log.window.lines)
    log.home()
    log.look()  # what a look's budget did not reach, the next one does
    assert screen(log)[0] == "before"


def test_a_replaced_file_is_read_anew(tmp_path: Path) -> None:
    path = numbered(tmp_path, 50)
    log = reader(path)
    fresh = tmp_path / "fresh"
    fresh.write_text("new run\n")
    fresh.replace(path)
    assert log.look()
    assert screen(log) == ["new run"]


def test_a_file_that_is_not_there_yet(tmp_path: Path) -> None:
    path = tmp_path / "later.log"
    log = reader(path)
    assert screen(log) == [""]
    path.write_text("hello\n")
    assert log.look()
    assert screen(log) == ["hello"]


def test_probes_are_hidden_until_asked_for(tmp_path: Path) -> None:
    log = reader(sources.write_log(tmp_path, "a", "ready", decodes=9), rows=30)
    assert "/health" not in "\n".join(screen(log))
    log.choose(Choice(probes=True))
    assert "\n".join(screen(log)).count("/health") == 3


def test_filters(tmp_path: Path) -> None:
    log = reader(sources.write_log(tmp_path, "a", "start", "failure"), columns=200, rows=30)
    shown_by = {}
    for preset in FILTERS:
        log.choose(Choice(preset))
        shown_by[preset.name] = "\n".join(screen(log))
    assert "Allocating 150.10 GB" in shown_by["caches"] and "Load weight" not in shown_by["caches"]
    assert "Load weight begin" in shown_by["stages"]
    assert "hit an exception" in shown_by["problems"] and "Allocating" not in shown_by["problems"]
    assert shown_by["batches"].strip() == ""


def test_a_bar_is_one_living_line(tmp_path: Path) -> None:
    path = tmp_path / "bar.log"
    path.write_bytes(b"begin\n\r 0%| 0/4\r25%| 1/4")
    log = reader(path)
    assert screen(log) == ["begin", "25%| 1/4"]
    with path.open("ab") as file:
        file.write(b"\r50%| 2/4\r")
    log.look()
    assert screen(log) == ["begin", "50%| 2/4"]
    with path.open("ab") as file:
        file.write(b"\r100%| 4/4 [00:00<00:00, 5.37it/s][2025-11-30 02:34:40 TP0] Capture end\n")
    log.look()
    assert screen(log) == ["begin", "100%| 4/4 [00:00<00:00, 5.37it/s]", "02:34:40 TP0 Capture end"]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x1b[1;33mwarning\x1b[0m", "warning"),
        (b"a\x1b]0;title\x07b", "ab"),
        (b"a\x1b]52;c;aGVsbG8=\x1b\\b", "ab"),
        (b"bell\x07 back\x08 nul\x00 del\x7f", "bell back nul del"),
        ("\u202egnp.exe\u2066".encode(), "gnp.exe"),
        (b"\x9b31mred \xff\xfe", "\ufffd31mred \ufffd\ufffd"),
        (b"\xc2\x9b31m", "31m"),
        (b"tab\tstop", "tab     stop"),
        (b"[not] [markup]", "[not] [markup]"),
        (b"--api-key sk-abcdefghijklmnop1234", "--api-key ****"),
        (b"--api-k\x1b[0mey sk-abcdefghijklmnop1234", "--api-key ****"),
    ],
)
def test_nothing_unsafe_or_secret_is_shown(raw: bytes, text: str) -> None:
    assert shown(raw) == (text,)


def test_any_bytes_give_printable_text() -> None:
    raw = bytes(range(256)) * 20
    for text in shown(raw.replace(b"\n", b"")):
        assert "\x1b" not in text and all(c.isprintable() for c in text if ord(c) < 0x2000)


def test_rows_are_never_wider_than_the_screen(tmp_path: Path) -> None:
    path = tmp_path / "wide.log"
    path.write_text("漢字" * 100 + "\n" + "x" * 500 + "\n" + "é" * 70 + "\n")
    for wrapped in (False, True):
        log = reader(path, columns=37, rows=40)
        log.wrapped = wrapped
        assert all(width(row) <= 37 for row in log.draw(37, 40))


def test_long_lines_are_shifted_or_wrapped(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_text("".join(chr(65 + n % 26) for n in range(100)) + "\n")
    log = reader(path, columns=31, rows=6)
    assert screen(log)[0] == "ABCDEFGHIJKLMNOPQRSTUVWXYZABC›"
    log.shift(8)
    assert screen(log)[0] == "‹JKLMNOPQRSTUVWXYZABCDEFGHIJK›"
    log.x, log.wrapped = 0, True
    assert "".join(screen(log)) == "".join(chr(65 + n % 26) for n in range(100))


def test_search_finds_every_line_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "found.log"
    path.write_text("".join(f"{'Needle' if n % 100 == 7 else 'hay'} {n}\n" for n in range(1000)))
    file = LogFile(path)
    file.look()
    text = path.read_text()

    def lines(back: bool, start: int) -> list[str]:
        return [text[at:].split("\n", 1)[0] for at in find(file, Query("needle"), start, back=back) if at is not None]

    expected = [f"Needle {n}" for n in range(7, 1000, 100)]
    assert lines(False, 0) == expected
    assert lines(True, file.size) == expected[::-1]
    assert [at for at in find(file, Query("NEEDLE"), 0) if at is not None] == []
    assert Query("needle").pattern.search("NEEDLE") and not Query("Needle").pattern.search("needle")


async def test_hits_are_counted_as_far_as_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("a hit, and a hit\nnothing\n" * 30)
    file = LogFile(path)
    file.look()
    some, all_ = (
        Hits(file, Query("hit"), lambda offset: True, most=9),
        Hits(file, Query("hit"), lambda offset: offset > 0),
    )
    await some.count()
    await all_.count()
    assert (some.place(0), some.place(25 * 20)) == ("1 of 9+", "9+ hits")
    assert (all_.place(0), all_.place(25)) == ("29 hits", "1 of 29")
    with path.open("a") as more:
        more.write("a hit\n")
    file.look()
    await all_.count()
    assert all_.place(25 * 30) == "30 of 30"
