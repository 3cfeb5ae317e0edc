"""A port of the host on this machine's loopback, over a real sshd and over reconnects."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from tests.host.links import Ear, HostOf, opened, ssh_host
from tests.host.sshd import Sshd, running_sshd
from tests.host.strangers import started
from tests.ports import free_port, listens
from tests.waiting import DEADLINE, eventually
from tui.host import link
from tui.host.api import Forwarded, HostError, HostErrorKind, LinkLost, LinkUp
from tui.host.forward import Forwards, Listener


async def fetched(port: int) -> bytes:
    """What a GET of this machine's ``port`` answers."""
    async with asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        data = await reader.read()
        writer.close()
    return data


async def test_a_port_is_brought_here_and_taken_away(lasting_server: Sshd, tmp_path: Path) -> None:
    async with opened(ssh_host(lasting_server, tmp_path / "state")) as link:
        with started(tmp_path) as stranger:
            local = await link.forward(stranger.port)
            assert local != stranger.port
            assert (await fetched(local)).endswith(b"hello from %d" % stranger.pid)
            assert await link.forward(stranger.port) == local
            link.unforward(stranger.port)
            assert not listens(local)
    assert not listens(local)


async def test_it_is_there_again_after_a_reconnect(server: Sshd, tmp_path: Path) -> None:
    async with opened(ssh_host(server, tmp_path / "state")) as link:
        ear = Ear(link)
        with started(tmp_path) as stranger:
            local = await link.forward(stranger.port, local=free_port())
            server.kill_sessions()
            await ear.until(lambda: bool(ear.of(LinkUp)))
            await ear.until(lambda: Forwarded(stranger.port, local) in ear.events)
            assert (await fetched(local)).endswith(b"hello from %d" % stranger.pid)


async def test_a_port_that_was_taken_meanwhile_is_told(
    server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "FIRST_RETRY_SECONDS", 600.0)  # not before the thief has it
    async with opened(ssh_host(server, tmp_path / "state")) as box:
        ear = Ear(box)
        local = await box.forward(free_port(), local=free_port())
        server.kill_sessions()
        with socket.socket() as thief:
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            await ear.until(lambda: bool(ear.of(LinkLost)))
            await eventually(lambda: not listens(local))
            thief.bind(("127.0.0.1", local))
            thief.listen()
            await box.open()
            await ear.until(lambda: any(isinstance(e, Forwarded) and e.trouble for e in ear.events))


async def test_what_stands_in_the_way_is_named(lasting_server: Sshd, tmp_path: Path) -> None:
    with running_sshd(tmp_path / "strict", "DisableForwarding yes") as strict:
        async with opened(ssh_host(strict, tmp_path / "state")) as link:
            with pytest.raises(HostError, match="forbids forwarding") as refused:
                await link.forward(free_port())
            assert refused.value.kind is HostErrorKind.REFUSED
    async with opened(ssh_host(lasting_server, tmp_path / "state")) as link:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            with pytest.raises(HostError, match=r"Port \d+ of this machine cannot be used") as refused:
                await link.forward(free_port(), local=taken.getsockname()[1])
            assert refused.value.kind is HostErrorKind.CONFIG
    async with opened(HostOf(state_dir=str(tmp_path / "state"))) as link:
        with pytest.raises(HostError, match="is this machine"):
            await link.forward(free_port())


class Slow:
    """Listens here at once, and says so when it is allowed to."""

    def __init__(self) -> None:
        self.allowed = asyncio.Event()
        self.servers: list[asyncio.Server] = []

    async def forward(self, address: str, port: int, local: int) -> Listener:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", local)
        self.servers.append(server)
        await self.allowed.wait()
        return Bound(server)


class Bound:
    def __init__(self, server: asyncio.Server) -> None:
        self.close = server.close
        self.get_port = lambda: int(server.sockets[0].getsockname()[1])


async def test_a_port_that_is_let_go_while_it_comes_back_stays_away() -> None:
    told: list[Forwarded] = []
    forwards, before, after = Forwards(told.append), Slow(), Slow()
    before.allowed.set()
    local = await forwards.open(before, 8000, "127.0.0.1", 0)
    back = asyncio.create_task(forwards.resume(after))
    await eventually(lambda: bool(after.servers))
    assert listens(local)
    forwards.close(8000)
    after.allowed.set()
    await back
    assert not listens(local) and not told


async def test_two_who_ask_at_once_share_a_port() -> None:
    forwards, through = Forwards(lambda _: None), Slow()
    asked = [asyncio.create_task(forwards.open(through, 8000, "127.0.0.1", 0)) for _ in range(2)]
    await eventually(lambda: len(through.servers) == 2)
    through.allowed.set()
    [local, same] = await asyncio.gather(*asked)
    assert local == same and sum(server.is_serving() for server in through.servers) == 1
    forwards.close()
    assert not any(server.is_serving() for server in through.servers)
