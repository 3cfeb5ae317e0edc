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


def private_folder(path: Path) -> None:
    """Make ``path`` and what is missing above it, for this user only, whatever the umask. Raises ``OSError``."""
    if not path.is_dir():
        private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, text: str) -> None:
    """Replace a file as a whole, mode 0600. Raises ``OSError``."""
    private_folder(path.parent)
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
