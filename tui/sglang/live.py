"""Which paths tell a server's live figures, best first, and how their answers are put together.

``/metrics`` tells all of it, with counters that never are stale, but only with ``--enable-metrics``. ``/v1/loads``
counts generated tokens from 0.5.17 on, before that it tells no rate without metrics: ``/server_info`` has the rate of
the last decode line. None of these generates a token. From 0.5.6 on ``/get_server_info`` writes a warning into the
server's log on every call, so it is asked only where ``/server_info`` does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace

from tui.sglang.http import Reading
from tui.sglang.memory import version_tuple
from tui.sglang.model import ModelFacts, Sample

GONE = (404, 405, 501)  # statuses by which a server says that it has no such path

# (path, its first release, the release that no longer has it or should no longer be asked for it)
_Path = tuple[str, tuple[int, int, int], tuple[int, int, int]]
_ALWAYS, _NEVER = (0, 0, 0), (9999, 0, 0)
_METRICS: tuple[_Path, ...] = (("/metrics", _ALWAYS, _NEVER),)
_LOADS: tuple[_Path, ...] = (("/v1/loads", (0, 5, 8), _NEVER), ("/get_load", (0, 4, 7), (0, 5, 8)))
_INFO: tuple[_Path, ...] = (("/server_info", (0, 5, 6), _NEVER), ("/get_server_info", (0, 4, 1), (0, 5, 6)))


def next_path(version: str | None, statuses: Mapping[str, int], counted: bool = False) -> str | None:
    """The path to ask next, given the statuses of those that were asked; ``None`` when there is nothing more to learn.

    ``counted``: an answer had a counter of generated tokens already, so no rate is needed.
    """
    if statuses.get("/metrics") == 200 and counted:
        return None
    for group in (_METRICS, _LOADS) if counted else (_METRICS, _LOADS, _INFO):
        path = _in_group(group, version, statuses)
        if path is not None:
            return path
    return None


def _in_group(group: tuple[_Path, ...], version: str | None, statuses: Mapping[str, int]) -> str | None:
    """The first path of a group that the server may have; the second only where it does not have the first."""
    known = version_tuple(version)
    for path, since, until in group:
        if known is not None and not since <= known < until:
            continue
        if path not in statuses:
            return path
        if statuses[path] not in GONE:
            return None
    return None


def merged(readings: Iterable[Reading]) -> Reading | None:
    """One reading of several answers of the same moment: what an earlier one tells counts."""
    result: Reading | None = None
    for each in readings:
        result = each if result is None else _filled(result, each)
    if result is None or result.generated is not None or result.sample.running != 0:
        return result
    # Nothing runs: the rate of the last decode line, which an idle server keeps, is over
    return replace(result, sample=replace(result.sample, generate=0.0))


def _filled(first: Reading, second: Reading) -> Reading:
    sample = {f.name: getattr(second.sample, f.name) for f in fields(Sample) if getattr(first.sample, f.name) is None}
    facts = {f.name: getattr(second.facts, f.name) for f in fields(ModelFacts) if getattr(first.facts, f.name) is None}
    merged = replace(first, sample=replace(first.sample, **sample), facts=replace(first.facts, **facts))
    if first.generated is None:
        merged = replace(merged, source=second.source, generated=second.generated, prefilled=second.prefilled)
    return merged
