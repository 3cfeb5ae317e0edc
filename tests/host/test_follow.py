"""When an agent reads the logs that it follows: the first line at once, those of a busy host together. By a clock that
stands until it is set, with files that are real."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tui.host.agent import follow, frames
from tui.host.agent.follow import TICK, Follower
from tui.host.agent.loop import Loop, Timer
from tui.host.agent.notify import Notifier


class Clock(Loop):
    """A loop whose timers run when its clock is set."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._timers: list[tuple[float, int, Timer]] = []

    def at(self, when: float, call: Callable[[], None]) -> Timer:
        timer = Timer(call)
        heapq.heappush(self._timers, (when, id(timer), timer))
        return timer

    def until(self, moment: float) -> None:
        while self._timers and self._timers[0][0] <= moment:
            self.now, _, timer = heapq.heappop(self._timers)
            if timer.call:
                timer.call()
        self.now = moment


class Watches(Notifier):
    """Tells of a write when it is asked to."""

    def __init__(self) -> None:
        self.armed: dict[str, Callable[[], None]] = {}

    def works_in(self, folder: str) -> bool:
        return True

    def arm(self, path: str, call: Callable[[], None]) -> int:
        self.armed[path] = call
        return len(self.armed)

    def disarm(self, watch: int) -> None:
        """Each watch is good for one event."""


@dataclass
class Agent:
    """Logs ``a`` and ``b`` of a host, both silent at first."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    watches: Watches = field(default_factory=Watches)

    def __post_init__(self) -> None:
        self.follower = Follower(self.clock, self.watches)
        self.follower.credit = 1 << 20
        for number, name in enumerate("ab", start=1):
            (self.folder / name).touch()
            self.follower.follow(number, str(self.folder / name), None, 0)

    def write(self, name: str, text: bytes) -> None:
        with (self.folder / name).open("ab") as log:
            log.write(text)
        if wake := self.watches.armed.pop(str(self.folder / name), None):
            wake()

    def sent(self) -> list[bytes]:
        """The texts of the frames that are to be sent now."""
        found = iter(self.follower.next_frame, None)
        return [body for frame in found for _, body in frames.Decoder().feed(frame)]


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    clock = Clock()
    monkeypatch.setattr(follow, "monotonic", lambda: clock.now)
    return Agent(tmp_path, clock)


def test_the_first_line_after_silence_is_sent_at_once(agent: Agent) -> None:
    agent.write("a", b"one\n")
    assert agent.sent() == [b"one\n"]
    agent.clock.until(agent.clock.now + 10 * TICK)
    assert agent.sent() == []
    agent.write("b", b"two\n")
    assert agent.sent() == [b"two\n"]


def test_the_rest_of_a_line_that_is_written_in_pieces_follows_soon(agent: Agent) -> None:
    agent.write("a", b"on")
    assert agent.sent() == [b"on"]
    agent.write("a", b"e\n")
    agent.clock.until(agent.clock.now + follow.SETTLE)
    assert agent.sent() == [b"e\n"]


def test_while_one_log_is_busy_all_are_read_together(agent: Agent) -> None:
    agent.write("a", b"one\n")
    assert agent.sent() == [b"one\n"]
    agent.clock.until(agent.clock.now + TICK / 5)
    agent.write("b", b"two\n")
    agent.write("a", b"three\n")
    assert agent.sent() == []
    agent.clock.until(follow.next_tick(agent.clock.now))
    assert sorted(agent.sent()) == [b"three\n", b"two\n"]
