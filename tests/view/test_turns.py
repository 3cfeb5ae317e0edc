"""Keys that are typed faster than the screen follows: none of them acts on what was there before."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Input, TextArea

from tests.view.sources import FixedSource
from tests.view.test_app import running, until
from tests.view.test_forms import described
from tui.fleet.api import Describe, Kill, Launch, PastRuns, Reconnect
from tui.view.actions import ACTS
from tui.view.app import HcsApp
from tui.view.log.line import LogLine
from tui.view.log.pane import LogPane
from tui.view.screens.bulk import Bulk
from tui.view.screens.confirm import Confirm, TypeName
from tui.view.snapshot import screen_text

WORDS = "KRBldqtFE"
OPENS = {
    "slash": "#search", "i": "#search", "x": "#search", "o": "#only", "ctrl+s": "#reply", "ctrl+p": "CommandInput",
}  # fmt: skip


def burst(app: HcsApp, keys: Iterable[str]) -> None:
    """Keys that come in all at once, as from a paste without brackets, or a program that types."""
    for key in keys:
        character = key if len(key) == 1 else {"enter": "\r", "escape": "\x1b", "slash": "/"}.get(key)
        app.post_message(events.Key(_character_to_key(key) if len(key) == 1 else key, character))


async def quiet(app: HcsApp, pilot: Pilot[None]) -> None:
    await pilot.pause()  # it has taken what was pressed
    await until(lambda: not app.turns.busy, pilot)


def changes(source: FixedSource) -> list[object]:
    return [action for action in source.acted if not isinstance(action, (Describe, PastRuns, Reconnect))]


@pytest.mark.parametrize("key", OPENS)
async def test_what_is_typed_right_after_goes_into_the_line(source: FixedSource, key: str) -> None:
    async with running(described(source), frozen=False) as (app, pilot):
        burst(app, [key, *WORDS])
        await quiet(app, pilot)
        line = app.screen.query_one(OPENS[key], Input)
        assert line.value.endswith(WORDS) and app.focused is line
        assert changes(source) == []


@pytest.mark.parametrize("view", [["w"], ["tab", "z"], ["z"]])
@pytest.mark.parametrize("key", ["slash", "o", "v", "right_square_bracket"])
async def test_what_is_typed_is_seen(source: FixedSource, view: list[str], key: str) -> None:
    """The wall, or another panel that stands alone, makes room."""
    async with running(source, frozen=False) as (app, pilot):
        await pilot.press(*view, key)
        await quiet(app, pilot)
        where: Widget = app.query_one("#only" if key == "o" else LogLine if key == "slash" else LogPane)
        await until(lambda: where.region.height > 0, pilot)


async def test_and_into_the_form_that_its_host_answers_for(source: FixedSource) -> None:
    async with running(described(source), frozen=False) as (app, pilot):
        burst(app, ["E", *WORDS])
        await quiet(app, pilot)
        assert app.screen.query_one(TextArea).text.endswith(WORDS)
        assert changes(source) == []


@pytest.mark.parametrize("key", ["question_mark", "c", "h", "H", "A", "K", "R", "S"])
async def test_what_is_typed_right_after_never_acts_on_what_is_below(source: FixedSource, key: str) -> None:
    """Each letter but those that the view itself takes: ``K`` then ``y`` is how something is ended."""
    async with running(described(source), frozen=False) as (app, pilot):
        burst(app, [key])
        await quiet(app, pilot)
        opened = type(app.screen)
        assert len(app.screen_stack) == 2
        burst(app, ["escape"])
        await quiet(app, pilot)
        before = len(source.acted)
        burst(app, [key, *"KRBlEtF/iofxz"])
        await quiet(app, pilot)
        assert type(app.screen) is opened
        assert source.acted[before:] in ([], source.acted[:before])


async def test_a_line_that_was_entered_gives_the_keys_back(source: FixedSource) -> None:
    async with running(source, frozen=False) as (app, pilot):
        burst(app, ["slash", *"batch", "enter", "j", "3", *"/gen", "enter", "2"])
        await quiet(app, pilot)
        assert app.selected == "gpu1" and str(app.query_one(LogPane).query_of("search")) == "/gen"
        assert not app.query(".line.open")
        burst(app, ["o", *"gpu3", "enter", "escape"])
        await quiet(app, pilot)
        assert app.order.only == "" and not app.query(".line.open")


@pytest.mark.parametrize(("keys", "dialog"), [("Ky", Confirm), ("Ry", Confirm), ("Bl", Bulk), ("BK", Bulk)])
async def test_what_was_typed_before_a_question_stood_there_is_no_answer(
    source: FixedSource, keys: str, dialog: type[Confirm | Bulk]
) -> None:
    async with running(source, frozen=False) as (app, pilot):
        burst(app, keys)
        await quiet(app, pilot)
        assert isinstance(app.screen, dialog) and source.acted == []
        burst(app, keys[-1])
        await quiet(app, pilot)
        assert not isinstance(app.screen, dialog)


async def test_dialogs_in_one_go(source: FixedSource) -> None:
    async with running(source, frozen=False) as (app, pilot):
        burst(app, "KnB")
        await quiet(app, pilot)
        assert isinstance(app.screen, Bulk)
        burst(app, ["K", "2", "enter"])
        await quiet(app, pilot)
        assert isinstance(app.screen, TypeName) and source.acted == []
        burst(app, ["3", "enter", "K"])
        await quiet(app, pilot)
        assert source.acted == [Kill("gpu0"), Kill("gpu1"), Kill("gpu2")] and isinstance(app.screen, Confirm)


async def test_the_palette_never_does_what_it_showed_before_the_last_letter(source: FixedSource) -> None:
    async with running(source, frozen=False) as (app, pilot):
        burst(app, ["ctrl+p", *"server gpu2", "enter", "j"])
        await quiet(app, pilot)
        await until(lambda: len(app.screen_stack) == 1, pilot)
        assert source.acted == [] and app.selected == "gpu3"


async def test_clicks_and_keys_keep_their_order(source: FixedSource) -> None:
    async with running(source, frozen=False) as (app, pilot):
        for n in range(4):
            app.post_message(_mouse(events.MouseDown, 2 + n % 3))
            app.post_message(_mouse(events.MouseMove, 9))
            app.post_message(_mouse(events.MouseUp, 2 + n % 3))
            burst(app, "l")
        await quiet(app, pilot)
        assert source.acted == [Launch("gpu0"), Launch("gpu1"), Launch("gpu2"), Launch("gpu0")]


def _mouse(kind: type[events.MouseEvent], row: int) -> events.MouseEvent:
    return kind(None, 12, row, 0, 0, 1, False, False, False, 12, row)


async def test_an_action_that_fails_is_told_and_the_next_key_acts(
    source: FixedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def action_sort(self: HcsApp) -> None:
        raise RuntimeError("nothing sorts today")

    monkeypatch.setattr(HcsApp, "action_sort", action_sort)
    async with running(source) as (app, pilot):
        await pilot.press("s", "j")
        assert "nothing sorts today" in screen_text(app) and app.selected == "gpu1"


async def test_every_action_can_be_asked_for_on_every_view(source: FixedSource) -> None:
    """What belongs to the board does nothing elsewhere; it breaks nothing either."""
    async with running(described(source), frozen=False) as (app, pilot):
        for view in ("charts", "hosts", "bulk"):
            await app.run_action(view)
            await quiet(app, pilot)
            for act in ACTS:
                if act.id not in ("quit", "suspend", "command_palette", "jump"):
                    await app.run_action(act.id)
            await pilot.pause()
            while len(app.screen_stack) > 1:
                app.pop_screen()
            await pilot.pause()
        assert app._exception is None and app._error == "" and changes(source) == []
