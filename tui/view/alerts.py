"""What is worth a bell: servers that became ready, failed, stalled, out of reach, or much slower. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tui.sglang.collapse import collapsed
from tui.sglang.model import Phase
from tui.view.draw import units
from tui.view.glance import Glance

RECENT = 60.0  # seconds: what happened longer ago, before this session looked, is no news
AGAIN_AFTER = 60.0  # seconds before the same is told of the same server again
KEPT = 200
_NAMED = 4  # servers of several that are told together


class Kind(StrEnum):
    """What an alert is about."""

    READY = "ready"
    FAILED = "failed"
    STALLED = "stalled"
    UNREACHABLE = "unreachable"
    COLLAPSED = "slow"

    @property
    def good(self) -> bool:
        return self is Kind.READY


@dataclass(frozen=True, slots=True)
class Alert:
    """One piece of news. ``servers``: of a host that is out of reach, all of its servers in one alert."""

    at: float
    kind: Kind
    servers: tuple[str, ...]
    host: str
    phase: str
    text: str


@dataclass(slots=True)
class _Seen:
    """A server as it was last looked at."""

    run: str | None
    kinds: frozenset[Kind]


@dataclass(slots=True)
class Alerts:
    """Compares what is with what was. ``told``: the newest alerts, oldest first."""

    told: list[Alert] = field(default_factory=list)
    _seen: dict[str, _Seen] = field(default_factory=dict)
    _last: dict[tuple[str, Kind], float] = field(default_factory=dict)

    def see(self, glances: Iterable[Glance]) -> list[Alert]:
        """The alerts since the last look. What holds at the first look is no news, unless it has just happened."""
        found = [alert for glance in glances for alert in self._of(glance)]
        news = _by_host(found)
        self.told = (self.told + news)[-KEPT:]
        return news

    def standing(self) -> list[Alert]:
        """Those that still hold: a server that was launched again has failed no longer."""
        return [a for a in self.told if any(s in self._seen and a.kind in self._seen[s].kinds for s in a.servers)]

    def _of(self, glance: Glance) -> list[Alert]:
        run = glance.state.run.run if glance.state.run else None
        before = self._seen.get(glance.name)
        kinds = frozenset(_kinds(glance))
        self._seen[glance.name] = _Seen(run, kinds)
        if before is None:
            return []
        fresh = kinds - before.kinds if before.run == run else kinds
        return [self._alert(glance, kind) for kind in Kind if kind in fresh and self._is_news(glance, kind)]

    def _is_news(self, glance: Glance, kind: Kind) -> bool:
        at = _happened(glance, kind)
        if at is not None and glance.now - at > RECENT:
            return False
        last = self._last.get((glance.name, kind))
        return last is None or glance.now - last >= AGAIN_AFTER

    def _alert(self, glance: Glance, kind: Kind) -> Alert:
        self._last[glance.name, kind] = glance.now
        host = glance.state.info.host or ""
        return Alert(glance.now, kind, (glance.name,), host, glance.phase.value, _words(glance, kind))


def _kinds(glance: Glance) -> Iterable[Kind]:
    if glance.phase is Phase.READY and not glance.unreachable:
        yield Kind.READY
        if not glance.stale and collapsed(glance.state.log.series):
            yield Kind.COLLAPSED
    if glance.phase in (Phase.FAILED, Phase.LOST):
        yield Kind.FAILED
    if glance.stalled:
        yield Kind.STALLED
    if glance.unreachable and glance.phase is not Phase.ABSENT:
        yield Kind.UNREACHABLE


def _happened(glance: Glance, kind: Kind) -> float | None:
    """When it happened, where that is known; of a run that is found, that may be long ago."""
    state = glance.state
    if kind is Kind.READY:
        return state.ready_at
    if kind is not Kind.FAILED or (state.run is not None and not state.run.adopted):
        return None
    if state.exit is not None:
        return state.exit.at
    last = state.log.last_local
    return None if last is None or state.run is None else last - (state.run.utc_offset or 0)


def _words(glance: Glance, kind: Kind) -> str:
    match kind:
        case Kind.READY:
            took = sum(span.seconds or 0.0 for span in glance.stages)
            return f"is ready{f' after {units.span(took)}' if took else ''}"
        case Kind.FAILED:
            return f"{glance.phase.value}: {glance.reason}" if glance.reason else glance.phase.value
        case Kind.STALLED:
            return f"stalled: {glance.stall_reason}" if glance.stall_reason else "stalled"
        case Kind.COLLAPSED:
            now, usual = collapsed(glance.state.log.series) or (0.0, 0.0)
            return f"slow: {units.rate(now)} tok/s, where {units.rate(usual)} was usual"
        case Kind.UNREACHABLE:
            return "cannot be reached"


def _by_host(alerts: Sequence[Alert]) -> list[Alert]:
    """One alert for all servers of a host that went out of reach at once."""
    merged: dict[object, Alert] = {}
    for alert in alerts:
        key: object = (alert.host,) if alert.kind is Kind.UNREACHABLE and alert.host else (alert.servers, alert.kind)
        if key in merged:
            one = merged[key]
            servers = (*one.servers, *alert.servers)
            merged[key] = Alert(one.at, one.kind, servers, one.host, one.phase, one.text)
        else:
            merged[key] = alert
    return list(merged.values())


def line(alert: Alert) -> str:
    """An alert in one line."""
    if alert.kind is Kind.UNREACHABLE and len(alert.servers) > 1:
        return f"{alert.host} {alert.text}: {len(alert.servers)} servers"
    return f"{alert.servers[0]} {alert.text}"


def gathered(alerts: Sequence[Alert]) -> str:
    """Several alerts in a line per kind, those that ask for somebody first; servers beyond the fourth are counted."""
    told = []
    for kind in sorted({alert.kind for alert in alerts}, key=lambda kind: (kind.good, list(Kind).index(kind))):
        alike = [alert for alert in alerts if alert.kind is kind]
        names = list(dict.fromkeys(server for alert in alike for server in alert.servers))
        if len(alike) == 1:
            told.append(line(alike[0]))
        else:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            told.append(f"{len(names)} servers {kind.value}: {', '.join(names[:_NAMED])}{more}")
    return "\n".join(told)
