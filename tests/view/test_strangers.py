"""Servers that somebody else started, and forwarded ports, in the running dashboard."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.view.sources import FixedSource, fleet
from tests.view.test_app import running, said, until
from tui.fleet.api import Discover, ForwardState, Kill
from tui.fleet.api import Forward as ForwardPort
from tui.sglang.model import Stranger
from tui.view.screens.confirm import TypeName
from tui.view.snapshot import screen_text

COMMAND = "python -m sglang.launch_server --model-path /m --api-key ****"


def with_stranger(folder: Path, **more: object) -> FixedSource:
    """The usual fleet, whose first server was found running."""
    source = fleet(folder)
    first = source.servers[0]
    stranger = replace(Stranger("alice", COMMAND), **more)  # type: ignore[arg-type]  # the test names real fields
    found = replace(first, info=replace(first.info, name="box:30000", stranger=stranger))
    source.servers = (found, *source.servers[1:])
    return source


async def test_it_is_ended_only_after_its_name_was_typed(tmp_path: Path) -> None:
    source = with_stranger(tmp_path)
    async with running(source) as (app, pilot):
        await pilot.press("K")
        assert isinstance(app.screen, TypeName)
        text = said(app)
        assert "Kill box:30000?" in text and "alice started it" in text and "sglang.launch_server" in text
        await pilot.press("y", "enter")
        assert isinstance(app.screen, TypeName) and source.acted == []
        await pilot.press(*"box:3000", "enter")
        assert isinstance(app.screen, TypeName) and source.acted == []
        await pilot.press(*"box:30000", "enter")
        await until(lambda: not isinstance(app.screen, TypeName), pilot)
        assert source.acted == [Kill("box:30000", typed="box:30000")]


async def test_escape_leaves_it_alone(tmp_path: Path) -> None:
    source = with_stranger(tmp_path)
    async with running(source) as (app, pilot):
        await pilot.press("K", *"box:30000", "escape")
        await until(lambda: not isinstance(app.screen, TypeName), pilot)
        assert source.acted == []


async def test_one_in_a_container_is_not_ended_and_none_is_launched_again(tmp_path: Path) -> None:
    source = with_stranger(tmp_path, container="docker 0123456789ab")
    async with running(source) as (app, pilot):
        await pilot.press("K")
        await pilot.pause()
        assert not isinstance(app.screen, TypeName) and source.acted == []
        assert "docker 0123456789ab" in " ".join(screen_text(app).split())
    source = with_stranger(tmp_path)
    async with running(source) as (app, pilot):
        await pilot.press("R")
        await pilot.pause()
        assert source.acted == [] and "found running" in screen_text(app)


async def test_what_is_said_of_it(tmp_path: Path) -> None:
    source = with_stranger(tmp_path, output="goes to a terminal (/dev/pts/3)")
    source.logs.pop("box:30000", None)
    async with running(source) as (app, _):
        screen = screen_text(app)
        assert "found running: pid 4711 of alice" in screen
        assert "what it prints goes to a terminal (/dev/pts/3)" in screen


async def test_keys_look_for_servers_and_forward_ports(source: FixedSource) -> None:
    async with running(source) as (_, pilot):
        await pilot.press("d", "F")
        assert source.acted == [Discover("box"), ForwardPort("gpu0")]


async def test_a_forwarded_port_is_shown(source: FixedSource) -> None:
    [host, *others] = source.host_states
    host = replace(host, phase="connected", forwards=(ForwardState("gpu0", 30000, 40000),))
    source.host_states = (host, *others)
    async with running(source) as (app, _):
        assert "gpu0 ⇄ http://127.0.0.1:40000" in screen_text(app)
