"""What the sheets of the main screen are given to draw. Each draws again only if its rows are different."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.markup import escape
from textual.screen import Screen

from tui.fleet.api import Source
from tui.view.draw.order import Order
from tui.view.glance import Glance
from tui.view.log.earlier import EarlierLog
from tui.view.log.merged import MergedLog
from tui.view.log.pane import MERGED, LogPane
from tui.view.log.wall import Wall
from tui.view.panels import Board, Caches, Header, Panel, Timeline, Troubles
from tui.view.sheet import Sheet


@dataclass(frozen=True, slots=True)
class Scene:
    """What there is to see. ``listed``: what the board lists, in its order. ``selected`` is a server's name; ``error``
    is the dashboard's own."""

    source: Source
    glances: Sequence[Glance]
    selected: str | None
    error: str
    listed: Sequence[Glance]
    order: Order
    earlier: Mapping[str, EarlierLog] = field(default_factory=dict)  # shown instead of the current run's log
    merged: MergedLog | None = None  # shown instead of any server's own

    @property
    def chosen(self) -> Glance | None:
        """The selected server."""
        return next((g for g in self.glances if g.name == self.selected), None)


def paint(screen: Screen[object], scene: Scene) -> None:
    """Hand ``scene`` to the sheets that are shown."""
    _head(screen, scene)
    troubles(screen, scene)
    if screen.has_class("wall"):
        _wall(screen, scene)
    else:
        _board(screen, scene)
        _detail(screen, scene)
        _log(screen, scene)


def troubles(screen: Screen[object], scene: Scene) -> None:
    """The rows of what is wrong, as high as they are many."""
    sheet = screen.query_one(Troubles)
    sheet.hosts, sheet.error, sheet.now = scene.source.hosts(), scene.error, scene.source.now()
    rows = len(sheet.rows(max(1, screen.app.size.width), 4))
    sheet.set_class(rows > 0, "some")
    sheet.styles.height = max(1, min(4, rows))
    sheet.redraw()


def _head(screen: Screen[object], scene: Scene) -> None:
    screen.query_one(Header).tell(scene.source, scene.glances)


def _board(screen: Screen[object], scene: Scene) -> None:
    sheet = screen.query_one(Board)
    order = sheet.order = scene.order
    sheet.glances, sheet.selected = scene.listed, scene.selected
    sheet.reading = scene.source.title  # every profile has servers
    sheet.redraw()
    above, below = sheet.hidden()
    more = " ".join(f"{arrow} {count}" for arrow, count in (("▲", above), ("▼", below)) if count)
    told = " · ".join(part for part in (*_forwards(scene), order.words, more) if part)
    _panel(sheet).tell(escape(_listed(sheet.glances, scene, "SERVERS")), escape(told))


def _listed(listed: Sequence[Glance], scene: Scene, title: str) -> str:
    """The title of the board or wall: how many of the servers are listed where that is not all."""
    only = scene.order.only.strip()
    return f"{title} · {len(listed)} of {len(scene.glances)} match “{only}”" if only else title


def _forwards(scene: Scene) -> list[str]:
    """The servers' ports that are on this machine."""
    return [
        f"{one.server} ⇄ {one.trouble or one.url}"
        for host in scene.source.hosts()
        for one in host.forwards
        if host.phase == "connected"
    ]


def _detail(screen: Screen[object], scene: Scene) -> None:
    timeline, caches = screen.query_one(Timeline), screen.query_one(Caches)
    chosen = scene.chosen
    timeline.glance = caches.glance = chosen
    host = chosen.state.info.host if chosen else None
    timeline.host = caches.host = next((h for h in scene.source.hosts() if h.name == host), None)
    timeline.alone = not _panel(caches).display
    why = "why it failed" if chosen and chosen.failure else "start-up"
    for sheet, what in ((timeline, why), (caches, "caches")):
        panel = _panel(sheet)
        panel.tell(panel.named(chosen.name, what) if chosen else what)
    timeline.redraw()
    caches.redraw()


def _log(screen: Screen[object], scene: Scene) -> None:
    pane = screen.query_one(LogPane)
    if scene.merged is not None:
        _merged(pane, scene.merged, scene)
        return
    stranger = scene.chosen.state.info.stranger if scene.chosen else None
    noted = scene.chosen.state.notes[-1] if scene.chosen and scene.chosen.no_log else ""
    pane.without = f"what it prints {stranger.output}" if stranger and stranger.output else noted
    pane.lines = scene.chosen.state.log.lines if scene.chosen else 0
    path = scene.source.log_path(scene.selected) if scene.selected else None
    pane.which = "log"
    if earlier := scene.earlier.get(scene.selected or ""):
        path, pane.lines, pane.which = earlier.path, None, f"log of run {earlier.run} · Esc: the present one"
    pane.show(scene.selected, path)


def _merged(pane: LogPane, merged: MergedLog, scene: Scene) -> None:
    pane.without = "merging…"
    listed, servers = len(scene.listed), len(scene.glances)
    some = f"{listed} of {servers}" if listed < servers else str(servers)
    told = [f"{some} server{'s' if servers != 1 else ''} by {'UTC' if merged.zones else 'time'}"]
    pane.lines, pane.which = merged.lines, " · ".join([*told, *([f"since {merged.since}"] if merged.since else [])])
    pane.show(MERGED, merged.path, merged.inks, days=merged.days)


def _wall(screen: Screen[object], scene: Scene) -> None:
    sheet = screen.query_one(Wall)
    sheet.path_of = scene.source.log_path
    sheet.glances, sheet.selected = scene.listed, scene.selected
    sheet.redraw()
    seen, all = sheet.seen, len(scene.listed)
    first = f"{seen.start + 1} to " if seen.stop - seen.start > 1 else ""
    some = f"{first}{seen.stop} of {all} · PgUp PgDn the others" if seen.stop - seen.start < all else ""
    _panel(sheet).tell(escape(_listed(scene.listed, scene, "WALL")), escape(some))


def _panel(sheet: Sheet) -> Panel:
    parent = sheet.parent
    assert isinstance(parent, Panel)
    return parent
