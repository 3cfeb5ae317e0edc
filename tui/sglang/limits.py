"""What bounds the requests that a server runs at once, as far as its log and figures tell. Pure."""

from __future__ import annotations

import re

from tui.sglang import verdict
from tui.sglang.memory import flags
from tui.sglang.state import ServerState

MOST_SLOTS = 5  # Mamba slots that a request takes: 1 without the prefix cache, else 3, and up to 2 more for a buffer

_TOLD = (
    (re.compile(r"is capped to (\d+) by the mamba state"), "by its Mamba slots"),
    (re.compile(r"was reduced from the requested \S+ to (\d+)"), "by its KV cache"),
    (re.compile(r"is reset to (\d+) for speculative decoding"), "by default of speculative decoding"),
)


def running_limit(state: ServerState) -> str:
    """Why ``max_running_requests`` is what it is, in a few words; empty where nothing tells."""
    running = verdict.model_facts(state).max_running_requests
    if not running:
        return ""
    for warning in state.log.warnings:
        for pattern, words in _TOLD:
            found = pattern.search(warning)
            if found and int(found[1]) == running:
                return words
    if flags(state.log.args).get("max_running_requests") == str(running):
        return "as its flags ask"
    slots = next((p.slots for p in state.log.pools if p.kind == "Mamba" and p.place == "device" and p.slots), None)
    per_request = [n for n in range(1, MOST_SLOTS + 1) if slots and slots // n == running]
    if slots and per_request:
        each = f", {per_request[0]} each" if len(per_request) == 1 else ""
        return f"by {slots} Mamba slots{each}"
    if running * 2 == state.log.max_total_num_tokens:
        return "by its KV cache"
    return ""
