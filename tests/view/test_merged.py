"""The merged view in the running dashboard: opened, followed, searched, filtered, picked, saved, closed."""

from __future__ import annotations

import asyncio
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from tests.terminal import Terminal
from tests.view import sources
from tests.view.sources import FixedSource, decode_line
from tests.view.test_app import running, until
from tui.fleet.played import PlayedLogs
from tui.fleet.saved import SavedLogs
from tui.view.app import HcsApp
from tui.view.log.heads import INKS
from tui.view.log.pane import LogPane
from tui.view.panels import Board
from tui.view.screens.save import SaveAs
from tui.view.snapshot import screen_text
from tui.view.theme import PALETTES, TEXT_INKS

LATER = "[2025-11-30 02:37:00]"


def log(app: HcsApp) -> str:
    """The text of the merged file."""
    assert app.merged is not None and app.merged.path is not None
    return app.merged.path.read_text()


def shows(app: HcsApp, text: str) -> Callable[[], bool]:
    return lambda: text in screen_text(app)


async def opened(app: HcsApp, pilot: Pilot[None]) -> LogPane:
    await pilot.press("m")
    await until(lambda: app.merged is not None and app.merged.path is not None, pilot)
    await until(shows(app, "4 servers by time · since 02:34:08"), pilot)
    return app.query_one(LogPane)


async def test_opened_it_follows_all_logs_and_closed_it_leaves_nothing(source: FixedSource) -> None:
    async with running(source, frozen=False) as (app, pilot):
        pane = await opened(app, pilot)
        assert pane.has_focus and not app.query_one(Board).visible_in_layout
        assert "gpu0 | 02:36:39 Decode batch" in screen_text(app)
        for server in ("gpu3", "gpu1"):
            with source.logs[server].open("a") as file:
                file.write(f"{LATER} the news of {server}\n")
        await until(lambda: all(f"{one} | 02:37:00 the news of {one}" in screen_text(app) for one in source.logs
                                if one in ("gpu1", "gpu3")), pilot)  # fmt: skip
        folder = app.merged.path.parent if app.merged and app.merged.path else Path()
        await pilot.press("m")
        await until(lambda: app.query_one(Board).has_focus and "gpu0 · log" in screen_text(app), pilot)
        assert app.merged is None and not folder.exists() and app.query_one(Board).visible_in_layout


async def test_esc_closes_it_and_leaving_does(source: FixedSource) -> None:
    async with running(source, frozen=False) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("escape")
        assert app.merged is None and app.query_one(Board).has_focus
        await opened(app, pilot)
        assert app.merged is not None and app.merged.path is not None
        folder = app.merged.path.parent
    assert not folder.exists()


async def test_a_search_goes_over_all_servers(source: FixedSource) -> None:
    async with running(source, frozen=False) as (app, pilot):
        pane = await opened(app, pilot)
        await pilot.press("slash", *"kv cache is", "enter")
        await until(lambda: "4 of 4" in pane.message, pilot)
        assert "gpu3 | 02:34:34 KV Cache is allocated" in screen_text(app)
        await pilot.press("N")
        await until(lambda: "3 of 4" in pane.message, pilot)
        await pilot.press("slash", *"gpu2 |", "enter")
        await until(lambda: "of 14" in pane.message, pilot)


async def test_filters_and_problems_know_a_line_behind_its_servers_name(source: FixedSource) -> None:
    with source.logs["gpu1"].open("a") as file:
        file.write(f"{LATER} Scheduler hit an exception: Traceback (most recent call last):\n")
        file.write('  File "scheduler.py", line 1, in f\nValueError: of gpu1\n' + f"{LATER} on\n" * 80)
    async with running(source, frozen=False) as (app, pilot):
        pane = await opened(app, pilot)
        await pilot.press("left_square_bracket")
        await until(lambda: pane.reader is not None and pane.reader.picked is not None, pilot)
        assert 'gpu1 |   File "scheduler.py", line 1' in screen_text(app)
        await pilot.press("escape", "f", "f", "f", "end")
        assert "filter problems" in pane.status()
        text = screen_text(app)
        assert "gpu1 | ValueError: of gpu1" in text and "gpu3 | ValueError: Not enough host memory" in text
        assert "Decode batch" not in text
        await pilot.press("x", *"gpu1", "enter")
        assert "gpu1 | " not in screen_text(app)


async def test_only_the_listed_servers_are_in_it(source: FixedSource) -> None:
    async with running(source, frozen=False) as (app, pilot):
        await pilot.press("o", *"gpu1", "enter", "m")
        await until(shows(app, "1 of 4 servers by time"), pilot)
        assert "gpu1 | " in log(app) and "gpu0" not in log(app)
        await pilot.press("z", "o")
        app.screen.query_one("#only", Input).value = "gpu"
        await until(shows(app, "4 servers by time"), pilot)
        await until(lambda: "gpu0 | " in log(app), pilot)


