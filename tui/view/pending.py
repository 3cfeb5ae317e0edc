"""Actions under way: their outcomes are asked for, never waited for."""

from __future__ import annotations

from concurrent.futures import Future

from tui.fleet.api import Outcome


class Pending:
    """The futures of actions that were sent."""

    def __init__(self) -> None:
        self._futures: list[Future[Outcome]] = []

    def add(self, future: Future[Outcome]) -> None:
        self._futures.append(future)

    def over(self) -> list[Outcome]:
        """The outcomes that came since the last call, oldest first; failures and cancellations are outcomes too."""
        done = [future for future in self._futures if future.done()]
        self._futures = [future for future in self._futures if not future.done()]
        return [_outcome(future) for future in done]


def _outcome(future: Future[Outcome]) -> Outcome:
    if future.cancelled():
        return Outcome(False, "given up")
    error = future.exception()
    return Outcome(False, f"{type(error).__name__}: {error}") if error else future.result()
