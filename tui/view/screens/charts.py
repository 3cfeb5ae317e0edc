"""Throughput, queue and cache usage over time. plotext is loaded when the charts are first opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual_plotext import PlotextPlot

from tui.sglang.model import Phase, Sample
from tui.view import actions
from tui.view.draw import series, units
from tui.view.glance import Glance
from tui.view.panels import Footer, Header
from tui.view.theme import Inks

if TYPE_CHECKING:
    from tui.view.app import HcsApp

_INKS = ("kv", "ok", "mamba", "warn", "start", "bad")
_MARKERS = ("braille", "hd")  # thin and thick in turn, so that colour is not all that tells lines apart
_MOST = len(_INKS)

Of = Callable[[Sample], float | None]
PLOTS: tuple[tuple[str, str, Of], ...] = (
    ("rate", "tokens per second", lambda s: s.generate),
    ("queue", "requests waiting", lambda s: s.queued),
    ("usage", "KV cache in use, %", lambda s: None if s.kv is None else s.kv * 100),
)


class Charts(Screen[None]):
    """A chart per figure, a line per server; at most six servers, the selected one first. Redrawn once a second."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("c,escape", "dismiss", "back")]
    CSS = """
    Charts { layout: vertical; }
    Charts #rate-panel { height: 3fr; }
    Charts #below { height: 2fr; layout: horizontal; }
    """

    app: HcsApp

    def compose(self) -> ComposeResult:
        yield Header(id="header")
        first, *others = PLOTS
        yield _panel(*first[:2])
        with Container(id="below"):
            for id, title, _ in others:
                yield _panel(id, title)
        yield Footer(id="footer")

    def on_mount(self) -> None:
        self.query_one(Footer).keys = [actions.BY_ID["back"]]
        if not self.app.frozen:
            self.set_interval(1, self.redraw)

    def on_resize(self) -> None:
        self.call_after_refresh(self.redraw)

    def redraw(self) -> None:
        """Draw the newest series."""
        header = self.query_one(Header)
        header.title, header.glances, header.now = self.app.source.title, self.app.glances, self.app.source.now()
        header.redraw()
        shown = chosen(self.app.glances, self.app.selected)
        inks = Inks(self.app.current_theme)
        for id, _, of in PLOTS:
            self._plot(self.query_one(f"#{id}", PlotextPlot), shown, of, inks)

    def _plot(self, widget: PlotextPlot, shown: Sequence[Glance], of: Of, inks: Inks) -> None:
        plot = widget.plt
        plot.clear_figure()
        columns, rows = widget.size
        lines = [(g.name, series.points(g.state.log.series, of, columns * 2)) for g in shown]
        for n, (name, points) in enumerate(lines):
            if points:
                ages, values = zip(*points, strict=True)
                plot.plot(ages, values, label=name, color=inks.rgb(_INKS[n]), marker=_MARKERS[n % 2])
        told = [point for _, points in lines for point in points]
        oldest = min((age for age, _ in told), default=-60.0)
        across = series.ticks(oldest, columns // 14)
        up = series.scale(max((value for _, value in told), default=1.0), rows // 3)
        plot.xlim(min(oldest, -1.0), 0)
        plot.ylim(0, up[-1])
        plot.xticks([at for at, _ in across], [label for _, label in across])
        plot.yticks(up, [units.short(value) for value in up])
        widget.refresh()


def _panel(id: str, title: str) -> Container:
    panel = Container(PlotextPlot(id=id), id=f"{id}-panel", classes="panel")
    panel.border_title = title
    return panel


def chosen(glances: Sequence[Glance], selected: str | None) -> list[Glance]:
    """The servers to draw: those with a series, at most six, the selected one first."""
    told = [g for g in glances if g.state.log.series and g.phase in (Phase.READY, Phase.STOPPING, Phase.STARTING)]
    told = told or [g for g in glances if g.state.log.series]
    return sorted(told, key=lambda g: g.name != selected)[:_MOST]
