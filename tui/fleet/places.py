"""Where this side keeps spooled logs and stage times."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """``spool``: raw logs, which may be dropped at any time. ``history``: stage times of earlier runs."""

    spool: Path
    history: Path


def default_places() -> Places:
    """The user's cache and state folders (XDG), or below ``HCS_HOME`` where that is set."""
    if home := os.environ.get("HCS_HOME"):
        return Places(Path(home) / "spool", Path(home) / "history")
    import platformdirs

    return Places(
        platformdirs.user_cache_path("hcs-tui") / "spool", platformdirs.user_state_path("hcs-tui") / "history"
    )
