"""Launches on one host take turns where its profile says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Turns:
    """Each launch begins at least ``seconds`` after the one before began, in the order in which they were asked for.

    Whoever got a turn by ``take`` must ``give`` it on.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._lock = asyncio.Lock()
        self._free_at = 0.0  # of the loop's clock
        self._waiting = 0

    async def take(self, tell: Callable[[float], None]) -> None:
        """Wait for the turn. ``tell`` gets the seconds that this will take, if any, as far as they are known."""
        if not self.seconds:
            return
        ahead, self._waiting = self._waiting, self._waiting + 1
        try:
            if self._wait() or self._lock.locked():
                tell(self._wait() + ahead * self.seconds)
            await self._lock.acquire()
            try:
                while wait := self._wait():
                    tell(wait)
                    await asyncio.sleep(wait)
            except BaseException:
                self._lock.release()
                raise
        finally:
            self._waiting -= 1

    def give(self, age: float | None) -> None:
        """Let the next one go on. ``age``: seconds since this turn's launch began; ``None`` if there was none."""
        if not self.seconds:
            return
        if age is not None:
            self._free_at = asyncio.get_running_loop().time() - age + self.seconds
        self._lock.release()

    def _wait(self) -> float:
        return max(0.0, self._free_at - asyncio.get_running_loop().time())


class Turn:
    """One server's place among the launches of its host."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._taking: asyncio.Task[None] | None = None

    async def take(self, tell: Callable[[float], None]) -> bool:
        """Wait for the turn as ``Turns.take`` does; False when it was given up meanwhile."""
        self._taking = asyncio.ensure_future(self._turns.take(tell))
        try:
            await self._taking
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise  # it is not the place that was given up, but whoever waited
            return False
        finally:
            self._taking = None
        return True

    def give(self, age: float | None) -> None:
        self._turns.give(age)

    def give_up(self) -> bool:
        """Stop waiting; whether anybody waited."""
        return self._taking is not None and self._taking.cancel()
