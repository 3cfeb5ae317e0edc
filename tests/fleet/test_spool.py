"""Spooling a run's log: true offsets, no byte twice, gaps told, private files."""

from __future__ import annotations

import resource
import signal
import stat
from pathlib import Path

import pytest

from tui.fleet.logreader import LogGapError, LogReader, spooled_reader
from tui.fleet.spool import run_spool

LOG = b"".join(b"[2026-11-30 10:00:%02d] line %d\n" % (n % 60, n) for n in range(5000))


def reader(path: Path) -> LogReader:
    made = LogReader(path)
    made.open()
    return made


def test_bytes_land_at_their_offsets_and_overlap_is_read_once(tmp_path: Path) -> None:
    log = reader(tmp_path / "a.log")
    first = log.feed(0, LOG[:100_000])
    second = log.feed(50_000, LOG[50_000:])
    assert first is not None and second is not None and second.lines == 5000
    assert log.feed(0, LOG[:10]) is None
    assert (tmp_path / "a.log").read_bytes() == LOG


def test_a_gap_says_what_is_wanted(tmp_path: Path) -> None:
    log = reader(tmp_path / "a.log")
    log.feed(0, LOG[:10])
    with pytest.raises(LogGapError) as gap:
        log.feed(20, LOG[20:30])
    assert (gap.value.have, gap.value.got) == (10, 20)


def test_an_earlier_session_is_continued(tmp_path: Path) -> None:
    reader(tmp_path / "a.log").feed(0, LOG[:77_777])
    again = LogReader(tmp_path / "a.log")
    spooled = again.open()
    assert spooled is not None and again.offset == 77_777
    rest = again.feed(77_777, LOG[77_777:])
    assert rest is not None and rest.lines == 5000


def test_files_are_private_and_old_runs_go(tmp_path: Path) -> None:
    for n in range(9):
        path = run_spool(tmp_path, "dflash", "gpu0", f"run{n}")
        reader(path).close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    kept = {p.stem for p in path.parent.iterdir()}
    assert "run8" in kept and len(kept) == 5


@pytest.mark.parametrize("name", ["../../etc", "a/b", "..", ".", "gpu 0\n", "ü"])
def test_no_name_leaves_the_folder(tmp_path: Path, name: str) -> None:
    path = run_spool(tmp_path, name, name, name)
    assert path.resolve().is_relative_to(tmp_path.resolve())
    assert len(path.relative_to(tmp_path).parts) == 3
    assert run_spool(tmp_path, "p", "s", name) != run_spool(tmp_path, "p", "s", name + "x")


def test_a_spool_that_cannot_be_written_hides_no_log(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    nowhere = spooled_reader(tmp_path / "file", "dflash", "gpu0", "run1")
    directory = LogReader(tmp_path)
    for log in (nowhere, directory):
        assert log.open() is None
        facts = log.feed(0, LOG)
        assert facts is not None and facts.lines == 5000
        assert "not kept on this side" in log.trouble and str(tmp_path) in log.trouble


def test_a_disk_that_fills_up_hides_no_log(tmp_path: Path) -> None:
    log = reader(tmp_path / "a.log")
    log.feed(0, LOG[:1000])
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    former = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
        facts = log.feed(1000, LOG[1000:])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, former)
    assert facts is not None and facts.lines == 5000 and "file too large" in log.trouble
