"""What the log pane shows and in which ink: tables over the kinds of lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tui.sglang.kinds import is_probe, kind_of

__all__ = ["FILTERS", "INKS", "Filter", "is_probe", "keeper", "kind_of", "never"]


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


_BATCH = re.compile(rb"(?:Decode|Prefill) batch[.,]")


def never(chosen: Filter) -> Callable[[bytes], bool] | None:
    """``(raw line) -> surely not shown?``, without a closer look: nearly all lines of a serving log are of batches."""
    if chosen.kinds is None or chosen.kinds & {"batch", "probe"}:
        return None
    return lambda raw: _BATCH.search(raw, 0, 200) is not None and b"\r" not in raw and b"\x1b" not in raw


def keeper(chosen: Filter, probes: bool) -> Callable[[str, str], bool]:
    """``(text, kind) -> shown?`` for a preset, with or without the lines of health probes."""
    kinds = chosen.kinds
    if kinds is None:
        return (lambda text, kind: True) if probes else (lambda text, kind: not is_probe(text))
    return lambda text, kind: kind in kinds and (probes or not is_probe(text))
