"""Runs as a table and as JSON, and several of them side by side."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Sequence

from tui.fleet.runs import PastRun
from tui.fleet.translate import flag_words
from tui.report.clean import json_text
from tui.report.json import Report, report
from tui.report.text import table, wrapped
from tui.report.units import iso, number, span
from tui.sglang import verdict
from tui.sglang.short import short

Rows = list[list[str]]


def run_report(run: PastRun, now: float) -> Report:
    """One run for scripts. ``argv_digest``: the same for the same words of a command line."""
    record, state = run.record, run.state
    told = report(state, now)
    failure = verdict.failure(state)
    return {
        "id": record.run,
        "server": record.server,
        "host": run.host,
        "started": told["started"] if record.started else None,
        "ended": _ended(run),
        "phase": told["phase"],
        "fate": record.fate,
        "exit": told["exit"],
        "failure": failure and {"kind": failure.kind.value, "short": short(failure)},
        "log": record.log,
        "log_bytes": record.log_size,
        "who": record.who,
        "argv_digest": argv_digest(record.argv),
        "notes": [*state.warnings, *state.notes],
    }


def argv_digest(argv: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(argv).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _ended(run: PastRun) -> str | None:
    end = run.record.exit
    return None if end is None else iso(end.at, run.state.run.utc_offset if run.state.run else None)


def runs_table(runs: Sequence[PastRun], now: float) -> str:
    """A line per run, newest first, and below them why some failed or got lost."""
    if not runs:
        return "no runs"
    rows = [["RUN", "SERVER", "HOST", "STARTED", "TOOK", "STATE", "LOG", "WHO"]]
    rows += [_row(run, now) for run in runs]
    lines = table(rows, [False, False, False, False, True, False, True, False])
    for run in runs:
        failure = verdict.failure(run.state)
        words = [short(failure)] if failure else list(run.state.notes)
        for word in (*words, *run.state.warnings):
            lines += wrapped(f"{run.record.run}: {word}", 100)
    return "\n".join(lines)


def _row(run: PastRun, now: float) -> list[str]:
    record = run.record
    end = record.exit.at if record.exit else now if record.alive else None
    started = iso(record.started, run.state.run.utc_offset if run.state.run else None) if record.started else ""
    return [
        record.run,
        record.server,
        run.host,
        started[:19].replace("T", " "),
        "" if end is None else span(end - record.started),
        _state(run),
        "" if record.log_size is None else size(record.log_size),
        record.who.partition(" ")[0],
    ]


def _state(run: PastRun) -> str:
    """The phase, and how the process ended."""
    end = run.state.exit
    how = "" if end is None else end.by or ("" if end.status is None else f"exit {end.status}")
    return f"{verdict.phase(run.state).value} {how}".strip()


def size(count: int) -> str:
    """Bytes in a decimal unit that suits."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= factor:
            return f"{number(count / factor)} {unit}"
    return f"{count} B"


def comparison(runs: Sequence[PastRun]) -> Rows:
    """Rows of (what, value of each run): outcome, flags that differ, seconds per stage, pools, throughput."""
    head = [["", *(f"{run.record.server}/{run.record.run}" for run in runs)]]
    return [*head, *_outcomes(runs), *_flags(runs), *_stages(runs), *_pools(runs)]


def _outcomes(runs: Sequence[PastRun]) -> Iterator[list[str]]:
    failures = [verdict.failure(run.state) for run in runs]
    yield ["host", *(run.host for run in runs)]
    yield ["state", *map(_state, runs)]
    if any(failures):
        yield ["failure", *(short(failure) if failure else "" for failure in failures)]
    yield ["SGLang", *(run.state.log.version or run.record.sglang or "" for run in runs)]
    rates = [[sample.generate for sample in run.state.log.series if sample.generate] for run in runs]
    yield ["tok/s, median", *(number(sorted(told)[len(told) // 2]) if told else "" for told in rates)]
    yield ["tok/s, highest", *(number(max(told)) if told else "" for told in rates)]


def _flags(runs: Sequence[PastRun]) -> Iterator[list[str]]:
    """What stands on the command lines beside flags counts as one value: the interpreter and its module."""
    found = [_by_flag(run.record.argv) for run in runs]
    for flag in dict.fromkeys(flag for flags in found for flag in flags):
        values = [flags.get(flag, "") for flags in found]
        if len(set(values)) > 1:
            yield [flag, *values]


def _by_flag(argv: Sequence[str]) -> dict[str, str]:
    flags: dict[str, str] = {}
    for word in flag_words(tuple(argv)):
        if word.startswith("--"):
            name, _, value = word.replace("=", " ", 1).partition(" ")
            flags[name] = value or "yes"
        else:
            flags["command"] = f"{flags.get('command', '')} {word}".strip()
    return flags


def _stages(runs: Sequence[PastRun]) -> Iterator[list[str]]:
    took = [{one.stage.value: one.seconds for one in verdict.stages(run.state)} for run in runs]
    for stage in dict.fromkeys(stage for one in took for stage in one):
        cells = [one.get(stage) for one in took]
        yield [f"{stage}, s", *("" if cell is None else f"{cell:.1f}" for cell in cells)]


def _pools(runs: Sequence[PastRun]) -> Iterator[list[str]]:
    sizes = [
        {f"{pool.place} {pool.kind}": f"{pool.gb:.2f} {pool.unit} x {pool.ranks}" for pool in run.state.log.pools}
        for run in runs
    ]
    for name in dict.fromkeys(name for one in sizes for name in one):
        yield [name, *(one.get(name, "") for one in sizes)]


def comparison_text(rows: Rows) -> str:
    return "\n".join(table(rows, [False] * len(rows[0])))


def comparison_markdown(rows: Rows) -> str:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def comparison_csv(rows: Rows) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().rstrip("\n")


def comparison_json(runs: Sequence[PastRun], rows: Rows, now: float) -> str:
    """The runs with their whole reports, and what differs between their flags."""
    reports = [{**run_report(run, now), "report": report(run.state, now)} for run in runs]
    flags = {row[0]: row[1:] for row in _flags(runs)}
    return json_text({"runs": reports, "flags": flags, "rows": rows}, indent=2)
