"""One short completion on a server, from its own host: does it answer, and how fast."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tui.fleet.api import Outcome
from tui.fleet.probe import authorization
from tui.host.api import HttpAnswer, Link
from tui.profile.model import Server

OK = 200
PROMPT = "The capital of France is"
TOKENS = 32


async def smoke_test(link: Link, server: Server) -> Outcome:
    """Its text, the seconds until its first token and in all, and tokens per second after the first one; seconds are
    counted on the host."""
    assert server.port is not None
    asked = {
        "model": server.model or "default",
        "prompt": PROMPT,
        "max_tokens": TOKENS,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    headers = {"Content-Type": "application/json", **authorization(server)}
    answer = await link.post(server.port, "/v1/completions", json.dumps(asked).encode(), headers=headers)
    return read_completion(server.name, answer)


def read_completion(name: str, answer: HttpAnswer) -> Outcome:
    """What a server answered, as a stream or, where it knows no streams, as one object."""
    try:
        parts = list(_parts(answer.body))
        text = "".join(str(choice.get("text") or "") for part in parts for choice in part.get("choices") or ())
        usages = [part["usage"] for part in parts if part.get("usage")]
        tokens = int(usages[-1]["completion_tokens"]) if usages else sum(bool(part.get("choices")) for part in parts)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        parts, text, tokens = [], "", 0
    if answer.status != OK or not tokens:
        return Outcome(False, f"{name}: HTTP {answer.status}: {answer.body[:200].decode(errors='replace').strip()}")
    first = answer.first if len(parts) > 1 else None
    rate = _rate(tokens, answer.seconds, first)
    told = "" if first is None else f", the first after {first:.2f} s"
    message = f"{name}: {tokens} tokens in {answer.seconds:.2f} s{told} ({rate:.0f} tok/s): {text.strip()[:80]!r}"
    details = {"text": text, "tokens": tokens, "seconds": answer.seconds, "ttft": first, "rate": rate, "prompt": PROMPT}
    return Outcome(True, message, details)


def _rate(tokens: int, seconds: float, first: float | None) -> float:
    """Tokens per second: of those after the first where its time is known."""
    if first is not None and tokens > 1 and seconds > first:
        return (tokens - 1) / (seconds - first)
    return tokens / seconds if seconds > 0 else 0.0


def _parts(body: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of a stream of server-sent events, or the one object of an answer that is none."""
    if body.lstrip().startswith(b"{"):
        yield _object(body)
        return
    for line in body.splitlines():
        data = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and data and data != b"[DONE]":
            yield _object(data)


def _object(data: bytes) -> dict[str, Any]:
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found
