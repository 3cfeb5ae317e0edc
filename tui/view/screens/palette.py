"""What the command palette offers: every action, every server, every theme."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from tui.view.actions import possible

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui.view.app import HcsApp


class Commands(Provider):
    """Actions by name and help, servers and themes by name; matched fuzzily."""

    async def discover(self) -> Hits:
        for name, help, run in self._all():
            yield DiscoveryHit(name, run, help=help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, help, run in self._all():
            score = max(matcher.match(name), 0.6 * matcher.match(help))
            if score > 0:
                yield Hit(score, matcher.highlight(name), run, help=help)

    def _all(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        app = cast("HcsApp", self.app)
        for act in possible(app.acts, read_only=app.source.read_only, saved=app.only_saved):
            if act.palette:
                yield f"{act.name}  ({act.key})", act.help, partial(app.run_action, act.id)
        for glance in app.glances:
            yield (
                f"server {glance.name}",
                f"Select {glance.name}, {glance.phase.value}",
                partial(app.select, glance.name),
            )
        for host in app.source.hosts():
            yield (
                f"discover on {host.name}",
                f"Servers that somebody else started on {host.name}",
                partial(app.discover, host.name),
            )
        for theme in sorted(app.available_themes):
            yield f"theme {theme}", f"Use the theme {theme}", partial(setattr, app, "theme", theme)
