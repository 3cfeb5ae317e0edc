"""Whole screens as text, compared with the files in ``golden/``; and as SVG, the same bytes each time.

``HCS_UPDATE_GOLDEN=1`` writes the files anew: look at the difference before it is committed.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.view import sources
from tui.fleet.saved import SavedLogs
from tui.view.snapshot import snapshot, take
from tui.view.theme import DARK, LIGHT, PALETTES

GOLDEN = Path(__file__).parent / "golden"
WIDE, NARROW = (160, 48), (80, 24)
CASES = [
    ("board", "gpu2", WIDE),
    ("board", "gpu2", NARROW),
    ("board", "gpu3", WIDE),
    ("board", "gpu3", NARROW),
    ("board", "gpu0", (300, 80)),
    ("board", "gpu3", (120, 36)),
    ("board", "gpu3", (60, 20)),
    ("wall", "gpu1", WIDE),
    ("wall", "gpu1", NARROW),
    ("merged", "gpu1", WIDE),
    ("merged", "gpu1", (60, 20)),
    ("charts", "gpu0", WIDE),
    ("charts", "gpu0", NARROW),
    ("hosts", "gpu0", WIDE),
    ("hosts", "gpu0", NARROW),
]


@pytest.mark.parametrize(("view", "selected", "size"), CASES)
def test_the_screen_as_text(tmp_path: Path, view: str, selected: str, size: tuple[int, int]) -> None:
    dark = snapshot(sources.hosts(tmp_path), size=size, view=view, selected=selected)
    light = snapshot(sources.hosts(tmp_path), size=size, view=view, selected=selected, theme="light")
    assert dark.text == light.text, "a theme changes colours only"
    for shown, palette in ((dark, PALETTES[DARK]), (light, PALETTES[LIGHT])):
        assert palette["ground"] in shown.svg.lower() and palette["accent"] in shown.svg.lower()
    path = GOLDEN / f"{view}-{selected}-{size[0]}x{size[1]}.txt"
    if os.environ.get("HCS_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(dark.text)
    assert dark.text == path.read_text()


def test_the_same_states_give_the_same_bytes(tmp_path: Path) -> None:
    first, again = (snapshot(sources.fleet(tmp_path)) for _ in range(2))
    assert first == again


@pytest.mark.parametrize(("theme", "name"), [("dark", DARK), ("light", LIGHT)])
def test_the_svg_has_the_themes_colours_and_our_title(tmp_path: Path, theme: str, name: str) -> None:
    svg = snapshot(sources.fleet(tmp_path, title="a <fleet> & more"), theme=theme).svg
    words = "".join(ElementTree.fromstring(svg).itertext())
    assert "hcs-tui · a <fleet> & more" in words and "Rich" not in words and "Textual" not in words
    for ink in ("ground", "ok", "bad", "start", "mamba"):
        assert PALETTES[name][ink] in svg.lower()


def test_it_shows_what_needs_attention(tmp_path: Path) -> None:
    text = snapshot(sources.fleet(tmp_path)).text
    assert "gpu2 · start-up" in text
    source = sources.fleet(tmp_path)
    source.servers = (source.servers[0], source.servers[3])
    assert "gpu3 · why it failed" in snapshot(source).text


def test_an_unknown_view_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="board, wall, merged, charts"):
        snapshot(sources.fleet(tmp_path), view="nothing")


async def test_take_works_in_a_loop_and_presses_keys(tmp_path: Path) -> None:
    shown = await take(sources.fleet(tmp_path), keys=["question_mark"], size=(120, 90))
    assert "Leave. Servers run on" in shown.text


def test_no_servers_yet() -> None:
    """Before the profile is read: the frame, and no claim."""
    text = snapshot(sources.FixedSource()).text
    assert "SERVERS" in text and "caches" in text and "· caches" not in text and "0 servers" not in text


def test_saved_logs_show_the_failure_their_own_end_and_what_can_be_done(tmp_path: Path) -> None:
    paths = [sources.write_log(tmp_path, "begun", "start"), sources.write_log(tmp_path, "broken", "start", "failure")]
    text = snapshot(SavedLogs(paths, clock=0.0), size=(160, 40)).text
    assert "broken · why it failed" in text and "log of 30 Nov 02:35:31" in text and "00:00:00" not in text
    foot = text.rstrip().split("\n")[-1]
    assert "/ search" in foot and "t test" not in foot and "H runs" not in foot
    assert "t test" in snapshot(sources.fleet(tmp_path), size=(160, 40)).text


def test_a_profile_that_is_read_says_so() -> None:
    assert "reading dflash …" in snapshot(sources.FixedSource()).text


def test_the_newest_line_of_a_start_has_no_time_and_nothing_of_an_escape(tmp_path: Path) -> None:
    path = tmp_path / "one.log"
    path.write_text("[2025-11-30 02:34:08] a\n[2025-11-30 02:34:09 TP0] odd \x1bP+q544e\x1b\\\x01\x02thing\n")
    board = snapshot(SavedLogs([path], clock=0.0)).text.split("\n")[2]
    assert "launching   odd thing" in board
