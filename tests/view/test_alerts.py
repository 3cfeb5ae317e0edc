"""Alerts: what is news and what is not, their line, bell and command."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.view import sources
from tests.view.sources import NOW, FixedSource
from tests.view.test_app import running, said, until
from tui.sglang.model import Exit, Phase, Sample
from tui.sglang.state import ServerState
from tui.view.alerts import AGAIN_AFTER, Alert, Alerts, Kind, gathered, line
from tui.view.app import HcsApp
from tui.view.draw.news import LASTS, news
from tui.view.draw.row import plain
from tui.view.glance import glance
from tui.view.settings import Settings
from tui.view.snapshot import screen_text

ABSENT = ServerState(sources.info("gpu0", 0))


def see(alerts: Alerts, *states: ServerState, now: float = NOW) -> list[str]:
    return [f"{alert.kind.value}: {line(alert)}" for alert in alerts.see([glance(state, now) for state in states])]


def has_told(app: HcsApp, count: int) -> bool:
    return len(app.alerts.told) >= count


def fresh(state: ServerState) -> ServerState:
    """As if it had become ready a moment ago."""
    return replace(state, ready_at=NOW - 1)


def test_becoming_ready_is_told_once_and_with_its_time() -> None:
    alerts = Alerts()
    assert see(alerts, sources.starting("gpu0", 0)) == []
    assert see(alerts, fresh(sources.ready("gpu0", 0, 400))) == ["ready: gpu0 is ready after 3m16s"]
    assert see(alerts, fresh(sources.ready("gpu0", 0, 400)), now=NOW + 1) == []


def test_what_holds_when_the_session_begins_is_no_news() -> None:
    alerts = Alerts()
    assert see(alerts, sources.ready("a", 0, 400), sources.failed("b", 1)) == []
    alerts = Alerts()
    assert see(alerts, ABSENT) == []
    assert see(alerts, sources.ready("gpu0", 0, 400)) == [], "found ready: for an hour, says its log"
    found = sources.failed("gpu0", 0)
    assert found.run is not None
    found = replace(found, run=replace(found.run, run="run-0", adopted=True), exit=Exit(1, None, False, NOW - 3600))
    assert see(alerts, found) == []


def test_a_failure_says_why() -> None:
    alerts = Alerts()
    see(alerts, sources.starting("gpu3", 3))
    assert see(alerts, sources.failed("gpu3", 3)) == [
        "failed: gpu3 failed: host memory: wants 150.10 GB, 48.2 GB free → --hicache-size 98 or less"
    ]


def test_a_relaunch_may_fail_the_same_way_and_is_told_again_but_not_at_once() -> None:
    alerts = Alerts()
    see(alerts, sources.starting("gpu3", 3))
    assert len(see(alerts, sources.failed("gpu3", 3))) == 1
    for after, count in ((1.0, 0), (AGAIN_AFTER + 1, 1)):
        see(alerts, sources.starting("gpu3", 3), now=NOW + after - 0.5)
        assert len(see(alerts, sources.failed("gpu3", 3), now=NOW + after)) == count


def test_what_is_over_stands_no_longer() -> None:
    alerts = Alerts()
    see(alerts, sources.starting("gpu3", 3))
    see(alerts, sources.failed("gpu3", 3))
    assert [alert.kind for alert in alerts.standing()] == [Kind.FAILED]
    see(alerts, sources.starting("gpu3", 3), now=NOW + 1)
    assert alerts.standing() == [] and len(alerts.told) == 1


def test_a_host_out_of_reach_is_one_alert() -> None:
    alerts = Alerts()
    both = [sources.ready("a", 0, 400), sources.ready("b", 1, 400)]
    see(alerts, *both)
    gone = [replace(state, unreachable_since=NOW - 1) for state in both]
    assert see(alerts, *gone) == ["unreachable: box cannot be reached: 2 servers"]
    assert alerts.told[-1].servers == ("a", "b") and alerts.told[-1].host == "box"
    assert see(alerts, *both, now=NOW + 5) == [], "back again: they were ready before"


def test_a_collapse() -> None:
    alerts = Alerts()
    one = sources.ready("gpu0", 0, 400)
    see(alerts, one)
    samples = [Sample(NOW - 300 + n, generate=400.0 if n < 265 else 20.0, running=8) for n in range(300)]
    slow = replace(one, log=replace(one.log, series=tuple(samples), latest=samples[-1]))
    assert see(alerts, slow) == ["slow: gpu0 slow: 20.0 tok/s, where 400 was usual"]


def test_the_line_goes_after_a_while() -> None:
    ready = Alert(NOW - 10, Kind.READY, ("gpu0",), "box", Phase.READY.value, "is ready after 3m16s")
    bad = Alert(NOW - 300, Kind.FAILED, ("gpu3",), "box", Phase.FAILED.value, "failed: host memory")
    shown = plain(news([bad, ready], NOW, 80))
    assert shown.startswith(" ✖ gpu3 failed: host memory") and shown.endswith("1 more (A)  5m00s ago")
    assert plain(news([ready], NOW, 80)).startswith(" ● gpu0 is ready after 3m16s")
    assert news([ready], NOW + LASTS[Kind.READY], 80) == []
    again = replace(ready, servers=("gpu3",))
    assert plain(news([bad, again], NOW, 80)).startswith(" ● gpu3 is ready"), "what was true before is old"
    assert news([bad, ready], NOW + LASTS[Kind.FAILED], 80) == [] == news([], NOW, 80)
    assert len(plain(news([bad], NOW, 24))) <= 24


async def test_line_toast_bell_list_and_command(source: FixedSource, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = (
        "import os, sys; print('x'); sys.stderr.write('y');"
        "open(sys.argv[1], 'a').write(' '.join(os.environ['HCS_' + n] for n in "
        "('ALERT', 'SERVER', 'HOST', 'PHASE', 'PROFILE')) + '\\n')"
    )
    source.change("gpu3", log=sources.starting("gpu3", 3).log, alive=True)
    settings = Settings(alert_command=(sys.executable, "-c", code, str(out)))
    app = HcsApp(source, settings=settings)
    rang: list[float] = []
    app.bell = lambda: rang.append(source.time)  # type: ignore[method-assign]  # a headless app has no bell to hear
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(lambda: bool(app.alerts._seen), pilot)
        assert "gpu3 failed" not in screen_text(app)
        bad = sources.failed("gpu3", 3)
        source.change("gpu3", log=bad.log, alive=False)
        source.time += 1
        await until(lambda: "✖ gpu3 failed: host memory: wants 150.10 GB" in screen_text(app), pilot)
        assert rang == [NOW + 1]
        await until(out.exists, pilot)
        await until(lambda: out.read_text() == "failed gpu3 box failed dflash\n", pilot)
        await pilot.press("A")
        await pilot.pause()
        assert "✖ gpu3 failed: host memory" in said(app)
        await pilot.press("enter")
        await pilot.pause()
        assert app.selected == "gpu3"


async def test_a_command_that_fails_is_said_and_the_bell_can_be_off(source: FixedSource) -> None:
    app = HcsApp(source, settings=Settings(bell=False, alert_command=("/no/such/program",)))
    rang: list[bool] = []
    app.bell = lambda: rang.append(True)  # type: ignore[method-assign]  # a headless app has no bell to hear
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(lambda: bool(app.alerts._seen), pilot)
        source.change("gpu0", unreachable_since=NOW)
        source.time += 1
        await until(lambda: "gpu0 cannot be reached" in screen_text(app), pilot)

        def said_later() -> bool:
            source.time += 1
            return "alert_command /no/such/program" in screen_text(app)

        await until(said_later, pilot)
        assert not rang


async def test_alerts_come_while_a_dialog_is_open(source: FixedSource) -> None:
    async with running(source, frozen=False) as (app, pilot):
        await until(lambda: bool(app.alerts._seen), pilot)
        await pilot.press("K")
        source.change("gpu1", unreachable_since=NOW)
        source.time += 1
        await until(lambda: "gpu1 cannot be reached" in screen_text(app), pilot)
        assert "Kill gpu0?" in said(app) and source.acted == []


async def test_another_source_begins_anew(source: FixedSource) -> None:
    async with running(source) as (app, _):
        app.watch_alerts()
        app.open(replace(source, servers=(sources.failed("gpu0", 0),), time=NOW + 5))
        app.watch_alerts()
        assert app.alerts.told == []


def test_several_are_one_line_per_kind_the_bad_ones_first() -> None:
    def alert(kind: Kind, number: int) -> Alert:
        return Alert(NOW, kind, (f"gpu{number}",), "box", "", "is ready" if kind.good else "failed: out of memory")

    assert gathered([alert(Kind.READY, n) for n in range(16)]) == "16 servers ready: gpu0, gpu1, gpu2, gpu3 and 12 more"
    assert gathered([alert(Kind.READY, 0), alert(Kind.READY, 1), alert(Kind.FAILED, 2)]) == (
        "gpu2 failed: out of memory\n2 servers ready: gpu0, gpu1"
    )


async def test_sixteen_that_become_ready_do_not_cover_the_screen() -> None:
    """Half of them at once, the others one a second: a few toasts tell of all."""
    names = [f"gpu{number}" for number in range(16)]
    source = FixedSource(tuple(sources.starting(name, place) for place, name in enumerate(names)))
    app = HcsApp(source, settings=Settings(bell=False))
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(lambda: bool(app.alerts._seen), pilot)
        for count in range(8, 17):
            source.servers = tuple(
                replace(sources.ready(s.info.name, place, 400), ready_at=source.time) if place < count else s
                for place, s in enumerate(source.servers)
            )
            source.version += 1
            source.time += 1
            await until(partial(has_told, app, count), pilot)

        def last_told() -> bool:
            source.time += 1
            return not app._untold

        await until(last_told, pilot)
        await pilot.pause()
        toasts = [str(toast.render()) for toast in app.screen.query("Toast")]
        assert "8 servers ready: gpu0, gpu1, gpu2, gpu3 and 4 more" in screen_text(app)
        assert 2 <= len(toasts) <= 4 and len(app.alerts.told) == 16
