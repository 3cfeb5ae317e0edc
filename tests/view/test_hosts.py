"""The hosts: what the drawing says at each width, and the screen that scrolls over it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.view import sources
from tui.fleet.api import Gpu, HostState, Machine
from tui.view.app import HcsApp
from tui.view.draw import hosts
from tui.view.draw.row import plain, width
from tui.view.glance import Glance, glance
from tui.view.screens.hosts import Hosts, HostSheet
from tui.view.snapshot import screen_text


@pytest.fixture
def fleet(tmp_path: Path) -> sources.FixedSource:
    return sources.hosts(tmp_path)


def glances(fleet: sources.FixedSource) -> list[Glance]:
    return [glance(state, fleet.now()) for state in fleet.states()]


@pytest.mark.parametrize("columns", [20, 40, 56, 76, 116, 156, 296])
def test_all_is_told_and_no_row_is_wider_than_asked(fleet: sources.FixedSource, columns: int) -> None:
    rows = hosts.hosts(fleet.hosts(), glances(fleet), fleet.now(), columns)
    assert max(width(row) for row in rows) <= columns
    if columns < 56:
        return
    text = plain(rows)
    for used, free in (
        ("478.7 of 540 GB used", "61.3 free"),
        ("454.8 of 503 GB used", "48.2 free"),
        ("919.0 of 960 GB used", "41.0 free ⚠"),
        ("5.50 of 7.6 TB used", "2.10 free"),
    ):
        assert f"{used}, {free}" in text
    for word in ("busy  97%  612 of 700 W", "⚠ alice: python3 (pid 31337) 12.0 GB", "✖ gpu3", "next try in 8.0s"):
        assert word in text
    for word in ("⚠ nvidia-smi gave no answer", "as seen 1m20s ago", "none that nvidia-smi tells of"):
        assert word in text


def test_the_limit_the_paths_and_the_names_stand_where_there_is_room(fleet: sources.FixedSource) -> None:
    text = plain(hosts.hosts(fleet.hosts(), glances(fleet), fleet.now(), 156))
    for word in ("the limit of the session's cgroup", "/models/Qwen3.6-27B", "NVIDIA H100 80GB HBM3", "128 CPUs"):
        assert word in text


def test_all_servers_of_a_host_and_the_ends_of_paths(tmp_path: Path) -> None:
    fleet = replace(sources.many(tmp_path, 64), host_states=sources.host_states())
    text = plain(hosts.hosts(fleet.hosts(), glances(fleet), fleet.now(), 76))
    assert all(f" gpu{n}" in text for n in range(64))
    assert "…/Qwen3.6-27B" in text and "Qwen3.6…" not in text


def test_bars_fill_what_their_words_call_used(fleet: sources.FixedSource) -> None:
    for free, filled in ((64, 0), (48, 6), (32, 12), (16, 18), (0, 24)):
        bare = HostState("box", "box", "connected", machine=Machine(64 * sources.GB, free * sources.GB))
        row = next(r for r in plain(hosts.hosts((bare,), [], fleet.now(), 120)).split("\n") if "memory" in r)
        assert row.count("━") == filled and f"{64 - free}.0 of 64 GB used,  {free}.0 free" in row


def test_long_names_differ_at_their_ends(fleet: sources.FixedSource) -> None:
    names = [f"{'a-server-with-a-very-long-name-' * 3}{n}" for n in (1, 2)]
    first = fleet.states()[0]
    shown = [glance(replace(first, info=replace(first.info, name=name)), fleet.now()) for name in names]
    text = plain(hosts.hosts(fleet.hosts()[:1], shown, fleet.now(), 56))
    listed = [row for row in text.split("\n") if "● a-server" in row]
    assert len(listed) == 2 and len({row.split("●")[1] for row in listed}) == 2 and listed[1].endswith("name-2")


def test_what_nobody_tells_is_not_made_up(fleet: sources.FixedSource) -> None:
    bare = HostState("box", "box", "connected", machine=Machine(0, 0, gpus=(Gpu(0, "Orin"),)))
    text = plain(hosts.hosts((bare,), glances(fleet), fleet.now(), 100))
    assert "memory untold" in text and "busy" not in text and " W" not in text
    assert "free; gpu0 wants it" in text, "its profile gives GPU 0 to gpu0"
    asked = replace(bare, machine=None)
    assert "not looked at yet" in plain(hosts.hosts((asked,), [], fleet.now(), 100))
    assert "no hosts" in plain(hosts.hosts((), [], fleet.now(), 100))


async def test_the_screen_scrolls_and_leads_back(fleet: sources.FixedSource) -> None:
    app = HcsApp(fleet, frozen=True)
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.press("h")
        await pilot.pause()
        assert isinstance(app.screen, Hosts) and "▼" in screen_text(app) and "● box" in screen_text(app)
        await pilot.press("end")
        await pilot.pause()
        assert "● plain" in screen_text(app) and "▲" in screen_text(app)
        await pilot.press("pageup", "home")
        sheet = app.screen.query_one(HostSheet)
        assert sheet.first == 0
        row = next(n for n, row in enumerate(sheet.rows(*sheet.size)) if any(s.action == "select:gpu3" for s in row))
        at = plain([sheet.rows(*sheet.size)[row]]).index("gpu3")
        await pilot.click(HostSheet, offset=(at, row))
        await pilot.pause()
        assert not isinstance(app.screen, Hosts) and app.selected == "gpu3"
