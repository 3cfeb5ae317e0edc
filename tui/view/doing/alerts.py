"""Alerts: a line, a toast, a bell, and the user's command."""

from __future__ import annotations

from functools import cached_property

from textual.notifications import SeverityLevel

from tui.fleet.alarm import Alarm
from tui.view.alerts import Alert, Alerts, line
from tui.view.doing.dashboard import Dashboard
from tui.view.news import News

_LEAST = 1.0  # seconds between two bells


class AlertActions(Dashboard):
    """Looks for news once a second."""

    _looked_at = 0
    _rang_at = 0.0

    alerts: Alerts

    @cached_property
    def _alarm(self) -> Alarm:
        return Alarm(self.settings.alert_command)

    def watch_alerts(self) -> None:
        """Tell what happened since the last look."""
        now = self.source.now()
        if int(now) == self._looked_at:
            return
        self._looked_at = int(now)
        for alert in self.alerts.see(self.glances):
            self._tell(alert)
        if trouble := self._alarm.trouble():
            self.notify(trouble, severity="warning", markup=False, timeout=8)
        key = next(act.key for act in self.acts if act.id == "alerts")
        self.screen_stack[0].query_one(News).show(self.alerts.standing(), now, key)

    def _tell(self, alert: Alert) -> None:
        severity: SeverityLevel = "information" if alert.kind.good else "error"
        self.notify(line(alert), severity=severity, markup=False, timeout=8)
        if self.settings.bell and abs(alert.at - self._rang_at) >= _LEAST:
            self._rang_at = alert.at
            self.bell()
        self._alarm.ring(
            {
                "HCS_ALERT": alert.kind.value,
                "HCS_SERVER": ",".join(alert.servers),
                "HCS_HOST": alert.host,
                "HCS_PHASE": alert.phase,
                "HCS_PROFILE": self.source.title,
                "HCS_MESSAGE": line(alert),
            }
        )

    def action_alerts(self) -> None:
        from tui.view.screens.alerts import AlertList

        def chosen(server: str | None) -> None:
            if server and any(g.name == server for g in self.glances):
                self.select(server)

        self.push_screen(AlertList(self.alerts.told), chosen)
