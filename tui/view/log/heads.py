"""What stands before each line of a merged log: its server's name, as ``docker compose logs`` writes it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.cells import cell_len

from tui.sglang.safe import safe

MOST = 16
"""Columns of a name."""
HEAD = re.compile(r"[^|]{1,80}\| ")
INKS = ("accent", "mamba", "start", "key", "text")
"""Of neighbours in turn: names tell servers apart, colours only help."""


def heads(servers: Iterable[str]) -> dict[str, str]:
    """Servers → heads: their names in one width, distinct, long ones without their middle."""
    labels: dict[str, str] = {}
    for server in servers:
        label = short = _short("_".join(re.sub(r"[|\ufffd]", "_", safe(server)).split()) or "_")
        number = 2
        while label in labels.values():
            label, number = f"{short[: MOST - 3]}~{number}", number + 1
        labels[server] = label
    columns = max((cell_len(label) for label in labels.values()), default=0)
    return {server: f"{label}{' ' * (columns - cell_len(label))} | " for server, label in labels.items()}


def inks(heads: Iterable[str]) -> dict[str, str]:
    """Heads → inks."""
    return {head: f"{INKS[place % len(INKS)]} bold" for place, head in enumerate(heads)}


def body(text: str) -> str:
    """A line of a merged log without its head."""
    head = HEAD.match(text)
    return text[head.end() :] if head else text


def _short(name: str) -> str:
    """At most ``MOST`` columns: names differ more often at their ends."""
    if cell_len(name) <= MOST:
        return name
    tail = name[-10:]
    while cell_len(tail) > 10:
        tail = tail[1:]
    first = name[:5]
    while cell_len(first) > 5:
        first = first[:-1]
    return f"{first}~{tail}"
