"""Throughput, queue and cache usage over time. plotext is loaded when the charts are first opened."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.app import ComposeResult, RenderResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual_plotext import PlotextPlot

from tui.sglang.model import Phase, Sample
from tui.view import actions
from tui.view.draw import series, units
from tui.view.draw.row import Row, Span, fit, join, spread, width
from tui.view.glance import Glance
from tui.view.panels import Footer, Header
from tui.view.sheet import Sheet, inks_of
from tui.view.theme import Inks

if TYPE_CHECKING:
    from tui.view.app import HcsApp

LINES = ("kv", "warn", "start", "bad", "mamba", "text")
"""The inks of the lines, the first four of which everyone tells apart in the themes for the colour-blind."""
_MOST = len(LINES)
_LETTERS = "abcdef"
_EVERY = 28  # columns between two letters on a line, which tell lines apart where colours do not
_FRAME = 3  # rows that a chart's frame and its time axis take

_ALONE = actions.Act("alone", "a", "a", "alone or all", "The selected server's lines alone, or all")

Of = Callable[[Sample], float | None]


class Plot(NamedTuple):
    """A chart: its title with the unit, its figure, and the largest value that makes sense."""

    id: str
    title: str
    of: Of
    most: float = math.inf


def _percent(of: Of) -> Of:
    return lambda sample: None if (value := of(sample)) is None else value * 100


PLOTS = (
    Plot("rate", "tokens per second", lambda s: s.generate),
    Plot("queue", "requests waiting", lambda s: s.queued),
    Plot("kv", "KV cache in use, %", _percent(lambda s: s.kv), 100.0),
    Plot("mamba", "Mamba cache in use, %", _percent(lambda s: s.mamba), 100.0),
)


class Legend(Sheet):
    """The letters of the lines."""

    shown: Sequence[Glance] = ()
    hidden = 0
    selected: str | None = None

    def rows(self, columns: int, rows: int) -> list[Row]:
        return [legend(self.shown, self.hidden, self.selected, columns)]


class Chart(PlotextPlot):
    """One figure of several servers, drawn when it is painted: for the size that it then has."""

    app: HcsApp

    def __init__(self, plot: Plot) -> None:
        super().__init__(id=plot.id)
        self._what = plot
        self._shown: Sequence[Glance] = ()

    def show(self, shown: Sequence[Glance]) -> None:
        """Draw these with the next frame."""
        self._shown = shown
        self.refresh()

    def render(self) -> RenderResult:
        _draw(self, self._shown, self._what, inks_of(self.app))
        return super().render()


class Charts(Screen[None]):
    """A chart per figure, a line per server; at most six servers, the selected one first. Redrawn once a second."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c,escape", "dismiss", "back"),
        Binding("a", "alone", "alone"),
        Binding("up,k", "move('up')", show=False),
        Binding("down,j", "move('down')", show=False),
    ]
    CSS = """
    Charts { layout: vertical; }
    Charts Legend { height: 1; }
    Charts .band { height: 2fr; layout: horizontal; }
    Charts #first { height: 3fr; }
    Charts Chart { height: 1fr; }
    Charts .none { display: none; }
    """

    app: HcsApp
    alone = False

    def compose(self) -> ComposeResult:
        yield Header(id="header")
        yield Legend(id="legend")
        rate, queue, kv, mamba = PLOTS
        with Container(id="first", classes="band"):
            yield _panel(rate)
        with Container(id="second", classes="band"):
            yield _panel(queue)
            yield _panel(kv)
            yield _panel(mamba)
        yield Footer(id="footer")

    def on_mount(self) -> None:
        acts = {act.id: act for act in self.app.acts}
        self.query_one(Footer).keys = [acts["back"], acts["up"], acts["down"], _ALONE]
        self.redraw()  # all but the sizes is known before the first paint
        if not self.app.frozen:
            self.set_interval(1, self.redraw)

    def on_resize(self) -> None:
        self.call_after_refresh(self.redraw)

    def action_alone(self) -> None:
        self.alone = not self.alone
        self.redraw()

    def action_move(self, way: str) -> None:
        self.app.action_up() if way == "up" else self.app.action_down()
        self.redraw()

    def on_sheet_clicked(self, message: Sheet.Clicked) -> None:
        message.stop()
        kind, _, name = message.action.partition(":")
        if kind == "select":
            self.app.select(name)
            self.redraw()
        elif kind in ("up", "down"):
            self.action_move(kind)
        elif kind == _ALONE.id:
            self.action_alone()
        else:
            self.dismiss()

    def redraw(self) -> None:
        """Draw the newest series."""
        self.query_one(Header).tell(self.app.source, self.app.glances)
        told = chosen(self.app.glances, self.app.selected, _MOST)
        shown = told[:1] if self.alone else told
        sheet = self.query_one(Legend)
        sheet.shown, sheet.hidden, sheet.selected = shown, with_series(self.app.glances) - len(shown), self.app.selected
        sheet.redraw()
        mamba = any(s.mamba is not None for g in shown for s in g.state.log.series[-1:])
        self.query_one("#mamba-panel").set_class(not mamba or self.app.size.width < 100, "none")
        for chart in self.query(Chart):
            chart.show(shown)


