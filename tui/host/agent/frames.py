"""The wire format between a link and its agent: magic, two lengths, a small JSON header, raw bytes.

Used by both sides. A frame whose magic is wrong means that something else wrote into the channel: the channel is
then given up and opened again, since what follows cannot be trusted.
"""

from __future__ import annotations

import json
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAGIC = b"\xabHC1"
HEAD = struct.Struct(">4sII")
MAX_HEADER = 1 << 20
MAX_BODY = 64 << 20
BULK = 64 << 10  # bytes of a log in one frame


class BadFrame(Exception):
    """The stream is not made of frames (any more)."""


def encode(header: dict[str, Any], body: bytes = b"") -> bytes:
    """One frame. ``header`` is JSON; lone surrogates (undecodable file names, environment) pass through."""
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    return HEAD.pack(MAGIC, len(text), len(body)) + text + body


class Decoder:
    """Cuts a byte stream into frames; chunk borders may fall anywhere."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[dict[str, Any], bytes]]:
        """The frames completed by ``data``, in order. Raises ``BadFrame``."""
        buffer = self._buffer
        buffer += data
        frames = []
        at = 0
        while len(buffer) - at >= HEAD.size:
            magic, header_size, body_size = HEAD.unpack_from(buffer, at)
            if magic != MAGIC or header_size > MAX_HEADER or body_size > MAX_BODY:
                raise BadFrame("the channel carries something that is not a frame: %r" % bytes(buffer[at : at + 60]))
            start = at + HEAD.size
            end = start + header_size + body_size
            if len(buffer) < end:
                break
            try:
                header = json.loads(bytes(buffer[start : start + header_size]))
            except ValueError as error:
                raise BadFrame("a frame's header is not JSON") from error
            frames.append((header, bytes(buffer[start + header_size : end])))
            at = end
        del buffer[:at]
        return frames
