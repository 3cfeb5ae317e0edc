"""Just enough HTTP/1.1 for a simulated server: one request per connection, answers of JSON, text or a stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

_REASONS = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed",
    500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip
DRAINING = "x-demo-draining"
_MOST_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Asked:
    """A request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, object]:
        """The body. Raises ``ValueError`` when it is no JSON object."""
        found = json.loads(self.body or b"{}")
        if not isinstance(found, dict):
            raise ValueError("the body must be a JSON object")
        return found


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; ``stream`` comes after the headers instead of ``body``."""

    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    stream: AsyncIterator[bytes] | None = field(default=None, compare=False)
    draining: bool = False  # told to the demo's load generator in a header

    @property
    def reason(self) -> str:
        return f"{self.status} {_REASONS.get(self.status, '')}".rstrip()


def json_answer(value: object, status: int = 200) -> Answer:
    return Answer(status, json.dumps(value, separators=(",", ":")).encode())


async def read_request(reader: asyncio.StreamReader) -> Asked | None:
    """The request on a connection; ``None`` when there is none or it is no HTTP."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {
            key.strip().lower(): value.strip() for key, _, value in (line.partition(":") for line in lines) if key
        }
        length = int(headers.get("content-length", "0"))
        if not 0 <= length <= _MOST_BYTES:
            return None
        body = await reader.readexactly(length)
    except (ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        return None
    return Asked(method, target, headers, body)


async def write_answer(writer: asyncio.StreamWriter, answer: Answer) -> None:
    """Send ``answer`` and close. Raises ``ConnectionError`` when the client left."""
    extra = f"{DRAINING}: 1\r\n" if answer.draining else ""
    length = extra if answer.stream else f"{extra}Content-Length: {len(answer.body)}\r\n"
    head = (
        f"HTTP/1.1 {answer.reason}\r\nserver: uvicorn\r\ncontent-type: {answer.kind}\r\n{length}connection: close\r\n"
    )
    writer.write(head.encode("latin-1") + b"\r\n" + answer.body)
    await writer.drain()
    if answer.stream:
        async for piece in answer.stream:
            writer.write(piece)
            await writer.drain()


async def ask(
    host: str, port: int, method: str, path: str, body: bytes = b"", authorization: str = ""
) -> tuple[int, bytes, bytes]:
    """One request to a server: (status, headers, body). Raises ``OSError`` when it cannot be reached or leaves."""
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
    try:
        extra = f"authorization: {authorization}\r\n" if authorization else ""
        head = f"{method} {path} HTTP/1.1\r\nhost: {host}\r\n{extra}content-length: {len(body)}\r\n\r\n"
        writer.write(head.encode("latin-1") + body)
        await writer.drain()
        answer = await reader.read(-1)
    finally:
        writer.close()
    first, _, rest = answer.partition(b"\r\n\r\n")
    words = first.split(b" ", 2)
    if len(words) < 2 or not words[1].isdigit():
        raise ConnectionError(f"no answer from {host}:{port}")
    return int(words[1]), first, rest
