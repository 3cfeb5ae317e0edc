"""Picking, copying and saving lines; time stamps and wrapping for all logs."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from textual.widgets import Input

from tests.view.sources import FixedSource
from tests.view.test_app import running
from tests.view.test_log_reader import numbered, reader, screen
from tui.view.app import HcsApp
from tui.view.log.filters import Choice
from tui.view.log.pane import LogPane
from tui.view.log.query import Query
from tui.view.log.save import MOST_COPIED, copied, save, texts
from tui.view.screens.save import SaveAs
from tui.view.snapshot import screen_text


@pytest.mark.parametrize("wrapped", [False, True])
def test_picked_lines_are_seen_wherever_they_are(tmp_path: Path, wrapped: bool) -> None:
    log = reader(numbered(tmp_path, 3000), columns=6)
    log.wrapped = wrapped
    log.pick_next(1)
    assert copied(log, log.picked or (0, 0)) == "line 2999"
    for n in range(2998, 1000, -1):
        log.pick_next(-1)
        assert log.picked is not None and copied(log, log.picked) == f"line {n}"
        assert f"line {n}"[:4] in "".join(screen(log))
    for _ in range(9):
        log.pick_next(1, extend=True)
    assert log.picked and copied(log, log.picked) == "\n".join(f"line {n}" for n in range(1001, 1011))
    for _ in range(12):
        log.pick_next(-1, extend=True)
    assert copied(log, log.picked) == "line 998\nline 999\nline 1000\nline 1001"
    log.follow()
    log.pick_next(-1)
    assert log.picked and copied(log, log.picked) == "line 997"
    log.home()
    log.picked = (0, 0)
    log.pick_next(-1)
    assert log.picked == (0, 0)


def test_what_is_copied_is_clean_masked_and_as_filtered(tmp_path: Path) -> None:
    path = tmp_path / "log"
    stamp = "[2025-11-30 02:36:00 TP0] "
    path.write_text(f"{stamp}--api-key=sk-verysecret \x1b[31mred\x1b[0m\nhidden\n{stamp}end\n" + "x" * 200)
    log = reader(path, columns=20)
    log.choose(Choice(exclude=Query("hidden")))
    text = copied(log, (path.stat().st_size - 200, 0))
    assert "verysecret" not in text and text.split("\n")[1:] == [f"{stamp}end", "x" * 200]
    assert text.startswith(f"{stamp}--api-key=") and text.split("\n")[0].endswith(" red")


def test_too_much_is_not_copied(tmp_path: Path) -> None:
    path = numbered(tmp_path, MOST_COPIED // 5)
    with pytest.raises(ValueError, match=r"Ctrl\+S saves it"):
        copied(reader(path), (0, path.stat().st_size))


async def test_a_saved_log_is_new_private_and_whole(tmp_path: Path) -> None:
    log = reader(numbered(tmp_path, 30_000))
    made = tmp_path / "saved.log"
    assert await save(texts(log, None), made) == 30_000
    assert made.read_bytes() == (log.file.path or made).read_bytes()
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        await save(texts(log, (0, 0)), made)
    assert made.stat().st_size > 100_000


async def test_picking_and_copying_by_the_keys(source: FixedSource, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    monkeypatch.setattr(HcsApp, "copy_to_clipboard", lambda app, text: taken.append(text))
    lines = source.logs["gpu0"].read_text().splitlines()
    shown = [line for line in lines if "GET /health" not in line]
    async with running(source) as (app, pilot):
        pane = app.query_one(LogPane)
        await pilot.press("Y")
        assert not taken and "picks lines first" in screen_text(app)
        await pilot.press("v", "up", "v", "up", "up")
        assert pane.has_focus and "pick more" in pane.status()
        await pilot.press("Y")
        assert taken == ["\n".join(shown[-4:-1])]
        await pilot.press("v")
        assert pane.reader is not None and pane.reader.picked is None
        await pilot.press("shift+up", "shift+up", "Y", "escape")
        assert pane.reader.picked is None and taken[1].split("\n")[0] in shown
        before = screen_text(app)
        await pilot.click(LogPane, offset=(20, 0))
        await pilot.click(LogPane, offset=(20, 2), shift=True)
        await pilot.press("Y")
        assert len(taken[2].split("\n")) == 3 and taken[2].split("\n")[0][28:70] in before


async def test_saving_asks_for_a_new_name(source: FixedSource, tmp_path: Path) -> None:
    made, there = tmp_path / "new.log", tmp_path / "there.log"
    there.write_text("kept")
    async with running(source) as (app, pilot):
        await pilot.press("ctrl+s")
        assert isinstance(app.screen, SaveAs)
        line = app.screen.query_one(Input)
        assert line.value == "gpu0.log"
        for name, words in ((str(there), "exists already"), (str(tmp_path / "no" / "x"), "there is no folder")):
            line.value = name
            await pilot.press("enter")
            await pilot.pause()
            assert isinstance(app.screen, SaveAs) and words in " ".join(screen_text(app).replace("│", " ").split())
        line.value = str(made)
        await pilot.press("enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert there.read_text() == "kept" and "GET /health" in made.read_text()
        assert stat.S_IMODE(made.stat().st_mode) == 0o600 and "lines saved to" in screen_text(app)


async def test_times_and_wrap_hold_for_every_log_and_the_next_run(source: FixedSource, tmp_path: Path) -> None:
    async with running(source) as (app, pilot):
        pane = app.query_one(LogPane)
        await pilot.press("T", "W", "2")
        await pilot.pause()
        assert "[2025-11-30 02:36" in screen_text(app) and "wrapped · times full" in pane.status()
        await pilot.press("T", "W")
        await pilot.pause()
        assert "02:36:0" not in screen_text(app) and "Decode batch" in screen_text(app)
        again = tmp_path / "again.log"
        again.write_text("[2025-11-30 02:36:00 TP1] of a new run\n")
        source.logs["gpu1"] = again
        app.draw()
        await pilot.pause()
        assert "TP1 of a new run" in screen_text(app) and "02:36:00 TP1" not in screen_text(app)
        await pilot.press("T")
        await pilot.pause()
        assert "02:36:00 TP1 of a new run" in screen_text(app) and "2025-11-30 02:36:00" not in screen_text(app)
