"""The report of a server and of a fleet, as the dictionaries that ``--json`` prints."""

from __future__ import annotations

from collections.abc import Iterable

from tui.report.units import iso, iso_local
from tui.sglang import pressure, verdict
from tui.sglang.model import Pool, StageSpan
from tui.sglang.reduce import marks
from tui.sglang.state import ServerState

Report = dict[str, object]


def report(state: ServerState, now: float) -> Report:
    """Everything that is known of one server, in the shape of ``report_schema``. ``now`` is Unix seconds."""
    info, run, log, facts = state.info, state.run, state.log, verdict.model_facts(state)
    mark = marks(state, now)
    stage = verdict.stage(state)
    return {
        "name": info.name,
        "host": info.host,
        "run": run.run if run else None,
        "port": info.port,
        "url": info.url,
        "pid": run.pid if run else None,
        "model": facts.model,
        "gpus": list(info.gpus),
        "started": _started(state),
        "log": run.log if run else info.log,
        "phase": verdict.phase(state).value,
        "stalled": mark.stalled,
        "unreachable": mark.unreachable,
        "stage": stage.value if stage else None,
        "stages": [_stage(one, _offset(state)) for one in verdict.stages(state)],
        "missing_ranks": list(log.missing_ranks),
        "sglang_version": facts.version,
        "failure": _failure(state),
        "exit": _exit(state),
        "pools": [_pool(pool) for pool in log.pools],
        "max_total_num_tokens": facts.max_total_num_tokens,
        "max_running_requests": facts.max_running_requests,
        "context_len": facts.context_len,
        **_figures(state, now),
        "lines": log.lines,
        "warnings": [
            *pressure.warnings(state, now),
            *state.warnings,
            *state.notes,
            *filter(None, [verdict.port_taken(state), verdict.unread(state)]),
        ],
        "restarts": _restarts(state),
    }


def _restarts(state: ServerState) -> Report:
    told = state.restarts
    times = {"since": told.since, "next": told.next_at, "ends": told.ends_at}
    return {
        "policy": told.policy,
        "by": told.by,
        "here": told.here,
        "count": told.count,
        "pending": told.pending,
        "why": told.why,
        **{name: None if at is None else iso(at, None) for name, at in times.items()},
    }


def document(profile: str | None, states: Iterable[ServerState], now: float) -> Report:
    """The reports of a fleet; ``profile`` is its name, ``None`` for saved logs."""
    return {"profile": profile, "servers": [report(state, now) for state in states]}


def _offset(state: ServerState) -> int | None:
    return state.run.utc_offset if state.run else None


def _started(state: ServerState) -> str | None:
    """When the run began; of a saved log, the first time that stands in it."""
    if state.run:
        return iso(state.run.started, state.run.utc_offset)
    first = next((span.start_local for span in verdict.stages(state) if span.start_local is not None), None)
    return None if first is None else iso_local(first, None)


def _stage(span: StageSpan, offset: int | None) -> Report:
    start = None if span.start_local is None else iso_local(span.start_local, offset)
    seconds = None if span.seconds is None else round(span.seconds, 3)
    return {"stage": span.stage.value, "seconds": seconds, "start": start}


def _failure(state: ServerState) -> Report | None:
    failure = verdict.failure(state)
    if failure is None:
        return None
    return {
        "kind": failure.kind.value,
        "line": failure.line,
        "line_number": failure.line_number,
        "explanation": failure.explanation,
        "advice": list(failure.advice),
    }


def _exit(state: ServerState) -> Report | None:
    end = state.exit
    return None if end is None else {"status": end.status, "signal": end.signal, "oom_killed": end.oom_killed}


def _pool(pool: Pool) -> Report:
    return {
        "place": pool.place,
        "kind": pool.kind,
        "gb": pool.gb,
        "unit": pool.unit,
        "parts": dict(pool.parts),
        "tokens": pool.tokens,
        "slots": pool.slots,
        "layout": pool.layout,
        "ranks": pool.ranks,
    }


def _figures(state: ServerState, now: float) -> Report:
    """The live figures: rates, requests, usage, speculation."""
    sample = verdict.figures(state)
    rates = verdict.throughput(state, now)
    algorithm = state.log.speculative
    accept_len = sample.accept_len if sample else None
    accept_rate = sample.accept_rate if sample else None
    speculates = algorithm is not None or accept_len is not None
    speculative = {"algorithm": algorithm, "accept_len": accept_len, "accept_rate": accept_rate}
    return {
        "throughput": {
            "generate": rates.generate,
            "prefill": rates.prefill,
            "as_of": iso_local(sample.at_local, _offset(state)) if sample else None,
            "stale": rates.stale,
        },
        "requests": {"running": sample.running if sample else None, "queued": sample.queued if sample else None},
        "usage": {
            "kv": sample.kv if sample else None,
            "mamba": sample.mamba if sample else None,
            "swa": sample.swa if sample else None,
        },
        "speculative": speculative if speculates else None,
    }
