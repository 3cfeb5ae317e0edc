"""What is typed and clicked, one thing at a time: each finds the screen and the focus that the one before left behind.

Textual hands a key to the widget that has the focus when the key comes in. What the key before it opens or focuses is
told from queue to queue and stands there a moment later: of ``/needle``, typed in one go, ``d`` would look for servers
and ``l`` launch one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from textual import events
from textual.app import App
from textual.message_pump import MessagePump

Input = events.InputEvent | events.Paste

_ROUNDS = 4
"""How often a word is sent from the focus up to the app: Enter in a line is a key, then what the line says of it, then
what the line's owner makes of that, then where the focus goes."""

PATIENCE = 1.0
"""Seconds that a key waits at most for what is done with the one before."""


class Turns:
    """Holds back what comes in while something that came before is being acted upon."""

    def __init__(self, app: App[None]) -> None:
        self._app = app
        self._waiting: deque[Input] = deque()
        self._next: Input | None = None
        self._task: asyncio.Task[None] | None = None
        self._held: asyncio.Event | None = None

    @property
    def busy(self) -> bool:
        """Whether something is being acted upon."""
        return self._task is not None

    def takes(self, event: Input) -> bool:
        """Whether it is to be acted upon now; if not, it is posted to the app again when its turn has come."""
        if event is self._next:
            return True
        moves = isinstance(event, events.MouseMove)
        if self._task is None:
            if not moves:
                self._task = asyncio.create_task(self._in_turn())
            return True
        if moves and self._waiting and isinstance(self._waiting[-1], events.MouseMove):
            self._waiting.pop()  # where the mouse is now is all that counts
        self._waiting.append(event)
        return False

    def hold(self) -> Callable[[], None]:
        """Until the returned is called, what comes in waits for something that is about to open."""
        self._held = held = asyncio.Event()
        if self._task is None:
            self._task = asyncio.create_task(self._in_turn())
        return held.set

    async def _in_turn(self) -> None:
        try:
            await self._settled()
            while self._waiting:
                self._next = self._waiting.popleft()
                self._app.post_message(self._next)
                await self._settled()
        finally:
            self._next = self._task = None

    async def _settled(self) -> None:
        """Wait until all is done and told that the last event led to."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await _reached(self._app)
                await self._rounds()
                if self._held is not None:
                    await self._held.wait()
                    await self._rounds()
                await self._worked()
        self._held = None

    async def _worked(self) -> None:
        """What a screen has begun by itself is part of what it shows: the palette's hits, the picker's profiles."""
        working = [one.wait() for one in self._app.workers if one.node is self._app.screen and one.is_running]
        await asyncio.shield(asyncio.gather(*working, return_exceptions=True))

    async def _rounds(self) -> None:
        for _ in range(_ROUNDS):
            for pump in (self._app.focused or self._app.screen).ancestors_with_self:
                await _reached(pump)


async def _reached(pump: MessagePump) -> None:
    """Wait until a pump has taken all that stands in its queue."""
    reached = asyncio.Event()
    if pump.call_later(reached.set):
        await reached.wait()
