"""GET and POST through the agent."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.ports import free_port
from tui.host.api import HostError, HostErrorKind
from tui.host.link import HostLink


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/hang":
            hang.wait(30)
        body = json.dumps({"path": self.path, "auth": self.headers.get("Authorization")}).encode()
        self._answer(body * (100_000 if self.path == "/large" else 1))

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"]))[::-1])

    def _answer(self, body: bytes) -> None:
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


hang = threading.Event()


@pytest.fixture
def port() -> Iterator[int]:
    hang.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server.server_address[1]
    hang.set()
    server.shutdown()
    server.server_close()


async def test_get_and_post(link: HostLink, port: int) -> None:
    answer = await link.get(port, "/x?y=1", headers={"Authorization": "Bearer k"})
    assert (answer.status, json.loads(answer.body)) == (200, {"path": "/x?y=1", "auth": "Bearer k"})
    assert (await link.get(port, "/missing")).status == 404
    assert (await link.post(port, "/v1", b"abc" * 100_000)).body == b"cba" * 100_000
    assert len((await link.get(port, "/large")).body) > 3_000_000


async def test_a_hanging_server_delays_nobody_and_has_a_deadline(local: HostLink, port: int) -> None:
    slow = asyncio.create_task(local.get(port, "/hang", timeout=1.0))
    assert (await local.get(port, "/")).status == 200
    assert not slow.done()
    with pytest.raises(HostError, match="no answer in 1 s") as found:
        await slow
    assert found.value.kind is HostErrorKind.REFUSED


async def test_nobody_there_and_no_http(local: HostLink) -> None:
    with pytest.raises(HostError, match="Nothing answers on port"):
        await local.get(free_port(), "/")
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        with pytest.raises(HostError, match=r"does not speak HTTP|broke off"):
            await local.get(server.sockets[0].getsockname()[1], "/")


async def test_a_header_cannot_smuggle_a_request(local: HostLink, port: int) -> None:
    with pytest.raises(HostError, match="line break"):
        await local.get(port, "/", headers={"X": "1\r\nY: 2"})
