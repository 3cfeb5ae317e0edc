"""Dialogs as text, compared with the files in ``golden/``; ``HCS_UPDATE_GOLDEN=1`` writes them anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.view import sources
from tests.view.sources import FixedSource
from tests.view.test_forms import described, past, press
from tui.fleet.api import Outcome
from tui.view.app import HcsApp
from tui.view.snapshot import screen_text

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


CASES: dict[str, tuple[Callable[[FixedSource], FixedSource], list[str]]] = {
    "edit": (described, ["E", *"hicache-sise: 1", "enter"]),
    "runs": (past, ["H", "down", "space"]),
    "compare": (past, ["H", "c"]),
    "bulk": (past, ["B"]),
    "bulk-kill": (past, ["B", "K"]),
    "test": (answered, ["t"]),
}


def dialog(app: HcsApp) -> str:
    """The dialog alone: what stands behind it is compared elsewhere."""
    box = app.screen.query_one(".dialog").region
    rows = screen_text(app).split("\n")[box.y : box.bottom]
    return "".join(row[box.x : box.right].rstrip() + "\n" for row in rows)


@pytest.mark.parametrize("size", [(120, 40), (60, 20)])
@pytest.mark.parametrize("case", CASES)
async def test_the_dialog_as_text(tmp_path: Path, case: str, size: tuple[int, int]) -> None:
    prepare, keys = CASES[case]
    texts = []
    for theme in ("dark", "light"):
        app = HcsApp(prepare(sources.fleet(tmp_path)), theme=theme, frozen=True)
        app.animation_level = "none"
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await press(app, pilot, *keys)
            texts.append(dialog(app))
    assert texts[0] == texts[1], "a theme changes colours only"
    path = GOLDEN / f"dialog-{case}-{size[0]}x{size[1]}.txt"
    if os.environ.get("HCS_UPDATE_GOLDEN"):
        path.write_text(texts[0])
    assert texts[0] == path.read_text()
