"""A host that says nothing is given up, and told from when on."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.fleet.rig import DEADLINE
from tui.fleet.hosts import HostWatch
from tui.host.connect import open_link
from tui.host.wording import login_hint
from tui.profile.model import Host


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        ("box", "Try `ssh box`."),
        ("ann@box:2222", "Try `ssh -p 2222 ann@box`."),
        ("local", "This machine may be overloaded, or the `python` of the host hangs."),
    ],
)
def test_what_to_try(address: str, hint: str) -> None:
    assert login_hint(address) == hint


async def test_it_was_away_for_as_long_as_it_was_waited_for() -> None:
    now = 1000.0
    news = asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        link = open_link(Host(name="box", ssh=address), read_only=True)
        watch = HostWatch(link, "p", address, clock=lambda: now, changed=news.set)
        watch.start()
        async with asyncio.timeout(DEADLINE):
            while watch.state.phase != "connecting":
                news.clear()
                await news.wait()
        now += 7.0
        watch.give_up(7.0)
        assert (watch.state.phase, watch.state.since) == ("unreachable", 1000.0)
        await watch.close()
