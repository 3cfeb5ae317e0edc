"""One server in words, as ``hcs-tui parse`` prints it: state, stages, caches, throughput, failure and advice."""

from __future__ import annotations

from collections.abc import Iterator

from tui.report.text import WIDTH, remarks, state_word, table, wrapped
from tui.report.units import GIB_IN_GB, number, percent, span
from tui.sglang import pressure, stall, verdict
from tui.sglang.model import Phase, Pool
from tui.sglang.state import ServerState


def server_text(state: ServerState, now: float, width: int = WIDTH) -> str:
    """Everything worth reading about one server, in lines of ``width``."""
    parts = [_head(state, width), _stages(state), _pools(state), _limits(state, width), _serving(state, now, width)]
    parts.append(_problems(state, now, width))
    return "\n\n".join("\n".join(part) for part in parts if part)


def _head(state: ServerState, width: int) -> list[str]:
    log, info, known = state.log, state.info, verdict.model_facts(state)
    facts = [
        f"SGLang {known.version}" if known.version else "",
        f"model {known.model}" if known.model else "",
        "1 line" if log.lines <= 1 else f"{log.lines} lines",  # one without an end is a line, too
    ]
    lines = [f"{info.name}: {_outcome(state)}", *wrapped(", ".join(fact for fact in facts if fact), width, "  ")]
    if log.missing_ranks:
        lines += wrapped(f"everybody waits for {', '.join(log.missing_ranks)}", width, "  ")
    if verdict.saved(state):
        lines += wrapped(_no_outcome(state), width, "  ")
    return lines


def _no_outcome(state: ServerState) -> str:
    """What a saved log that just ends may mean: it tells no failure, and no progress either."""
    phase = verdict.phase(state)
    if phase is Phase.STARTING and (why := stall.waits_for(state)):
        return f"if it goes on no further: {why}"
    return stall.unhealthy(state.log) if phase is Phase.READY and state.log.unhealthy else ""


def _outcome(state: ServerState) -> str:
    phase = verdict.phase(state)
    if phase is Phase.STARTING and verdict.stage(state):
        return f"starting, at {state_word(state)}"
    failure = verdict.failure(state)
    stage = verdict.stage(state)
    if phase is Phase.FAILED and failure:
        at = f" at {stage.value.replace('_', ' ')}" if stage else ""
        return f"failed{at} ({failure.kind.value})"
    return phase.value


def _stages(state: ServerState) -> list[str]:
    spans = verdict.stages(state)
    if not spans:
        return []
    rows = [["STAGE", "TOOK"]]
    rows += [[one.stage.value.replace("_", " "), "" if one.seconds is None else span(one.seconds)] for one in spans]
    return table(rows, [False, True])


def _pools(state: ServerState) -> list[str]:
    pools = state.log.pools
    if not pools:
        return []
    rows = [["CACHE", "PER RANK", "RANKS", "PARTS", "TOKENS", "SLOTS", "LAYOUT"], *map(_pool_row, pools)]
    used = [any(row[index] for row in rows[1:]) for index in range(len(rows[0]))]
    shown = [[cell for cell, use in zip(row, used, strict=True) if use] for row in rows]
    right = [side for side, use in zip((False, True, True, False, True, True, False), used, strict=True) if use]
    return [*table(shown, right), *_totals(pools)]


def _pool_row(pool: Pool) -> list[str]:
    parts = " + ".join(f"{name} {size:.2f}" for name, size in pool.parts.items())
    size = f"{pool.gb:.2f} {pool.unit}"
    counts = ["" if count is None else str(count) for count in (pool.tokens, pool.slots)]
    return [f"{pool.place} {pool.kind}", size, str(pool.ranks), parts, *counts, pool.layout or ""]


def _totals(pools: tuple[Pool, ...]) -> Iterator[str]:
    for place, unit in (("device", "GiB"), ("host", "GB")):
        sizes = [_in(pool, unit) * pool.ranks for pool in pools if pool.place == place]
        if len(sizes) > 1 or any(pool.ranks > 1 for pool in pools if pool.place == place):
            yield f"{place} total {sum(sizes):.2f} {unit}, all ranks"


def _in(pool: Pool, unit: str) -> float:
    """The size per rank in ``unit``."""
    if pool.unit == unit:
        return pool.gb
    return pool.gb * GIB_IN_GB if unit == "GB" else pool.gb / GIB_IN_GB


def _limits(state: ServerState, width: int) -> list[str]:
    facts = verdict.model_facts(state)
    limits = {
        "max_total_num_tokens": facts.max_total_num_tokens,
        "max_running_requests": facts.max_running_requests,
        "context_len": facts.context_len,
    }
    return wrapped(", ".join(f"{name} {value}" for name, value in limits.items() if value is not None), width)


def _serving(state: ServerState, now: float, width: int) -> list[str]:
    sample = verdict.figures(state)
    if sample is None:
        return []
    rate = verdict.throughput(state, now).generate
    words = [
        f"generates {number(rate)} tok/s" if rate is not None else "",
        f"prefills {number(sample.prefill)} tok/s" if sample.prefill is not None else "",
        f"{sample.running} running" if sample.running is not None else "",
        f"{sample.queued} queued" if sample.queued is not None else "",
        f"KV {percent(sample.kv)}" if sample.kv is not None else "",
        f"Mamba {percent(sample.mamba)}" if sample.mamba is not None else "",
        f"SWA {percent(sample.swa)}" if sample.swa is not None else "",
        f"accept length {sample.accept_len:.2f}" if sample.accept_len is not None else "",
        f"accept rate {sample.accept_rate:.2f}" if sample.accept_rate is not None else "",
        f"cache hits {percent(sample.cache_hit)}" if sample.cache_hit is not None else "",
    ]
    return wrapped(", ".join(word for word in words if word), width)


def _problems(state: ServerState, now: float, width: int) -> list[str]:
    lines = remarks(state, now, width)
    for warning in pressure.warnings(state, now):
        lines += wrapped(f"warning: {warning}", width)
    return lines