def legend(shown: Sequence[Glance], hidden: int, selected: str | None, columns: int) -> Row:
    """Which letter and colour is whose; how many servers are left out."""
    parts: list[Row] = [
        [
            Span(f"{_LETTERS[n]} ", f"{LINES[n]} bold", f"select:{g.name}"),
            Span(g.name, "text bold" if g.name == selected else "text", f"select:{g.name}"),
        ]
        for n, g in enumerate(shown)
    ]
    more: Row = [Span(f"and {hidden} more", "muted")] if hidden > 0 else []
    nothing: Row = [] if shown else [Span("no figures yet", "muted")]
    right: Row = [*more, *nothing, Span(" ")]
    return spread(fit([Span(" "), *join(parts)], columns - width(right) - 2), right, columns)


def _draw(widget: PlotextPlot, shown: Sequence[Glance], what: Plot, inks: Inks) -> None:
    plot = widget.plt
    plot.clear_figure()
    columns, rows = widget.size
    lines = [series.points(g.state.log.series, what.of, columns * 2, _now(g)) for g in shown]
    told = [point for line in lines for stretch in line for point in stretch]
    top, up = series.value_axis(max((v for _, v in told), default=1.0), rows - _FRAME, most=what.most)
    labels = [units.short(value) for value in up]
    width = columns - max(map(len, labels)) - 2
    low, across = series.time_axis(min((age for age, _ in told), default=0.0), width)
    plot.xlim(low, 0)
    plot.ylim(*series.value_limits(top, rows - _FRAME))
    plot.xticks([at for at, _ in across], [label for _, label in across])
    plot.yticks(up, labels)
    plot.ticks_color(inks.rgb("muted"))
    plot.hline(0, inks.rgb("line"))
    for n, line in reversed([*enumerate(lines)]):  # the selected server's is drawn over the others'
        for stretch in line:
            ages, values = zip(*stretch, strict=True)
            plot.plot(ages, values, color=inks.rgb(LINES[n]), marker=_LETTERS[n] if inks.ascii else "braille")
    taken: set[tuple[int, float]] = set()
    for n, line in enumerate(lines):
        at = _free(line, letters(line, low, width, n), taken, lambda p: _cell(p, low, width, top, rows - _FRAME))
        if at:
            ages, values = zip(*at, strict=True)
            on_rows = [series.on_row(value, top, rows - _FRAME) for value in values]
            plot.scatter(ages, on_rows, color=inks.rgb(LINES[n]), marker=_LETTERS[n])


def _cell(point: series.Point, low: float, columns: int, top: float, rows: int) -> tuple[int, float]:
    """Where a point's letter stands."""
    return int(0.5 + (columns - 1) * (1 - point[0] / low)), series.on_row(point[1], top, rows)


def _free(
    line: Sequence[Sequence[series.Point]],
    wanted: Sequence[series.Point],
    taken: set[tuple[int, float]],
    cell: Callable[[series.Point], tuple[int, float]],
) -> list[series.Point]:
    """Of the ``wanted`` points those whose cells no other letter has ``taken``; else the line's first such point."""
    told = (point for stretch in line for point in stretch)
    at = [p for p in wanted if cell(p) not in taken] or [p for p in told if cell(p) not in taken][:1]
    taken.update(map(cell, at))
    return at


def letters(line: Sequence[Sequence[series.Point]], low: float, columns: int, place: int) -> list[series.Point]:
    """The points of a line that carry its letter: one each ``_EVERY`` columns, for each line at other columns; at least
    one, for each line at another part of it."""
    told = [point for stretch in line for point in stretch]
    out = []
    for column in range(4 + place * (_EVERY // _MOST), columns, _EVERY):
        age = low * (1 - column / columns)
        nearest = min(told, key=lambda point: abs(point[0] - age), default=None)
        if nearest and abs(nearest[0] - age) <= -low / columns * 2:
            out.append(nearest)
    return out or told[len(told) * (2 * place + 1) // (2 * _MOST) :][:1]


def _now(glance: Glance) -> float | None:
    """Now by the host's clock; of a run that is over its newest figure is the end."""
    return glance.local_now if glance.runs and glance.state.run else None


def _panel(plot: Plot) -> Container:
    panel = Container(Chart(plot), id=f"{plot.id}-panel", classes="panel")
    panel.border_title = plot.title
    return panel


def _candidates(glances: Sequence[Glance]) -> list[Glance]:
    """The servers with a series: those that live, else all."""
    told = [g for g in glances if g.state.log.series and g.phase in (Phase.READY, Phase.STOPPING, Phase.STARTING)]
    return told or [g for g in glances if g.state.log.series]


def with_series(glances: Sequence[Glance]) -> int:
    """How many servers could be drawn."""
    return len(_candidates(glances))


def chosen(glances: Sequence[Glance], selected: str | None, most: int = _MOST) -> list[Glance]:
    """The servers to draw: those with a series, the selected one first."""
    return sorted(_candidates(glances), key=lambda g: g.name != selected)[:most]