async def test_a_new_run_goes_on_in_it(source: FixedSource, tmp_path: Path) -> None:
    async with running(source, frozen=False) as (app, pilot):
        await opened(app, pilot)
        run = source.servers[1].run
        assert run is not None
        source.logs["gpu1"] = tmp_path / "gpu1-next.log"
        source.change("gpu1", run=replace(run, run="run-2"))
        source.logs["gpu1"].write_text(f"{LATER} the first line of the next run\n")
        await until(shows(app, "gpu1 | 02:37:00 the first line of the next run"), pilot)
        assert "gpu1 | … a new run" in screen_text(app) and "gpu1 | 02:36:32 Decode batch" in screen_text(app)


async def test_who_reads_further_up_stays_there_when_it_is_made_anew(source: FixedSource) -> None:
    async with running(source, frozen=False) as (app, pilot):
        pane = await opened(app, pilot)
        await pilot.press("home", *["down"] * 5)
        assert pane.reader is not None and app.merged is not None
        first, path = screen_text(app).split("\n")[2], app.merged.path
        source.servers = source.servers[:3]
        source.version += 1
        await until(lambda: app.merged is not None and app.merged.path != path, pilot)
        await until(shows(app, "3 servers by time"), pilot)
        assert screen_text(app).split("\n")[2] == first and not pane.reader.following


async def test_places_of_one_servers_log_are_not_in_it(source: FixedSource) -> None:
    async with running(source, frozen=False) as (app, pilot):
        await opened(app, pilot)
        for key in ("C", "S"):
            await pilot.press(key)
            assert len(app.screen_stack) == 1
        await until(shows(app, "a place in one server's own log"), pilot)


