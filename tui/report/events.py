"""What happens to servers, as JSON lines for scripts and as words for people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from tui.report.clean import json_text
from tui.report.units import number, span
from tui.sglang import verdict
from tui.sglang.state import ServerState


def json_line(at: float, server: str | None, event: str, **details: object) -> str:
    """One event as one line of JSON, without its newline: ``time`` (this machine's zone), ``server``, ``event``."""
    time = datetime.fromtimestamp(at).astimezone().isoformat(timespec="milliseconds")
    line = {"time": time, "server": server, "event": event, **details}
    return json_text(line, default=_plain)


def heartbeat_text(state: ServerState, now: float) -> tuple[str, dict[str, object]]:
    """How a start-up stands: words (stage, its age, pinned memory, last line), and the same as details of an event."""
    stage = verdict.stage(state)
    age = stage_age(state, now)
    pinned = state.memory.pinned / 1e9 if state.memory else None
    last = state.log.last_line.strip()
    words = [
        stage.value.replace("_", " ") if stage else "no output yet",
        f"for {span(age)}" if age is not None else "",
        f"{number(pinned)} GB pinned" if pinned else "",
        f"missing {', '.join(state.log.missing_ranks)}" if state.log.missing_ranks else "",
    ]
    text = "  ".join(word for word in words if word)
    details: dict[str, object] = {
        "stage": stage.value if stage else None,
        "seconds": None if age is None else round(age, 1),
        "pinned_gb": None if pinned is None else round(pinned, 2),
        "missing_ranks": list(state.log.missing_ranks),
        "last_line": last,
    }
    return (f"{text}  | {last[:200]}" if last else text), details


def stage_age(state: ServerState, now: float) -> float | None:
    """Seconds since the present stage began; since the launch where no stage has a time of its own."""
    run = state.run
    if run is None:
        return None
    stages = verdict.stages(state)
    last = stages[-1] if stages else None
    if last and last.seconds is None and last.start_local is not None and run.utc_offset is not None:
        return max(0.0, now + run.utc_offset - last.start_local)
    return max(0.0, now - run.started)


def _plain(value: object) -> object:
    """What JSON does not know: sets and mappings of our values become plain ones, the rest its text."""
    if isinstance(value, Mapping):
        return dict(value)
    return sorted(value) if isinstance(value, set | frozenset) else str(value)
