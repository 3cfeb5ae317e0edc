"""Going to problems, stages and the cause of a failure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.view.sources import HOST_OOM, FixedSource, failed
from tests.view.test_app import running
from tui.sglang.lines import local_seconds
from tui.view.app import HcsApp
from tui.view.glance import STAGE_NAMES
from tui.view.log import search
from tui.view.log.file import LogFile
from tui.view.log.jumps import at_time, numbered, problems
from tui.view.log.pane import LogPane
from tui.view.screens.stages import Stages
from tui.view.snapshot import screen_text

TROUBLED = (
    "Traceback (most recent call last):\n"
    '  File "a.py", line 1, in b\n'
    "ValueError: first\n"
    "fine\n"
    "[2025-11-30 02:36:01] Decode batch, #running-req: 1, gen throughput (token/s): 5\n"
    "[2025-11-30 02:36:02] WARNING second\n"
    "[2025-11-30 02:36:02] Load weight begin. avail mem=94.41 GB\n"
    "fine again\n"
    "ERROR third"
)


@pytest.mark.parametrize("size", [100, 1 << 20])
def test_a_traceback_is_one_problem_both_ways(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_LINES", size)
    path = tmp_path / "log"
    path.write_text(TROUBLED)
    file = LogFile(path)
    file.look()
    expected = [0, TROUBLED.index("[2025-11-30 02:36:02] W"), TROUBLED.index("ERROR")]
    assert [at for at in problems(file, 0) if at is not None] == expected
    assert [at for at in problems(file, file.size, back=True) if at is not None] == expected[::-1]


@pytest.mark.parametrize("size", [100, 1 << 20])
def test_lines_by_number_and_by_time(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_LINES", size)
    monkeypatch.setattr("tui.view.log.jumps.SLICE", size)
    path = tmp_path / "log"
    path.write_text(TROUBLED)
    file = LogFile(path)
    file.look()
    found = [[at for at in numbered(file, n) if at is not None] for n in range(1, 11)]
    starts = [0, *(n + 1 for n, char in enumerate(TROUBLED) if char == "\n")]
    assert found == [[at] for at in starts] + [[]]
    second = local_seconds("2025-11-30 02:36:02")
    assert second is not None
    assert [at for at in at_time(file, second + 0.3) if at is not None] == [TROUBLED.index("[2025-11-30 02:36:02] L")]
    assert [at for at in at_time(file, second - 60) if at is not None] == [TROUBLED.index("[2025-11-30 02:36:01]")]
    assert [at for at in at_time(file, second + 1) if at is not None] == []


def picked(app: HcsApp, source: FixedSource) -> str:
    """The picked line, and that it is seen."""
    reader = app.query_one(LogPane).reader
    assert reader is not None and reader.picked is not None
    line = source.logs[app.selected or ""].read_bytes()[reader.picked[1] :].split(b"\n", 1)[0].decode()
    assert line[30:60] in screen_text(app)
    return line


async def press(app: HcsApp, pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await app.workers.wait_for_complete()
    await pilot.pause()


async def test_the_next_problem_and_the_one_before(source: FixedSource) -> None:
    with source.logs["gpu0"].open("a") as file:
        file.write("[2025-11-30 02:37:00] WARNING: the last problem of this log\n" + "a line\n" * 60)
    first = "[2025-11-30 02:30:00] ERROR: the first problem of this log\n"
    source.logs["gpu0"].write_text(first + source.logs["gpu0"].read_text())
    async with running(source) as (app, pilot):
        pane = app.query_one(LogPane)
        await press(app, pilot, "right_square_bracket")
        assert "no problem further down" in pane.status()
        await press(app, pilot, "left_square_bracket")
        assert "the last problem" in picked(app, source)
        await press(app, pilot, "left_square_bracket")
        assert "the first problem" in picked(app, source)
        await press(app, pilot, "left_square_bracket")
        assert "no problem further up" in pane.status()
        await press(app, pilot, "f", "right_square_bracket")
        assert "the last problem" in picked(app, source) and "filter put aside" in pane.status()
        await press(app, pilot, "escape")
        assert pane.reader is not None and pane.reader.picked is None


async def test_the_cause_of_a_failure(source: FixedSource) -> None:
    log = source.logs["gpu3"]
    lines = log.read_text().split("\n")
    number = next(n for n, line in enumerate(lines, 1) if line == HOST_OOM.line)
    log.write_text(log.read_text() + "\nlast words" * 80 + "\n")

    state = failed("gpu3", 3)
    source.change("gpu3", log=replace(state.log, failure=replace(HOST_OOM, line_number=number)))
    async with running(source) as (app, pilot):
        await press(app, pilot, "C")
        assert "it has not failed" in screen_text(app)
        await press(app, pilot, "4", "C")
        assert picked(app, source) == HOST_OOM.line


async def test_a_stage_from_the_list(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        await press(app, pilot, "S")
        assert isinstance(app.screen, Stages)
        text = screen_text(app)
        chosen = source.servers[0].log.stages[2]
        began = local_seconds("2025-11-30 02:34:12")
        assert STAGE_NAMES[chosen.stage] in text and "21.4" in text.replace("21s", "21.4")
        source.change("gpu0", log=source.servers[0].log)
        await press(app, pilot, "escape")
        assert not isinstance(app.screen, Stages)

        spans = tuple(replace(s, start_local=began) if s is chosen else s for s in source.servers[0].log.stages)
        source.change("gpu0", log=replace(source.servers[0].log, stages=spans))
        app.look()
        await press(app, pilot, "S", "down", "down", "enter")
        assert "Init torch distributed ends" in picked(app, source)
