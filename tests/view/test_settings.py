"""The user's settings in the running dashboard."""

from __future__ import annotations

from tests.view.sources import FixedSource
from tests.view.test_app import said
from tui.fleet.api import Launch, SmokeTest
from tui.view.actions import BY_ID
from tui.view.app import HcsApp
from tui.view.keys import key_error, key_errors, movable, remapped, shown
from tui.view.screens.confirm import Confirm
from tui.view.screens.help import Help
from tui.view.settings import Settings
from tui.view.snapshot import screen_text


async def test_keys_are_moved_and_the_footer_and_help_say_so(source: FixedSource) -> None:
    app = HcsApp(source, frozen=True, settings=Settings({"kill": "X,f8", "launch": "ctrl+l", "smoke_test": "!"}))
    async with app.run_test(size=(120, 60), notifications=True) as pilot:
        await pilot.pause()
        assert "^l launch" in screen_text(app) and "X f8 kill" in screen_text(app)
        await pilot.press("l", "K", "t")
        assert source.acted == [] and not isinstance(app.screen, Confirm)
        await pilot.press("ctrl+l", "exclamation_mark")
        assert source.acted == [Launch("gpu0"), SmokeTest("gpu0")]
        for key in ("X", "f8"):
            await pilot.press(key)
            await pilot.pause()
            assert isinstance(app.screen, Confirm)
            await pilot.press("escape")
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, Help) and "^l Launch the selected server" in said(app)


async def test_swapped_keys(source: FixedSource) -> None:
    app = HcsApp(source, frozen=True, settings=Settings({"kill": "l", "launch": "K"}))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("K")
        assert source.acted == [Launch("gpu0")]
        await pilot.press("l")
        assert isinstance(app.screen, Confirm)


async def test_the_theme(source: FixedSource) -> None:
    async with HcsApp(source, frozen=True, settings=Settings(theme="light")).run_test() as pilot:
        assert pilot.app.theme == "hcs-light"
    async with HcsApp(source, frozen=True, theme="dark", settings=Settings(theme="light")).run_test() as pilot:
        assert pilot.app.theme == "hcs-dark"


async def test_help_begins_with_what_makes_sense_now(source: FixedSource) -> None:
    app = HcsApp(source, frozen=True)
    async with app.run_test(size=(120, 60)) as pilot:
        await pilot.press("question_mark")
        await pilot.pause()
        first = said(app).partition("Servers")[0]
        assert "gpu0 is ready" in first and "t test" in first and "l launch" not in first
        await pilot.press("escape", "4", "question_mark")
        await pilot.pause()
        first = said(app).partition("Servers")[0]
        assert "gpu3 is failed" in first and "l launch" in first and "t test" not in first and "K kill" not in first


def test_keys_by_name() -> None:
    for key in ("t", "T", "?", "ä", "ctrl+t", "f5", "space", "shift+tab", "ctrl+shift+a", "comma"):
        assert key_error(key) == "", key
    for key in ("", " ", "\n", "tt", "ctrl", "ctrl+", "strg+t", "f99"):
        assert key_error(key), key
    assert key_errors({"launch": "slash"}) == [("launch", "'slash' is the key of search: give that another one too")]
    assert key_errors({"launch": "/"}) and not key_errors({"launch": "/", "search": "0"})
    assert "did you mean 'ctrl+escape'?" in key_error("ctrl+escpe") and "'strg' is none to hold" in key_error("strg+t")
    assert shown("ctrl+t,space,X") == "^t Space X"
    assert {act.id for act in remapped({})} == set(BY_ID) and "jump" not in movable()
