"""Unknown host keys and passphrases, asked in the running dashboard."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from tests.view.sources import FixedSource
from tests.view.test_app import running, said, until
from tui.fleet.api import Answer, Outcome, Reconnect
from tui.host.question import LockedKey, Question, UnknownHostKey
from tui.view.app import HcsApp
from tui.view.screens.ask import Ask
from tui.view.snapshot import screen_text

KEY = UnknownHostKey("gpu-host", "gpu-host", "ssh-ed25519 AAAA", "ED25519 SHA256:abcdef", "/home/me/.ssh/known_hosts")
LOCKED = LockedKey("/home/me/.ssh/id_ed25519")


def waiting(source: FixedSource, question: Question | None) -> None:
    """Every host of the fleet waits for the same answer."""
    phase = "refused" if question else "connected"
    source.host_states = tuple(replace(h, phase=phase, question=question) for h in source.host_states)
    source.version += 1


async def looked(app: HcsApp, pilot: Pilot[None]) -> None:
    """Wait until the app has looked what its hosts ask: outcomes are told behind that."""
    done: Future[Outcome] = Future()
    done.set_result(Outcome(True, "looked again"))
    app.pending.add(done)
    await until(lambda: "looked again" in screen_text(app), pilot)


async def test_a_host_key_is_added_only_by_the_whole_word(source: FixedSource) -> None:
    waiting(source, KEY)
    async with running(source, frozen=False) as (app, pilot):
        await until(lambda: isinstance(app.screen, Ask) and "known_hosts" in said(app), pilot)
        text = said(app)
        assert "box" in text and "ED25519 SHA256:abcdef" in text and "/home/me/.ssh/known_hosts" in text
        await pilot.press("y", "enter", *"ye", "enter", "enter")
        assert isinstance(app.screen, Ask) and source.acted == []
        await pilot.press(*"yes", "enter")
        await until(lambda: source.acted == [Answer(KEY, "yes")], pilot)
        assert not isinstance(app.screen, Ask)


async def test_escape_leaves_it_until_the_user_tries_again(source: FixedSource) -> None:
    waiting(source, KEY)
    async with running(source, frozen=False) as (app, pilot):
        await until(lambda: isinstance(app.screen, Ask), pilot)
        await pilot.press("escape")
        await until(lambda: not isinstance(app.screen, Ask), pilot)
        await looked(app, pilot)
        assert not isinstance(app.screen, Ask) and source.acted == []
        await pilot.press("r")
        await until(lambda: isinstance(app.screen, Ask), pilot)
        await pilot.press("escape")
        waiting(source, None)
        await pilot.press("r")
        await until(lambda: source.acted == [Reconnect("box")], pilot)


async def test_a_passphrase_is_never_shown(source: FixedSource, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    waiting(source, LOCKED)
    async with running(source, frozen=False) as (app, pilot):
        await until(lambda: isinstance(app.screen, Ask) and "/home/me/.ssh/id_ed25519" in said(app), pilot)
        await pilot.press(*"hunter2")
        await pilot.pause()
        assert "hunter2" not in screen_text(app) and "•••••••" in screen_text(app)
        await pilot.press("enter")
        await until(lambda: bool(source.acted), pilot)
        assert source.acted == [Answer(LOCKED, "hunter2")]
        assert "hunter2" not in repr(source.acted) + screen_text(app) + caplog.text


async def test_a_wrong_passphrase_is_asked_again(source: FixedSource) -> None:
    waiting(source, LOCKED)
    source.outcome = Outcome(False, "The passphrase does not open it.", {"error": "key_locked"})

    def tried(times: int) -> bool:
        return len(source.acted) == times

    async with running(source, frozen=False) as (app, pilot):
        for tries in (1, 2):
            await until(lambda: isinstance(app.screen, Ask), pilot)
            await pilot.press(*"wrong", "enter")
            await until(partial(tried, tries), pilot)
        await until(lambda: isinstance(app.screen, Ask), pilot)
        source.outcome = Outcome(True, "trying again")
        await pilot.press(*"right", "enter")
        await until(lambda: len(source.acted) == 3, pilot)
        await looked(app, pilot)
        assert not isinstance(app.screen, Ask)


async def test_nobody_is_asked_while_something_is_typed(source: FixedSource) -> None:
    async with running(source, frozen=False) as (app, pilot):
        await pilot.press("slash")
        await until(lambda: isinstance(app.focused, Input), pilot)
        waiting(source, LOCKED)
        await pilot.press(*"word")
        await looked(app, pilot)
        assert not isinstance(app.screen, Ask)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, Ask), pilot)
