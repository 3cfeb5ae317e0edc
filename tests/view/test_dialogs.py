"""Dialogs as text, compared with the files in ``golden/``; ``HCS_UPDATE_GOLDEN=1`` writes them anew."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.view import sources
from tests.view.sources import FixedSource
from tests.view.test_forms import described, past, press
from tests.view.test_questions import KEY, LOCKED, waiting
from tui.fleet.api import Outcome, Question
from tui.view.app import HcsApp
from tui.view.snapshot import screen_text
from tui.view.theme import DARK, LIGHT

GOLDEN = Path(__file__).parent / "golden"
TEST = {
    "text": " Paris.",
    "tokens": 32,
    "seconds": 1.5,
    "ttft": 0.21,
    "rate": 24.0,
    "prompt": "The capital of France is",
}


def answered(source: FixedSource) -> FixedSource:
    source.outcome = Outcome(True, "", TEST)
    return source


def asking(question: Question) -> Callable[[FixedSource], FixedSource]:
    def prepare(source: FixedSource) -> FixedSource:
        waiting(source, question)
        return source

    return prepare


def plain(source: FixedSource) -> FixedSource:
    return source


CASES: dict[str, tuple[Callable[[FixedSource], FixedSource], list[str]]] = {
    "edit": (described, ["E", *"hicache-sise: 1", "enter"]),
    "runs": (past, ["H", "down", "space"]),
    "compare": (past, ["H", "c"]),
    "bulk": (past, ["B"]),
    "bulk-kill": (past, ["B", "K"]),
    "test": (answered, ["t"]),
    "help": (plain, ["question_mark"]),
    "kill": (plain, ["K"]),
    "stages": (plain, ["S"]),
    "alerts": (plain, ["A"]),
    "host-key": (asking(KEY), [""]),
    "passphrase": (asking(LOCKED), [""]),
}


@asynccontextmanager
async def opened(folder: Path, case: str, size: tuple[int, int]) -> AsyncIterator[tuple[HcsApp, Pilot[None]]]:
    """The dashboard with one of the dialogs."""
    prepare, keys = CASES[case]
    app = HcsApp(prepare(sources.fleet(folder)), frozen=True)
    app.animation_level = "none"
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await press(app, pilot, *(key for key in keys if key))
        app.tell_outcomes()
        await pilot.pause()
        yield app, pilot


def dialog(app: HcsApp) -> str:
    """The dialog alone: what stands behind it is compared elsewhere."""
    box = app.screen.query_one(".dialog").region
    rows = screen_text(app).split("\n")[box.y : box.bottom]
    return "".join(row[box.x : box.right].rstrip() + "\n" for row in rows)


@pytest.mark.parametrize("size", [(120, 40), (60, 20)])
@pytest.mark.parametrize("case", [case for case in CASES if case != "help"])  # which is the table of actions
async def test_the_dialog_as_text(tmp_path: Path, case: str, size: tuple[int, int]) -> None:
    texts = []
    async with opened(tmp_path, case, size) as (app, pilot):
        for theme in (DARK, LIGHT):
            app.theme = theme
            await pilot.pause()
            texts.append(dialog(app))
    assert texts[0] == texts[1], "a theme changes colours only"
    path = GOLDEN / f"dialog-{case}-{size[0]}x{size[1]}.txt"
    if os.environ.get("HCS_UPDATE_GOLDEN"):
        path.write_text(texts[0])
    assert texts[0] == path.read_text()
