"""The load generator: it waits for servers, keeps them busy, and ends when it is told to."""

from __future__ import annotations

import asyncio
import errno
import random
import socket
from contextlib import ExitStack

import pytest

from tests.demo.running import running
from tui.demo.fleet import DemoServer, plan
from tui.demo.load import Talks, keep_busy


async def test_a_ready_server_is_kept_busy_and_a_dead_one_is_no_matter() -> None:
    with ExitStack() as held, running("--scenario", "hicache", "--decode-log-interval", "5") as server:
        (nobody,) = plan(1, held)
        busy = asyncio.create_task(keep_busy([nobody, DemoServer("gpu0", "demo", 0, "hicache", server.port, 1)]))
        try:
            await asyncio.to_thread(server.read_until, r"Decode batch, #running-req: [2-9]")
        finally:
            busy.cancel()
            await asyncio.gather(busy, return_exceptions=True)
        assert busy.cancelled()


def test_a_conversation_repeats_what_was_said_and_adds_to_it() -> None:
    talks = Talks(random.Random(1), 2)
    first, _, third = talks.turn(), talks.turn(), talks.turn()
    assert third.startswith(first) and len(third) > len(first)


def test_ports_are_their_servers_alone() -> None:
    with ExitStack() as held:
        first, second = ({server.port for server in plan(64, held)} for _ in range(2))
        assert len(first | second) == 128
        port = first.pop()
        for _ in range(2):  # launched, and launched anew
            with socket.create_server(("127.0.0.1", port)) as server:
                socket.create_connection(server.getsockname()).close()
        with socket.socket() as other, pytest.raises(OSError) as refused:
            other.bind(("127.0.0.1", port))
        assert refused.value.errno == errno.EADDRINUSE
