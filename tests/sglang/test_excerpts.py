"""Excerpts as people paste them, and all that an expert reads from each (``tests/data/excerpts.txt``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tui.sglang import verdict
from tui.sglang.events import LogRead
from tui.sglang.facts import read
from tui.sglang.model import Phase, Pool, ServerInfo
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

FILE = Path(__file__).parent.parent / "data" / "excerpts.txt"
PHASES = {"ready": Phase.READY, "running": Phase.READY, "failed": Phase.FAILED, "stopped": Phase.STOPPED}
_FACT = re.compile(r"(\w+)=(.*?)(?= \w+=|$)")
_EACH = re.compile(r"%each (.*?) (\[.*)")


@dataclass
class Excerpt:
    """One log and its answers; ``line`` is the one that explains a failure."""

    name: str
    outcome: str
    kind: str
    stage: str
    facts: dict[str, str]
    lines: list[str] = field(default_factory=list)
    line: str | None = None

    @property
    def state(self) -> ServerState:
        return reduce(ServerState(ServerInfo(self.name)), LogRead(0.0, read(["\n".join(self.lines).encode()])))

    def number(self, name: str) -> float | None:
        return float(self.facts[name]) if name in self.facts else None

    def parts(self, name: str) -> tuple[float | None, ...] | None:
        if name not in self.facts:
            return None
        return tuple(None if value == "-" else float(value) for value in self.facts[name].split("/"))

    @property
    def host(self) -> list[tuple[str, float, int]]:
        told = (pool.split(":") for pool in self.facts.get("host", "").split(";") if pool)
        return [(kind, float(gb.partition("x")[0]), int(gb.partition("x")[2] or 1)) for kind, gb in told]


def ranks(told: str) -> Iterator[str]:
    """``TP0-3`` and ``DP0 TP0;DP1 TP1`` as ranks."""
    for part in told.split(";"):
        span = re.fullmatch(r"(.*?)(\d+)-(\d+)", part)
        if span is None:
            yield part
        else:
            yield from (f"{span[1]}{rank}" for rank in range(int(span[2]), int(span[3]) + 1))


def excerpts() -> list[Excerpt]:
    """All of them, in the file's order."""
    found: list[Excerpt] = []
    for text in FILE.read_text(encoding="utf-8").split("\n"):
        if text.startswith("=== "):
            name, outcome, kind, stage, *rest = (part.strip() for part in text[4:].split("|"))
            found.append(Excerpt(name, outcome, kind, stage, dict(_FACT.findall("".join(rest)))))
        elif found:
            _add(found[-1], text.replace("\\r", "\r").replace("\\e", "\x1b"))
    return found


def _add(to: Excerpt, text: str) -> None:
    each = _EACH.fullmatch(text)
    if each is not None:
        to.lines += [each[2].replace("{r}", rank) for rank in ranks(each[1])]
        return
    if text.startswith(">>"):
        text = to.line = text[2:]
    to.lines.append(text)


def first(pools: tuple[Pool, ...], kind: str) -> Pool | None:
    return next((pool for pool in pools if pool.place == "device" and pool.kind == kind), None)


@pytest.mark.parametrize("case", excerpts(), ids=lambda case: case.name)
def test_excerpt(case: Excerpt) -> None:
    state = case.state
    phase, failure = verdict.phase(state), verdict.failure(state)
    assert phase is PHASES[case.outcome] if case.outcome in PHASES else phase is not Phase.FAILED
    assert verdict.stage(state) == case.stage
    if case.outcome == "failed":
        assert failure is not None and (failure.kind.value, failure.line) == (case.kind, case.line)
        assert failure.explanation and failure.advice
    _pools_and_numbers(case, state)


def _pools_and_numbers(case: Excerpt, state: ServerState) -> None:
    pools = state.log.pools
    kv, mamba = first(pools, "KV"), first(pools, "Mamba")
    assert (kv and (kv.tokens, kv.parts.get("k"), kv.parts.get("v"))) == case.parts("kv")
    assert (mamba and (mamba.slots, mamba.parts["conv"], mamba.parts["ssm"])) == case.parts("mamba")
    assert [(pool.kind, pool.gb, pool.ranks) for pool in pools if pool.place == "host"] == case.host
    assert (state.log.max_total_num_tokens, state.log.max_running_requests) == (
        case.number("total"),
        case.number("running"),
    )
    if case.outcome != "failed" or "gen" in case.facts:
        assert verdict.throughput(state, 0.0).generate == case.number("gen")
    if "acc" in case.facts:
        assert state.log.latest is not None and state.log.latest.accept_len == case.number("acc")
