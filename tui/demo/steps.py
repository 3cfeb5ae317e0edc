"""What a simulated scheduler does while it starts: a handful of steps, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Say:
    """Print one log record (it may hold several lines)."""

    text: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Bar:
    """A progress bar of ``total`` things over ``seconds``. ``weights`` bars count shards, others batch sizes."""

    label: str
    sizes: tuple[int, ...]  # what each tick is about; for weights 1…n
    seconds: float
    weights: bool = False
    newlines: bool = False  # old releases end each tick with a line feed


@dataclass(frozen=True, slots=True)
class Pin:
    """Pin ``size`` bytes of host memory, evenly over ``seconds``."""

    size: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Crash:
    """An exception of the scheduler: a traceback with these frames (file, line, function, source), then the error."""

    frames: tuple[tuple[str, int, str, str], ...]
    error: str


@dataclass(frozen=True, slots=True)
class Die:
    """SIGKILL, without a word, to the scheduler itself or to the main process."""

    main: bool


@dataclass(frozen=True, slots=True)
class Hang:
    """Never go on."""


Step = Say | Wait | Bar | Pin | Crash | Die | Hang
