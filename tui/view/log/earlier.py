"""The log of a run that is not a server's current one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class EarlierLog:
    """``path`` holds it on this side, whole."""

    run: str
    path: Path
