"""Each action of the running dashboard, by its key."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from tests.view.sources import NOW, FixedSource, decode_line, many
from tests.waiting import DEADLINE
from tui.fleet.api import HostState, Kill, Launch, Outcome, Reconnect, Relaunch, SmokeTest
from tui.sglang.model import Sample
from tui.view.actions import ACTS, BY_ID, key_table
from tui.view.app import HcsApp
from tui.view.log.line import LogLine
from tui.view.log.pane import LogPane
from tui.view.panels import Board
from tui.view.screens.charts import Charts
from tui.view.screens.confirm import Confirm
from tui.view.screens.help import Help
from tui.view.snapshot import screen_text

Screen = Callable[[], str]


@asynccontextmanager
async def running(
    source: FixedSource, *, size: tuple[int, int] = (120, 36), frozen: bool = True
) -> AsyncIterator[tuple[HcsApp, Pilot[None]]]:
    app = HcsApp(source, frozen=frozen)
    app.animation_level = "none"
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        yield app, pilot


async def until(condition: Callable[[], bool], pilot: Pilot[None], seconds: float = DEADLINE) -> None:
    """Let the app run until ``condition`` holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await pilot.pause(0.02)


def said(app: HcsApp) -> str:
    """A dialog's words on one line, without its borders, as a wrapped text reads."""
    box = app.screen.query_one(".dialog").region
    lines = screen_text(app).split("\n")[box.y : box.bottom]
    inside = " ".join(line[box.x : box.right] for line in lines)
    return " ".join(re.sub("[│▐▁▂▃▄▅▆▇█]", " ", inside).split())


