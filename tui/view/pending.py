"""Actions under way: their outcomes are asked for, never waited for."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from tui.fleet.api import Outcome

Then = Callable[[Outcome], None]


class Pending:
    """The futures of actions that were sent, and what is done with their outcomes: told, unless somebody takes them."""

    def __init__(self) -> None:
        self._futures: list[tuple[Future[Outcome], Then | None]] = []

    def add(self, future: Future[Outcome], then: Then | None = None) -> None:
        self._futures.append((future, then))

    def over(self) -> list[Outcome]:
        """The outcomes to tell that came since the last call, oldest first; failures and cancellations are outcomes
        too. Those that somebody takes are handed over."""
        done = [pair for pair in self._futures if pair[0].done()]
        self._futures = [pair for pair in self._futures if not pair[0].done()]
        for future, then in done:
            if then is not None:
                then(_outcome(future))
        return [_outcome(future) for future, then in done if then is None]


def _outcome(future: Future[Outcome]) -> Outcome:
    if future.cancelled():
        return Outcome(False, "given up")
    error = future.exception()
    return Outcome(False, f"{type(error).__name__}: {error}") if error else future.result()