async def test_picked_lines_are_masked_and_told_with_their_server(
    source: FixedSource, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    taken: list[str] = []
    monkeypatch.setattr(HcsApp, "copy_to_clipboard", lambda app, text: taken.append(text))
    with source.logs["gpu2"].open("a") as file:
        file.write(f"{LATER} --api-key=sk-verysecretindeed \x1b[31mred\x1b[0m\n")
    made = tmp_path / "saved.log"
    async with running(source, frozen=False) as (app, pilot):
        await opened(app, pilot)
        assert "verysecret" not in screen_text(app)
        await pilot.press("v", "Y", "escape", "ctrl+s")
        assert taken == [f"gpu2 | {LATER} --api-key=**** red"]
        assert isinstance(app.screen, SaveAs)
        line = app.screen.query_one(Input)
        assert line.value == "merged.log"
        line.value = str(made)
        await pilot.press("enter")
        await until(lambda: made.exists() and made.read_text().endswith(f"{taken[0]}\n"), pilot)
    lines = made.read_text().splitlines()
    assert len(lines) > 100 and lines[-1] == taken[0]


async def test_wrapped_lines_stand_beside_the_name(source: FixedSource) -> None:
    async with running(source, frozen=False, size=(80, 24)) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("W", "pageup")
        rows = [row[1:-3] for row in screen_text(app).split("\n")[2:-3]]
        assert sum(row.startswith(" gpu") for row in rows) > 3
        assert all(row[8:].strip() for row in rows if not row.startswith(" gpu"))
        assert all(row[1:8] in ("gpu0 | ", "gpu1 | ", " " * 7) for row in rows)
        await pilot.press("W", "T", "right")
        rows = [row[1:-3] for row in screen_text(app).split("\n")[2:-3]]
        assert [row[1:9] for row in rows if row.strip() and row[1:9] not in ("gpu0 | ‹", "gpu1 | ‹")] == []


async def test_the_wall_and_it_take_turns(source: FixedSource) -> None:
    async with running(source, frozen=False) as (app, pilot):
        await pilot.press("w")
        await opened(app, pilot)
        await pilot.press("w")
        await until(shows(app, "WALL"), pilot)
        await pilot.press("m")
        await until(shows(app, "4 servers by time"), pilot)
        assert app.merged is not None


async def test_logs_that_grow_fast_are_shown_in_order_and_keys_answer(tmp_path: Path) -> None:
    """Four writers at once; each of their lines arrives, in each one's order."""
    source = sources.fleet(tmp_path)
    stop = Event()

    def write(server: str) -> None:
        with source.logs[server].open("a") as file:
            for number in range(20_000):
                file.write(
                    f"[2025-11-30 02:{37 + number // 1200:02d}:{number // 20 % 60:02d}] {server} number {number}\n"
                )
                if number % 100 == 0:
                    file.flush()
                    if stop.wait(0.002):
                        return

    writers = [Thread(target=write, args=(server,)) for server in source.logs]
    async with running(source, frozen=False) as (app, pilot):
        pane = await opened(app, pilot)
        try:
            for writer in writers:
                writer.start()
            await pilot.press("pageup")
            assert pane.reader is not None and not pane.reader.following
            await pilot.press("end")
            assert pane.reader.following
            last = [f"{server} number 19999\n" for server in source.logs]
            await until(lambda: all(one in log(app)[-200_000:] for one in last), pilot, 60)
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        text = log(app)
    for server in source.logs:
        numbers = [int(line.rpartition(" ")[2]) for line in text.splitlines() if f"] {server} number " in line]
        assert numbers == list(range(20_000))


async def test_a_folder_that_cannot_be_made_is_said(source: FixedSource, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(source, frozen=False) as (app, pilot):
        monkeypatch.setattr("tempfile.tempdir", str(source.logs["gpu0"]))
        await pilot.press("m")
        await until(shows(app, "the logs cannot be merged: not a directory"), pilot)
        assert app.merged is None


async def test_a_disk_that_fills_up_is_said(source: FixedSource) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with running(source, frozen=False) as (app, pilot):
        await opened(app, pilot)
        with source.logs["gpu0"].open("a") as file:
            file.write((decode_line(1, 1.0) + "\n") * 20_000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            await until(shows(app, "the logs cannot be merged: file too large"), pilot)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert app.merged is None
        await until(shows(app, "gpu0 · log"), pilot)


async def test_saved_logs_that_are_played(tmp_path: Path) -> None:
    paths = [sources.write_log(tmp_path, name, "start", "ready", decodes=n) for name, n in (("one", 20), ("two", 10))]
    played = PlayedLogs(paths, 1e6)
    app = HcsApp(played)
    try:
        async with app.run_test(size=(120, 36)) as pilot:
            await pilot.press("m")
            played.start()
            await until(lambda: app.merged is not None and app.merged.lines >= 2 * 16 + 30, pilot, 30)
            await until(shows(app, "one | 02:36:19 Decode batch"), pilot)
    finally:
        played.close()


async def test_others_run_while_it_is_made(tmp_path: Path) -> None:
    """64 long logs: it is made in slices, and keys are taken between them."""
    text = "".join(decode_line(n, 1.0) + "\n" for n in range(3000))
    source = sources.many(tmp_path, 64)
    for server in source.logs:
        source.logs[server] = tmp_path / f"{server}.log"
        source.logs[server].write_text(text)
    turns = 0

    async def count(app: HcsApp) -> None:
        nonlocal turns
        while app.merged is None or app.merged.path is None:
            turns += app.merged is not None
            await asyncio.sleep(0)

    async with running(source, frozen=False) as (app, pilot):
        counting = asyncio.create_task(count(app))
        await pilot.press("m", "z", "j", "z")
        await until(counting.done, pilot, 60)
        assert turns > 300 and "gpu63 | " in log(app)


def test_its_names_have_inks_that_can_be_read_and_differ() -> None:
    assert set(INKS) <= set(TEXT_INKS)
    for palette in PALETTES.values():
        assert len({palette[ink] for ink in INKS}) == len(INKS)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_leaves_no_file_behind(tmp_path: Path, number: signal.Signals) -> None:
    """The real program on growing files."""
    logs, kept = [sources.write_log(tmp_path, name, "start", "ready", decodes=9) for name in "ab"], tmp_path / "kept"
    kept.mkdir()
    terminal = Terminal(
        [sys.executable, "-m", "tui", "replay", *map(str, logs)],
        {"TMPDIR": str(kept), "XDG_CONFIG_HOME": str(tmp_path)},
    )
    try:
        terminal.shows("a · log")
        terminal.answers(b"m", "2 servers by time")
        with logs[1].open("a") as file:
            file.write(f"{LATER} the news\n")
        terminal.shows("the news")
        assert len(list(kept.iterdir())) == 1
        terminal.process.send_signal(number)
        terminal.ended()
        assert list(kept.iterdir()) == []
    finally:
        terminal.close()


async def test_logs_of_several_days_tell_the_day(tmp_path: Path) -> None:
    paths = [sources.write_log(tmp_path, name, "start", "ready", decodes=9) for name in ("one", "two")]
    async with HcsApp(SavedLogs(paths), frozen=True).run_test(size=(120, 36)) as pilot:
        app = pilot.app
        assert isinstance(app, HcsApp)
        await pilot.press("m")
        await until(shows(app, "one | 02:36:08 Decode batch"), pilot)
        app.close_merged()
    paths[1].write_text(paths[1].read_text().replace("2025-11-30", "2025-12-01"))
    async with HcsApp(SavedLogs(paths), frozen=True).run_test(size=(120, 36)) as pilot:
        app = pilot.app
        assert isinstance(app, HcsApp)
        await pilot.press("m")
        await until(shows(app, "two | 12-01 02:36:08 Decode batch"), pilot)
        app.close_merged()
