"""The alerts of this session, newest first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui.report.clean import clean
from tui.view.alerts import Alert, line
from tui.view.draw.news import GLYPHS


class AlertList(ModalScreen[str]):
    """Enter or a click chooses an alert's server."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss('')", "close")]

    def __init__(self, alerts: Sequence[Alert]) -> None:
        super().__init__()
        self._alerts = list(reversed(alerts))

    def compose(self) -> ComposeResult:
        with Container(classes="dialog list") as dialog:
            dialog.border_title = "Alerts"
            dialog.border_subtitle = "Enter shows the server · Esc closes"
            if not self._alerts:
                yield Static("none in this session", markup=False)
            yield OptionList(*(Option(_words(alert)) for alert in self._alerts), markup=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._alerts[event.option_index].servers[0])


def _words(alert: Alert) -> str:
    glyph, _ = GLYPHS[alert.kind]
    return clean(f"{time.strftime('%H:%M:%S', time.localtime(alert.at))}  {glyph} {line(alert)}")
