"""What a host says of its runs, as records of this side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tui.host.api import RunExit, RunRecord


def exit_of(told: Mapping[str, Any] | None) -> RunExit | None:
    if told is None:
        return None
    refused = told.get("refused")
    return RunExit(
        told.get("status"), told.get("signal"), told.get("oom_killed"), told["at"], tuple(told.get("left") or ()),
        (refused["message"], refused["remedy"], refused["failure"]) if refused else None,
        ": ".join(told.get("leftover") or ()), bool(told.get("unforced")),
    )  # fmt: skip


def record_of(told: dict[str, Any]) -> RunRecord:
    known = {name: told[name] for name in RunRecord.__dataclass_fields__ if name in told}
    return RunRecord(**{**known, "argv": tuple(told["argv"]), "exit": exit_of(told["exit"])})
