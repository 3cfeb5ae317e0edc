"""What the dashboard says in passing: messages may quote a host, so they are text and nothing else."""

from __future__ import annotations

from textual.app import App
from textual.notifications import SeverityLevel

from tui.report.clean import clean


class Saying(App[None]):
    """Notifications without escapes, secrets and markup, whoever sends them."""

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        super().notify(clean(message), title=clean(title), severity=severity, timeout=timeout, markup=False)
