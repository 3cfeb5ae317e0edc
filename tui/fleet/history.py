"""How long the stages of earlier runs took, kept on this side so that a start-up can be compared with the last one."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

from tui.fleet.places import write_private

StageTimes = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class StageHistory:
    """One small JSON file per server: the stages, in seconds, of the last run that became ready."""

    path: Path

    def load(self) -> StageTimes:
        """The last ready run's stages; empty when there is none or the file cannot be read."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            pairs = json.loads(self.path.read_bytes())["stages"]
            return tuple((str(stage), float(seconds)) for stage, seconds in pairs)
        return ()

    def save(self, run: str, stages: StageTimes) -> None:
        """Replace the file as a whole; a history that cannot be written is not worth a failure."""
        with contextlib.suppress(OSError):
            write_private(self.path, json.dumps({"run": run, "stages": stages}))
