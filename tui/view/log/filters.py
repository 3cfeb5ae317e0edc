"""What the log pane shows and in which ink: tables over the kinds of lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tui.sglang.kinds import is_probe, kind_of
from tui.view.log.query import Query

__all__ = ["FILTERS", "INKS", "Choice", "Filter", "is_probe", "keeper", "kind_of", "never"]


@dataclass(frozen=True, slots=True)
class Filter:
    """A preset: the kinds of lines it lets through; ``None`` is all."""

    name: str
    kinds: frozenset[str] | None


FILTERS = (
    Filter("all", None),
    Filter("caches", frozenset({"cache"})),
    Filter("stages", frozenset({"stage", "cache", "ready", "progress"})),
    Filter("problems", frozenset({"error", "warning", "traceback"})),
    Filter("batches", frozenset({"batch"})),
)

INKS: dict[str, str] = {
    "error": "bad",
    "traceback": "bad",
    "warning": "warn",
    "cache": "mamba",
    "stage": "start",
    "progress": "start",
    "ready": "ok bold",
    "batch": "text",
    "http": "muted",
    "probe": "muted",
}


ANY = Query()
_BATCH = re.compile(r"(?:Decode|Prefill) batch[.,]")
_SHORT = 4096  # bytes of a line that is read before a closer look


@dataclass(frozen=True, slots=True)
class Choice:
    """Which lines are shown: of a preset, with or without those of health probes, of those the ones that ``include``
    finds and ``exclude`` does not."""

    preset: Filter = FILTERS[0]
    probes: bool = False
    include: Query = ANY
    exclude: Query = ANY

    @property
    def all(self) -> bool:
        """Whether nearly every line is shown."""
        return self.preset.kinds is None and not self.include and not self.exclude

    def __str__(self) -> str:
        told = [
            f"filter {self.preset.name}" if self.preset.kinds is not None else "",
            f"only {self.include}" if self.include else "",
            f"without {self.exclude}" if self.exclude else "",
        ]
        return " · ".join(part for part in told if part)


def never(chosen: Choice) -> Callable[[bytes], bool] | None:
    """``(raw line) -> surely not shown?``, without a closer look: nearly all lines of a serving log are of batches,
    and a filter of one's own mostly lets few lines through."""
    kinds, include = chosen.preset.kinds, chosen.include
    batches = kinds is not None and not kinds & {"batch", "probe"}
    if not batches and not include and not chosen.exclude:
        return None
    holds = include.pattern.search if include else None
    hides = chosen.exclude.pattern.search if chosen.exclude else None

    def surely_not(raw: bytes) -> bool:
        if len(raw) > _SHORT or not raw.isascii() or not (text := raw.decode("ascii")).isprintable():
            return False  # it may be shown as something else
        if (batches and _BATCH.search(text, 0, 200)) or (holds is not None and not holds(text)):
            return True
        return hides is not None and hides(text) is not None

    return surely_not


def keeper(chosen: Choice) -> Callable[[str, str], bool]:
    """``(text, kind) -> shown?``"""
    kinds, probes = chosen.preset.kinds, chosen.probes
    include = chosen.include.pattern.search if chosen.include else None
    exclude = chosen.exclude.pattern.search if chosen.exclude else None

    def keep(text: str, kind: str) -> bool:
        if (kinds is not None and kind not in kinds) or (include is not None and not include(text)):
            return False
        return (probes or not is_probe(text)) and not (exclude is not None and exclude(text))

    return keep
