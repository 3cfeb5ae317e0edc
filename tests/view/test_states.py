"""A server in every state: its row on the board and its panels as text, compared with the files in ``golden/``; and
what must hold of each whatever the width. ``HCS_UPDATE_GOLDEN=1`` writes the files anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.view.sources import NOW, host_states
from tests.view.states import all_states
from tui.sglang.model import Phase
from tui.view.draw import board, caches, timeline
from tui.view.draw.row import Row, cell, plain, width
from tui.view.glance import Glance, glance

GOLDEN = Path(__file__).parent / "golden"
HOST = host_states()[0]


@pytest.fixture(scope="module")
def glances() -> dict[str, Glance]:
    return {name: glance(state, NOW) for name, state in all_states().items()}


def panels(one: Glance, columns: int, rows: int) -> tuple[list[Row], list[Row]]:
    """Start-up and caches."""
    return timeline.timeline(one, columns, rows), caches.caches(one, HOST, columns, rows)


def beside(left: list[Row], right: list[Row], columns: int) -> list[str]:
    count = max(len(left), len(right))
    pairs = zip(left + [[]] * (count - len(left)), right + [[]] * (count - len(right)), strict=True)
    return [f"{cell(plain([one]), columns).text} │ {plain([other])}".rstrip() for one, other in pairs]


@pytest.mark.parametrize(("columns", "rows"), [(58, 4), (118, 11), (158, 14)])
def test_each_state_as_text(glances: dict[str, Glance], columns: int, rows: int) -> None:
    out = [plain(board.board([*glances.values()], columns)), ""]
    inner = columns - 2 if columns < 80 else columns // 2 - 3
    for name, one in glances.items():
        out += [f"── {name}", *beside(*panels(one, inner, rows), inner), ""]
    path = GOLDEN / f"states-{columns}.txt"
    if os.environ.get("HCS_UPDATE_GOLDEN"):
        path.write_text("\n".join(out))
    assert "\n".join(out) == path.read_text()


@pytest.mark.parametrize("columns", range(34, 200, 5))
def test_nothing_is_wider_or_cut_in_a_number(glances: dict[str, Glance], columns: int) -> None:
    drawn = board.board([*glances.values()], columns)
    for one in glances.values():
        for rows in (3, 8, 14):
            drawn += [row for panel in panels(one, columns, rows) for row in panel]
    for row in drawn:
        assert width(row) <= columns and not re.search(r"\d…|…\d", plain([row])), plain([row])


def test_every_phase_and_mark_is_among_them(glances: dict[str, Glance]) -> None:
    assert {one.phase for one in glances.values()} == set(Phase)
    assert glances["stalled"].stalled and glances["unreachable"].unreachable and glances["full"].warnings
    assert glances["old"].generate == 1_234_567.0


def test_no_panel_is_blank(glances: dict[str, Glance]) -> None:
    for name, one in glances.items():
        for panel in panels(one, 56, 6):
            assert plain(panel).strip(), name
