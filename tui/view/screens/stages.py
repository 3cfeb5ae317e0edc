"""The stages of a start-up, to go to the lines of one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.sglang.model import StageSpan
from tui.view.draw import units
from tui.view.glance import STAGE_NAMES


class Stages(ModalScreen[int | None]):
    """Enter chooses; its result is the stage's place in ``stages``."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,S", "dismiss", "close")]

    def __init__(self, stages: Sequence[StageSpan]) -> None:
        super().__init__()
        self._stages = stages

    def compose(self) -> ComposeResult:
        with Container(classes="dialog list") as dialog:
            dialog.border_title = "Go to a stage"
            dialog.border_subtitle = "Enter shows its lines · Esc closes"
            yield OptionList(*(Option(_told(stage)) for stage in self._stages), markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)


def _told(stage: StageSpan) -> str:
    """When it began by the log's own clock, what, and how long."""
    began = time.strftime("%H:%M:%S", time.gmtime(stage.start_local)) if stage.start_local is not None else ""
    lasted = units.span(stage.seconds) if stage.seconds is not None else ""
    return f"{began:8}  {STAGE_NAMES[stage.stage]:24}{lasted:>8}"
