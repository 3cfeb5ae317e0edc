"""Carrying out what the user answered to a ``Question``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tui.host.api import Hello, HostError, Link
from tui.host.question import Question, UnknownHostKey


async def answer(question: Question, reply: str) -> bool:
    """Whether the host is worth another attempt. ``reply``: ``yes`` adds a host key, all else leaves it; or a
    passphrase. Raises ``HostError``."""
    from tui.host import hostkeys, keyring  # with asyncssh

    if isinstance(question, UnknownHostKey):
        if reply.strip().lower() != "yes":
            return False
        await asyncio.to_thread(hostkeys.add, question)
    else:
        await asyncio.to_thread(keyring.unlock, question.path, reply)
    return True


async def open_asking(link: Link, ask: Callable[[HostError], Awaitable[bool]] | None) -> Hello:
    """Connect; ``ask`` is asked what stands in the way, and whether to try again. No question is asked twice. Raises
    ``HostError``."""
    asked: set[Question] = set()
    while True:
        try:
            return await link.open()
        except HostError as error:
            if ask is None or error.question is None or error.question in asked:
                raise
            asked.add(error.question)
            if not await ask(error):
                raise
