"""Searching with expressions and case, and filters of one's own: in the reader, and by the keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.view.sources import FixedSource
from tests.view.test_app import running
from tests.view.test_log_reader import reader, screen
from tui.view.log import search
from tui.view.log.file import LogFile
from tui.view.log.filters import FILTERS, Choice
from tui.view.log.line import LogLine
from tui.view.log.pane import LogPane
from tui.view.log.query import Query
from tui.view.snapshot import screen_text


@pytest.mark.parametrize("slice_size", [40, 1000, 1 << 20])
def test_an_expression_finds_the_same_lines_both_ways(
    tmp_path: Path, slice_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_LINES", slice_size)
    path = tmp_path / "log"
    lines = [f"{'TP' if n % 7 else 'DP'}{n} took {n * 13} ms" for n in range(300)]
    lines[50:50] = ["", "TP9 took " + "x" * 300, "é TP5 took 1 ms"]
    path.write_text("\n".join(lines) + "\nTP1 took 7 ms, unfinished")
    file = LogFile(path)
    file.look()
    text = path.read_bytes()
    query = Query(r"TP\d*5 took \d+ ms$", regex=True)
    expected = [line for line in lines if query.pattern.search(line)]
    assert len(expected) > 20

    def found(back: bool, start: int) -> list[str]:
        places = [at for at in search.find(file, query, start, back=back) if at is not None]
        return [text[at:].split(b"\n", 1)[0].decode() for at in places]

    assert found(False, 0) == expected
    assert found(True, file.size) == expected[::-1]
    empty = [at for at in search.find(file, Query("^$", regex=True), 0) if at is not None]
    assert empty == [at for at in search.find(file, Query("^$", regex=True), file.size, back=True) if at is not None]
    assert len(empty) == 1


@pytest.mark.parametrize(
    ("term", "words"),
    [
        ("(unclosed", "no regular expression: missing ), unterminated subpattern at character 1"),
        ("a[", "no regular expression: unterminated character set at character 2"),
        ("*", "no regular expression: nothing to repeat at character 1"),
        ("(a+)+$", "a repeat or choice inside a repeat may take for ever"),
        ("((a|b)c){2,}", "a repeat or choice inside a repeat may take for ever"),
        (r"(\d+,)*", "a repeat or choice inside a repeat may take for ever"),
        ("(a{1,}b)*", "a repeat or choice inside a repeat may take for ever"),
        ("(ab)+", ""),
        (r"[(+]+\(a+\)+", ""),
        ("(a+)(b|c)d+", ""),
        ("(warn|error).*disk", ""),
    ],
)
def test_what_is_wrong_with_an_expression_is_said_in_words(term: str, words: str) -> None:
    assert Query(term, regex=True).wrong == words
    assert Query(term).wrong == "" and Query(term).pattern.search(f"as it is: {term}")


@pytest.mark.parametrize(
    ("query", "fold"),
    [
        (Query("abc"), True),
        (Query("Abc"), False),
        (Query("abc", case=True), False),
        (Query("Abc", case=False), True),
        (Query(r"\Sbc", regex=True), True),
    ],
)
def test_case_counts_where_the_term_has_capitals_or_as_told(query: Query, fold: bool) -> None:
    assert query.fold is fold and bool(query.pattern.search("xABCx")) is (fold or query.term == "ABC")


def test_filters_of_ones_own_beside_a_preset(tmp_path: Path) -> None:
    path = tmp_path / "log"
    batch = "[2025-11-30 02:36:00 TP0] Decode batch, #running-req: {}, gen throughput (token/s): 5\n"
    path.write_text("".join(batch.format(n) for n in range(5000)) + "disk full\nDISK \x1b[1mfu\x1b[0mll again\n")
    log = reader(path)
    log.choose(Choice(include=Query("disk full")))
    log.look()
    assert screen(log) == ["disk full", "DISK full again"]
    log.choose(Choice(include=Query("disk"), exclude=Query("again$", regex=True)))
    assert screen(log) == ["disk full"]
    log.choose(Choice(FILTERS[4], include=Query("req: 49[0-9]{2},", regex=True), exclude=Query("4999")))
    assert screen(log)[-1].endswith("#running-req: 4998, gen through›") and log.following
    log.choose(Choice(FILTERS[4], exclude=Query("Decode")))
    while not log.window.at_start:
        log.look()
    assert screen(log) == [""]


async def test_the_switches_of_the_search_line(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        pane = app.query_one(LogPane)
        await pilot.press("slash", *"allocating .* mamba cache$")
        await pilot.pause()
        assert "[ ] regex ^r [ ] case alt+c" in screen_text(app)
        await pilot.press("enter")
        await app.workers.wait_for_complete()
        assert "not found" in pane.status()
        await pilot.press("slash", "ctrl+r", *"allocating .* mamba cache")
        await pilot.pause()
        assert "[x] regex ^r [ ] case alt+c" in screen_text(app)
        await pilot.press("enter")
        await app.workers.wait_for_complete()
        assert "/allocating .* mamba cache regex" in pane.status() and "1 of 1" in pane.status()
        await pilot.press("slash", "alt+c", *"allocating", "enter")
        await app.workers.wait_for_complete()
        assert "not found" in pane.status() and "case counts" in pane.status()


async def test_a_wrong_expression_is_said_and_not_searched_for(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        pane = app.query_one(LogPane)
        await pilot.press("slash", "ctrl+r", *"(allo", "enter")
        await pilot.pause()
        assert "no regular expression: missing )" in screen_text(app)
        assert app.query_one(LogLine).has_class("open") and not pane.query_of("search")
        await pilot.press(")", "enter")
        await app.workers.wait_for_complete()
        assert "4 of 4" in pane.status()


async def test_a_filter_holds_while_it_is_typed_and_is_remembered(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        pane = app.query_one(LogPane)
        await pilot.press("i", *"mamba c")
        await pilot.pause()
        assert "hierarchical Mamba cache" in screen_text(app) and "Decode batch" not in screen_text(app)
        await pilot.press("enter", "x", *"hierarchical", "enter")
        await pilot.pause()
        assert "hierarchical" not in screen_text(app).replace("without /hierarchical", "")
        await pilot.press("2")
        await pilot.pause()
        assert "only /mamba c" not in pane.status()
        await pilot.press("1", "i")
        await pilot.pause()
        assert "only /mamba c · without /hierarchical" in pane.status()
        assert app.query_one(LogLine).query_now == Query("mamba c")
        await pilot.press("escape", "x", "escape")
        await pilot.pause()
        assert "only" not in pane.status() and "without" not in pane.status() and "Decode batch" in screen_text(app)


@pytest.mark.parametrize("columns", [120, 80, 60])
async def test_the_switches_stay_beside_what_is_wrong(source: FixedSource, columns: int) -> None:
    async with running(source, size=(columns, 24)) as (app, pilot):
        await pilot.press("slash", "ctrl+r", "(")
        await pilot.pause()
        row = next(row for row in screen_text(app).split("\n") if "regex ^r" in row)
        assert "/(" in row and "missing" in row and "[x] regex ^r [ ] case alt+c" in row
