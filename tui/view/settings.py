"""What a user may set about the dashboard itself; ``tui/cli/config.py`` reads it from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Settings:
    """``keys``: actions → keys, several with commas between them. ``alert_command``: words of a command that is run,
    without a shell, for each alert. ``ascii``: no characters beyond ASCII."""

    keys: Mapping[str, str] = field(default_factory=dict)
    theme: str = "dark"
    ascii: bool = False
    bell: bool = True
    alert_command: tuple[str, ...] = ()
