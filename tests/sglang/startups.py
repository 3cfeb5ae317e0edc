"""``tests/data/startups.txt``: whole start-up logs and what an expert reads from each, as a table."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tui.sglang.model import Pool, Stage

FILE = Path(__file__).parent.parent / "data" / "startups.txt"
LETTERS = dict(
    zip(
        "ADLKMGHWR",
        (
            Stage.LAUNCHING,
            Stage.DIST_INIT,
            Stage.LOADING_WEIGHTS,
            Stage.KV_CACHE,
            Stage.MAMBA_CACHE,
            Stage.CUDA_GRAPH,
            Stage.HOST_CACHE,
            Stage.WARMUP,
            Stage.READY,
        ),
        strict=True,
    )
)
_FACT = re.compile(r"(\w+)=(.*?)(?=\s+\w+=|$)")
_POOL = re.compile(r"\+ (device|host) (.+?) ([\d.]+) (GiB|GB)( .*)?")
_WHOLE = frozenset({"tokens", "slots"})


@dataclass(slots=True)
class Startup:
    """One log and its answers: ``facts`` by name, ``pools`` in the order in which they were told."""

    name: str
    facts: dict[str, str] = field(default_factory=dict)
    pools: list[Pool] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    @property
    def log(self) -> bytes:
        return "".join(f"{line}\n" for line in self.lines).encode()

    @property
    def reached(self) -> list[Stage] | None:
        """The stages that all ranks reached, in the order in which they did."""
        letters = self.facts.get("reached")
        return None if letters is None else [LETTERS[letter] for letter in letters]

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(filter(None, self.facts.get("missing", "").split(";")))

    def number(self, name: str) -> int | None:
        return int(self.facts[name]) if name in self.facts else None

    def _says(self, who: str, message: str) -> None:
        minutes, seconds = divmod(len(self.lines), 60)
        if who == "raw":
            self.lines.append(message)
            return
        for rank in self.groups.get(who, ["" if who == "main" else who]):
            self.lines.append(f"[2026-03-01 10:{minutes:02d}:{seconds:02d}{' ' + rank if rank else ''}] {message}")

    def read(self, line: str) -> None:
        """One line of the file."""
        if line.startswith("? "):
            self.facts.update(_FACT.findall(line))
        elif line.startswith("+ "):
            self.pools.append(_pool(line))
        elif line.startswith("@ "):
            name, _, ranks = line[2:].partition(": ")
            self.groups[name] = ranks.split(", ")
        elif " > " in line:
            who, _, message = line.partition(" > ")
            self._says(who, message)


def _pool(line: str) -> Pool:
    found = _POOL.fullmatch(line)
    assert found, line
    rest = (found[5] or "").split()
    values = dict(word.split("=") for word in rest if "=" in word)
    ranks = next((int(word[1:]) for word in rest if word.startswith("x")), 1)
    layout = values.pop("layout", None)
    whole = {name: int(values.pop(name)) for name in _WHOLE & values.keys()}
    parts = {name: float(value) for name, value in values.items()}
    return Pool(found[1], found[2], float(found[3]), found[4], parts, layout=layout, ranks=ranks, **whole)


def startups() -> list[Startup]:
    """All of them, in the file's order."""
    found: list[Startup] = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            found.append(Startup(line[2:]))
        elif found:
            found[-1].read(line)
    return found
