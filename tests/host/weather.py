"""Bad networks: a proxy on loopback that cuts, stalls and slows connections, and a network namespace whose link can be
taken down."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import pytest

_CHUNK = 16 << 10
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close sends RST


@dataclass
class Weather:
    """A TCP proxy. ``fate()`` is asked at each connection how many bytes from the server it lives (``None``: for ever),
    and whether it then ends by a reset."""

    target: int
    port: int = 0
    fate: Callable[[], tuple[int, bool] | None] = lambda: None
    open: asyncio.Event = field(default_factory=asyncio.Event)  # cleared: a black hole, packets vanish
    bytes_per_second: float | None = None
    cuts: int = 0
    connections: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await self.open.wait()
        there, out = await asyncio.open_connection("127.0.0.1", self.target, limit=_CHUNK)
        for one in (writer, out):
            one.transport.set_write_buffer_limits(_CHUNK)
        fate = self.fate()
        pumps = [
            asyncio.create_task(self._pump(reader, out, None)),
            asyncio.create_task(self._pump(there, writer, fate)),
        ]
        self._tasks.update(pumps)
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        for one in (writer, out):
            if fate and fate[1]:
                with contextlib.suppress(OSError):
                    one.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            one.transport.abort()

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, fate: tuple[int, bool] | None
    ) -> None:
        left = fate[0] if fate else None
        with contextlib.suppress(OSError):
            while data := await source.read(_CHUNK if left is None else min(_CHUNK, left)):
                await self.open.wait()
                if self.bytes_per_second:
                    await asyncio.sleep(len(data) / self.bytes_per_second)
                sink.write(data)
                await sink.drain()
                if left is not None:
                    left -= len(data)
                    if left == 0:
                        self.cuts += 1
                        return

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


@asynccontextmanager
async def weather(target: int) -> AsyncIterator[Weather]:
    """A proxy before ``target``, at first transparent."""
    proxy = Weather(target)
    proxy.open.set()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=_CHUNK)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.close()


@dataclass(frozen=True)
class Namespace:
    """A network namespace behind a pair of virtual interfaces."""

    name: str
    here: str
    there: str
    ip: str

    @property
    def within(self) -> tuple[str, ...]:
        return ("ip", "netns", "exec", self.name)

    def link(self, state: str) -> None:
        """``down``: no packet passes, and nobody is told."""
        _run(*self.within, "ip", "link", "set", self.there, state)

    def slow(self, rate: str) -> None:
        """What comes out of the namespace passes at ``rate`` ("20mbit"), as at a router with 256 KiB of memory."""
        _run(*self.within, "tc", "qdisc", "add", "dev", self.there, "root", "tbf", "rate", rate, "burst", "16kb",
             "limit", "256kb")  # fmt: skip


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True, text=True)


@contextmanager
def namespace() -> Iterator[Namespace]:
    """A namespace for one test; skips, with the reason, where none can be made."""
    if not shutil.which("ip"):
        pytest.skip("no iproute2 on this machine")
    number = os.getpid() % 60_000
    net = f"10.{200 + number // 16_384}.{number // 64 % 256}.{number % 64 * 4}"
    base, last = net.rsplit(".", 1)
    space = Namespace(f"hcs{number}", f"hcsa{number}", f"hcsb{number}", f"{base}.{int(last) + 2}")
    try:
        try:
            _run("ip", "netns", "add", space.name)
            _run("ip", "link", "add", space.here, "type", "veth", "peer", "name", space.there, "netns", space.name)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr.strip()}")
        _run("ip", "address", "add", f"{base}.{int(last) + 1}/30", "dev", space.here)
        _run("ip", "link", "set", space.here, "up")
        _run(*space.within, "ip", "address", "add", f"{space.ip}/30", "dev", space.there)
        _run(*space.within, "ip", "link", "set", space.there, "up")
        _run(*space.within, "ip", "link", "set", "lo", "up")
        yield space
    finally:
        subprocess.run(["ip", "netns", "del", space.name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", space.here], check=False, capture_output=True)