async def test_selection_by_arrows_letters_digits_and_mouse(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        assert app.selected == "gpu0"
        await pilot.press("down", "j")
        assert app.selected == "gpu2"
        await pilot.press("k", "up", "up")
        assert app.selected == "gpu0"
        await pilot.press("4")
        assert app.selected == "gpu3"
        await pilot.press("9")
        assert app.selected == "gpu3"
        await pilot.click(Board, offset=(10, 1))
        assert app.selected == "gpu1"
        await pilot.pause()
        assert "gpu1 · log" in screen_text(app)


async def test_launch_and_smoke_test_are_sent(source: FixedSource) -> None:
    async with running(source) as (_, pilot):
        await pilot.press("l", "2", "t")
        assert source.acted == [Launch("gpu0"), SmokeTest("gpu1")]


async def test_reconnect_names_the_host(source: FixedSource) -> None:
    async with running(source) as (_, pilot):
        await pilot.press("r")
        assert source.acted == [Reconnect("box")]


async def test_kill_asks_and_names_what_ends(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        await pilot.press("K")
        text = said(app)
        assert "Kill gpu0?" in text and "gpu0 on box, ready for 1h02" in text and "48 running requests are lost" in text
        await pilot.press("y")
        assert source.acted == [Kill("gpu0")]


@pytest.mark.parametrize("keys", [["enter"], ["escape"], ["n"], ["K", "enter"]])
async def test_kill_never_happens_by_accident(source: FixedSource, keys: list[str]) -> None:
    async with running(source) as (app, pilot):
        await pilot.press("K", *keys)
        assert source.acted == []
        assert not isinstance(app.screen, Confirm)


async def test_kill_by_its_button(source: FixedSource) -> None:
    async with running(source) as (_, pilot):
        await pilot.press("K", "tab", "enter")
        assert source.acted == [Kill("gpu0")]
        await pilot.press("K")
        await pilot.click("#yes")
        assert source.acted == [Kill("gpu0"), Kill("gpu0")]


async def test_relaunch_asks_only_where_something_ends(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        await pilot.press("R")
        assert isinstance(app.screen, Confirm) and source.acted == []
        await pilot.press("y", "4", "R")
        assert source.acted == [Relaunch("gpu0"), Relaunch("gpu3")]


async def test_read_only_changes_nothing(source: FixedSource) -> None:
    source.read_only = True
    async with running(source) as (app, pilot):
        await pilot.press("l", "R", "K")
        assert source.acted == [] and not isinstance(app.screen, Confirm)
        text = screen_text(app)
        assert "read-only" in text and "K kill" not in text
        await pilot.press("t")
        assert source.acted == [SmokeTest("gpu0")]


async def test_what_is_off_says_so(source: FixedSource) -> None:
    source.read_only = True
    for key in "lRK":
        async with running(source) as (app, pilot):
            await pilot.press(key)
            await pilot.pause()
            assert "read-only: nothing is launched or ended" in screen_text(app)
    source.servers = tuple(replace(state, run=None) for state in source.servers)
    for key in "lRKt":
        async with running(source) as (app, pilot):
            await pilot.press(key)
            await pilot.pause()
            assert "a saved log: nothing runs behind it" in screen_text(app)
    assert source.acted == []


async def test_killing_what_is_over_or_never_was(source: FixedSource) -> None:
    async with running(source, size=(60, 20)) as (app, pilot):
        await pilot.press("4", "K")
        text = said(app)
        assert "gpu3 on box is failed already. What is left of it, if anything, will be ended." in text
        await pilot.press("escape")
        source.change("gpu1", run=None, log=type(source.servers[1].log)())
        app.look()
        await pilot.press("2", "K")
        await pilot.pause()
        assert not isinstance(app.screen, Confirm) and "gpu1 does not run" in screen_text(app)
        assert source.acted == []


@pytest.mark.parametrize("columns", [40, 60, 80])
async def test_dialogs_are_wrapped(source: FixedSource, columns: int) -> None:
    async with running(source, size=(columns, 60)) as (app, pilot):
        await pilot.press("K")
        await pilot.pause()
        told = said(app)
        assert "gpu0 on box, ready for 1h02, will be ended. Its 48 running requests are lost." in told
        await pilot.press("escape", "question_mark")
        await pilot.pause()
        told = said(app)
        assert "End the selected server, prove it gone, launch it again" in told
        assert "Select a server by its place" in told


async def test_ctrl_c_says_how_to_leave(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert "q quits; servers run on" in screen_text(app)


async def test_an_action_that_cannot_be_is_announced_by_its_outcome_alone(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        await pilot.press("1", "l", "3", "t")
        await pilot.pause()
        text = screen_text(app)
        assert source.acted == [Launch("gpu0"), SmokeTest("gpu2")]
        assert "launching gpu0" not in text and "testing gpu2" not in text
        await pilot.press("4", "l")
        await pilot.pause()
        assert "launching gpu3" in screen_text(app)


async def test_zoom_from_the_board_shows_the_log(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        await pilot.press("z")
        await pilot.pause()
        assert "SERVERS" not in screen_text(app) and screen_text(app).count("Decode batch") >= 30
        await pilot.press("z")
        await pilot.pause()
        assert "SERVERS" in screen_text(app)


async def test_what_became_of_an_action_is_said(source: FixedSource) -> None:
    source.outcome = Outcome(False, "gpu0: port 30000 is taken by pid 12 [nginx]")
    async with running(source, frozen=False) as (app, pilot):
        await pilot.press("l")
        await until(lambda: "[nginx]" in screen_text(app), pilot)


async def test_a_growing_log_and_new_states_are_shown(source: FixedSource) -> None:
    async with running(source, frozen=False) as (app, pilot):
        path = source.logs["gpu0"]
        with path.open("a") as file:
            file.write("[2025-11-30 02:37:00] a new line [with brackets]\n")
        await until(lambda: "a new line [with brackets]" in screen_text(app), pilot)
        log = source.servers[1].log
        source.change("gpu1", log=replace(log, latest=Sample(NOW, generate=77.0)))
        await until(lambda: "77.0 tok/s" in screen_text(app), pilot)


def _without_place(text: str) -> list[str]:
    """The screen but for what tells how far into the log it is."""
    return [line.replace("▐", " ") for line in text.split("\n") if "End follows" not in line]


async def test_scrolling_stays_and_end_follows(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        pane = app.query_one(LogPane)
        await pilot.press("pageup")
        assert pane.reader is not None and not pane.reader.following
        app.draw()
        await pilot.pause()
        before = screen_text(app)
        with source.logs["gpu0"].open("a") as file:
            file.write(decode_line(1, 1.0) + "\n")
        pane.tick()
        await pilot.pause()
        assert "following" not in before and _without_place(screen_text(app)) == _without_place(before)
        await pilot.press("end")
        assert pane.reader.following
        await pilot.press("home")
        assert "server_args" in screen_text(app)


async def test_the_mouse_wheel_scrolls(source: FixedSource) -> None:
    from textual.events import MouseScrollDown, MouseScrollUp

    def wheel(kind: type[MouseScrollUp] | type[MouseScrollDown], pane: LogPane) -> None:
        pane.post_message(kind(pane, 1, 1, 0, 0, 0, False, False, False))

    async with running(source) as (app, pilot):
        pane = app.query_one(LogPane)
        assert pane.reader is not None
        wheel(MouseScrollUp, pane)
        await pilot.pause()
        assert not pane.reader.following
        wheel(MouseScrollDown, pane)
        await pilot.pause()
        assert pane.reader.following


async def test_search_next_previous_and_clear(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        pane = app.query_one(LogPane)
        await pilot.press("slash", *"allocating", "enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "hierarchical Mamba cache" in screen_text(app) and pane.has_focus
        last = pane._hit
        await pilot.press("N")
        await app.workers.wait_for_complete()
        assert pane._hit is not None and last is not None and pane._hit < last
        await pilot.press("n")
        await app.workers.wait_for_complete()
        assert pane._hit == last
        await pilot.press("n")
        await app.workers.wait_for_complete()
        assert pane._hit < last and "on from the start" in pane.status()
        await pilot.press("slash", *"nowhere at all", "enter")
        await app.workers.wait_for_complete()
        assert "not found" in pane.status()
        await pilot.press("slash", "escape")
        assert not app.query_one(LogLine).has_class("open")
        assert pane.reader is not None and pane.reader.found is None


async def test_which_hit_it_is_and_how_many_there_are(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        pane = app.query_one(LogPane)
        reader = pane.reader
        assert reader is not None

        async def press(*keys: str) -> str:
            await pilot.press(*keys)
            await app.workers.wait_for_complete()
            return pane.status()

        assert "2 of 2" in await press("slash", *"allocating", "enter")
        marks = [s.ink for row in reader.draw(118, 40) for s in row if s.text == "Allocating"]
        assert len(marks) == 2 and ["reverse" in ink for ink in marks] == [False, True]
        assert "1 of 2" in await press("N")
        assert "2 of 2 · on from the end" in await press("N")
        assert "1 of 2 · on from the start" in await press("n")
        with source.logs["gpu0"].open("a") as file:
            file.write("allocating once more\n")
        pane.tick()
        assert "2 of 3" in await press("n")
        assert "not found" in await press("slash", *"nowhere", "enter")
        assert "not found" not in await press("up")


async def test_letters_in_the_search_line_are_no_commands(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        await pilot.press("slash", *"qKlR1")
        assert app.is_running and source.acted == [] and app.query_one("#search", Input).value == "qKlR1"


async def test_filters_probes_and_wrap(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        await pilot.press("p")
        app.draw()
        await pilot.pause()
        assert "GET /health" in screen_text(app) and "with probes" in screen_text(app)
        await pilot.press("p", "f")
        await pilot.pause()
        text = screen_text(app)
        assert "filter caches" in text and "hierarchical Mamba cache" in text and "Decode batch" not in text
        await pilot.press("f", "f", "f", "f", "W")
        await pilot.pause()
        assert "#queue-req: 12" in screen_text(app) and "wrapped" in screen_text(app)


async def test_zoom_shows_one_panel(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        await pilot.press("tab", "tab", "tab", "z")
        await pilot.pause()
        text = screen_text(app)
        assert "gpu0 · log" in text and "SERVERS" not in text and "start-up" not in text
        assert text.count("Decode batch") >= 30
        await pilot.press("z")
        await pilot.pause()
        assert "SERVERS" in screen_text(app)
        await pilot.press("shift+tab", "z")
        await pilot.pause()
        assert "gpu0 · caches" in screen_text(app) and "gpu0 · log" not in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert "SERVERS" in screen_text(app)


async def test_the_wall_and_back(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        await pilot.press("w")
        await pilot.pause()
        text = screen_text(app)
        assert all(f"gpu{n}" in text for n in range(4)) and "SERVERS" not in text
        await pilot.press("escape")
        await pilot.pause()
        assert "SERVERS" in screen_text(app)


async def test_help_lists_every_action(source: FixedSource) -> None:
    async with running(source, size=(120, 100)) as (app, pilot):
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, Help)
        text = said(app)
        assert all(act.help in text for act in ACTS)
        await pilot.press("escape")
        assert not isinstance(app.screen, Help)


async def test_charts_open_and_close(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        await pilot.press("c")
        await pilot.pause()
        assert isinstance(app.screen, Charts)
        text = screen_text(app)
        assert "tokens per second" in text and "requests waiting" in text and "gpu1" in text
        await pilot.press("c")
        assert not isinstance(app.screen, Charts)


async def test_charts_without_any_figure(source: FixedSource) -> None:
    source.servers = source.servers[2:]
    async with running(source) as (app, pilot):
        await pilot.press("c")
        await pilot.pause()
        assert "tokens per second" in screen_text(app)


async def test_the_palette_finds_servers_and_actions(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        await pilot.press("ctrl+p", *"gpu3")
        await until(lambda: "server gpu3" in screen_text(app), pilot)
        await pilot.press("enter")
        await until(lambda: app.selected == "gpu3", pilot)


async def test_quitting_says_that_servers_run_on(source: FixedSource, capsys: pytest.CaptureFixture[str]) -> None:
    async with running(source) as (_, pilot):
        await pilot.press("q")
    assert source.acted == []
    assert "gpu0, gpu1, gpu2: running on" in capsys.readouterr().err


async def test_hosts_in_trouble_are_shown(source: FixedSource) -> None:
    source.host_states = (HostState("box", "x", "refused", "the host key is unknown. Run: ssh x"),)
    source.change("gpu0", unreachable_since=NOW - 5, unreachable_why="the host key is unknown")
    async with running(source) as (app, _):
        text = screen_text(app)
        assert "⚠ box: the host key is unknown. Run: ssh x" in text and "⚠ unreachable" in text


async def test_a_source_that_fails_is_shown_and_tried_again(source: FixedSource) -> None:
    states = source.servers

    def broken() -> tuple[()]:
        raise RuntimeError("the fleet's thread ended")

    async with running(source, frozen=False) as (app, pilot):
        source.states = broken  # type: ignore[method-assign]  # breaks as a live source may
        source.version += 1
        await until(lambda: "the fleet's thread ended" in screen_text(app), pilot)
        source.states = lambda: states  # type: ignore[method-assign]  # and is mended as one
        source.version += 1
        await until(lambda: "the fleet's thread ended" not in screen_text(app), pilot)


async def test_ready_is_called_once_after_the_first_paint(source: FixedSource) -> None:
    calls: list[bool] = []
    app = HcsApp(source, on_ready=lambda: calls.append(app.is_running))
    async with app.run_test() as pilot:
        await until(lambda: calls == [True], pilot)


async def test_it_starts_with_names_only(source: FixedSource) -> None:
    from tui.sglang.state import ServerState

    source.servers = tuple(ServerState(s.info) for s in source.servers)
    source.logs, source.host_states = {}, ()
    async with running(source) as (app, _):
        text = screen_text(app)
        assert text.count("absent") >= 4 and "no log yet" in text


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 36), (300, 80), (40, 12), (10, 3)])
async def test_any_size_and_resizing(source: FixedSource, size: tuple[int, int]) -> None:
    async with running(source) as (app, pilot):
        await pilot.resize_terminal(*size)
        await pilot.press("w", "w", "down", "z", "z")
        await pilot.resize_terminal(120, 36)
        await pilot.pause()
        app.draw()
        await pilot.pause()
        assert "SERVERS" in screen_text(app) and "gpu1 · log" in screen_text(app)


async def test_sixty_four_servers_on_a_small_terminal(source: FixedSource) -> None:
    big = many(source.logs["gpu0"].parent, 64)
    async with running(big, size=(60, 20)) as (app, pilot):
        app.select("gpu62")
        await pilot.press("down")
        await pilot.pause()
        assert re.search(r"▌ .*gpu63", screen_text(app))


def test_every_key_is_bound_once_and_in_the_readmes_table() -> None:
    keys = [key for act in ACTS for key in act.keys.split(",")]
    assert len(keys) == len(set(keys)) and len(BY_ID) == len(ACTS)
    assert all(hasattr(HcsApp, f"action_{act.id}") for act in ACTS if act.id not in ("next_panel",))
    table = key_table()
    assert table.startswith("| key | what it does |") and all(f"| {act.help} |" in table for act in ACTS)


async def test_ending_what_is_out_of_reach_says_so(source: FixedSource) -> None:
    source.change("gpu0", unreachable_since=NOW - 120)
    async with running(source) as (app, pilot):
        for key in "KR":
            await pilot.press(key)
            text = said(app)
            assert "box is out of reach since 02:34:11 (2m00s)" in text and "was ready for 1h00" in text
            assert "As long as its host does not answer it stays as it is" in text and "lost" not in text
            await pilot.press("escape")


@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
async def test_what_is_said_in_passing_covers_no_dialog(source: FixedSource, size: tuple[int, int]) -> None:
    async with running(source, size=size) as (app, pilot):
        for word in ("first", "second"):
            app.notify(f"{word} {'words and more words ' * 9}")
        await until(lambda: "second words" in screen_text(app), pilot)
        assert sum("words" in row for row in screen_text(app).split("\n")) <= size[1] * 0.3
        await pilot.press("question_mark")
        await until(lambda: screen_text(app).split("\n")[0].lstrip("▌ ").startswith("second words"), pilot)
        box = app.screen.query_one(".dialog").region
        dialog = screen_text(app).split("\n")[box.y : box.bottom]
        assert box.y > 0 and not any("words and" in row[box.x : box.right] for row in dialog)
