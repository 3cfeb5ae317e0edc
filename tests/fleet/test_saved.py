"""Saved logs that are read behind an open dashboard: the same states as read before, sooner to look at."""

from __future__ import annotations

from pathlib import Path

from tests.fleet.test_readoption import CLUE, STARTUP, batches
from tests.waiting import until
from tui.fleet.saved import SavedLogs, read_log


def test_a_large_log_is_read_behind_and_says_what_is_missing(tmp_path: Path) -> None:
    large, small = tmp_path / "large.log", tmp_path / "small.log"
    large.write_bytes(STARTUP + batches(0, 60_000) + CLUE)
    small.write_bytes(STARTUP)
    source = SavedLogs([large, small], clock=1.0, behind=True)
    first, second = source.states()
    assert first.log.lines == 0 and source.log_path("large") == large
    assert second.log == read_log(small).log
    source.start()
    until(lambda: source.version > 0 and not source.states()[0].log.missing)
    assert source.states()[0].log == read_log(large).log


def test_a_log_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    large = tmp_path / "large.log"
    large.write_bytes(STARTUP + batches(0, 60_000))
    source = SavedLogs([large], clock=1.0, behind=True)
    large.unlink()
    source.start()
    until(lambda: source.version > 0)
    assert "no such file" in source.states()[0].notes[0]
