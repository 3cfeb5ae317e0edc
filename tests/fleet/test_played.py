"""Saved logs that are played by their time stamps."""

from __future__ import annotations

from pathlib import Path

from tests.waiting import until
from tui.fleet.api import Launch
from tui.fleet.played import PlayedLogs
from tui.sglang.model import Stage

LINES = (
    b"no stamp yet\n"
    b"[2025-11-30 02:34:10] Init torch distributed begin.\n"
    b"[2025-11-30 02:34:12] Load weight begin. avail mem=94.41 GB\n"
    b"with the line before\n"
    b"[2025-11-30 02:34:11] told late\n"
    b"[2025-11-30 02:35:12] The server is fired up and ready to roll!\n"
    b"unfinished"
)
OTHER = b"[2026-01-01 00:00:00] Init torch distributed begin.\n"


def test_lines_come_when_their_stamps_say(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(LINES)
    (tmp_path / "b.log").write_bytes(OTHER)
    time_now = [100.0]
    source = PlayedLogs([tmp_path / "a.log", tmp_path / "b.log"], 2.0, lambda: time_now[0])
    copy = source.log_path("a")
    assert copy is not None and source.states()[0].log.stage is not Stage.READY
    folder = copy.parent

    def played() -> bytes:
        return copy.read_bytes()

    source.start()
    try:
        until(lambda: played() == LINES[: LINES.index(b"[2025-11-30 02:34:12]")])
        until(lambda: source.states()[1].log.lines == 1)
        time_now[0] = 101.0
        until(lambda: played() == LINES[: LINES.index(b"[2025-11-30 02:35:12]")])
        until(lambda: source.states()[0].log.stage is Stage.LOADING_WEIGHTS)
        version = source.version
        time_now[0] = 131.0
        until(lambda: played() == LINES)
        until(lambda: source.states()[0].log.ready and source.version > version)
        outcome = source.act(Launch("a")).result(0)
        assert source.log_path("c") is None and not outcome.ok and folder.stat().st_mode & 0o077 == 0
    finally:
        source.close()
    assert not folder.exists() and (tmp_path / "a.log").read_bytes() == LINES
