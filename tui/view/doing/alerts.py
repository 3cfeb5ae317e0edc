"""Alerts: a line, a toast, a bell, and the user's command."""

from __future__ import annotations

from functools import cached_property

from textual.notifications import SeverityLevel

from tui.fleet.alarm import Alarm
from tui.view.alerts import Alert, Alerts, gathered, line
from tui.view.doing.dashboard import Dashboard
from tui.view.news import News

_LEAST = 1.0  # seconds between two bells
_TOAST = 8.0  # seconds that a toast stays
_APART = 4.0  # seconds between two toasts of alerts: more would cover the screen


class AlertActions(Dashboard):
    """Looks for news once a second."""

    _looked_at = 0
    _rang_at = 0.0

    _toasted_at = 0.0
    _untold: tuple[Alert, ...] = ()

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
        self._toast(now)
        if trouble := self._alarm.trouble():
            self.notify(trouble, severity="warning", markup=False, timeout=_TOAST)
        key = next(act.key for act in self.acts if act.id == "alerts")
        self.screen_stack[0].query_one(News).show(self.alerts.standing(), now, key)

    def _tell(self, alert: Alert) -> None:
        self._untold = (*self._untold, alert)
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

    def _toast(self, now: float) -> None:
        """One toast for what came at once, and for all that came soon after another one."""
        if self._untold and abs(now - self._toasted_at) >= _APART:
            good = all(alert.kind.good for alert in self._untold)
            severity: SeverityLevel = "information" if good else "error"
            self.notify(gathered(self._untold), severity=severity, markup=False, timeout=_TOAST)
            self._toasted_at, self._untold = now, ()

    def action_alerts(self) -> None:
        from tui.view.screens.alerts import AlertList

        def chosen(server: str | None) -> None:
            if server and any(g.name == server for g in self.glances):
                self.select(server)

        self.push_screen(AlertList(self.alerts.told), chosen)
