"""The requests in flight of a simulated server: what the tokenizer process of SGLang keeps."""

from __future__ import annotations

import asyncio
import random
import time
import zlib
from collections.abc import AsyncIterator

from tui.demo.answers import Figures
from tui.demo.process import Channel, Message

_BLOCK_CHARS = 256  # characters of a block of 64 tokens
_WORDS = (
    "the", "cache", "holds", "what", "was", "read", "before", "so", "a", "prompt", "that", "begins", "alike", "need",
    "not", "be", "computed", "again", "and", "its", "state", "waits", "in", "host", "memory",
)  # fmt: skip


class Requests:
    """Sends requests to the scheduler and hands its tokens to those who wait for them."""

    def __init__(self, channel: Channel, seed: int) -> None:
        self.channel = channel
        self.figures = Figures()
        self.waiting: dict[str, asyncio.Queue[tuple[int, bool]]] = {}
        self._rng = random.Random(seed + 1)

    async def generate(self, prompt: str, wanted: int) -> AsyncIterator[tuple[int, bool]]:
        """(new tokens, finished) as they come; ends with the request."""
        rid = f"{self._rng.getrandbits(128):032x}"
        queue = self.waiting[rid] = asyncio.Queue()
        self.figures.requests += 1
        self.channel.send(add=rid, prompt=token_count(prompt), wanted=max(1, wanted), blocks=_blocks(prompt))
        finished = False
        try:
            while not finished:
                count, finished = await queue.get()
                yield count, finished
        finally:
            del self.waiting[rid]
            if not finished:
                self.channel.send(abort=rid)

    def receive(self, message: Message) -> None:
        """Take what one step of the scheduler produced, and its figures."""
        for rid, count, finished in message.get("out", ()):
            self.figures.generated_tokens += count
            if rid in self.waiting:
                self.waiting[rid].put_nowait((count, finished))
        stats = message.get("stats", {})
        for name in ("running", "queued", "used", "states", "rate", "accept_len"):
            if name in stats:
                setattr(self.figures, name, stats[name])
        self.figures.cached_tokens += stats.get("cached_tokens", 0)
        self.figures.prompt_tokens += stats.get("new_tokens", 0) + stats.get("cached_tokens", 0)


def token_count(prompt: str) -> int:
    """About four characters a token, at least one."""
    return max(1, len(prompt) // 4)


def words(start: int, count: int) -> str:
    """``count`` tokens of text, from position ``start`` of an endless sentence."""
    return "".join(" " + _WORDS[(start + index) % len(_WORDS)] for index in range(count))


def _blocks(prompt: str) -> list[int]:
    """Digests of the prompt's prefixes, a block longer each."""
    digests = []
    digest = 0
    for start in range(0, len(prompt) - _BLOCK_CHARS + 1, _BLOCK_CHARS):
        digest = zlib.crc32(prompt[start : start + _BLOCK_CHARS].encode(), digest)
        digests.append(digest)
    return digests


def now() -> int:
    return int(time.time())
