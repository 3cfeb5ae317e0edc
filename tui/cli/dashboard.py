"""``hcs-tui [PROFILE]``: the dashboard."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tui.cli.config import load_settings
from tui.cli.exits import Exit
from tui.cli.options import ascii_option, narrate, open_profile
from tui.cli.terminal import has_terminal, require_terminal

if TYPE_CHECKING:
    from tui.fleet.api import Source
    from tui.fleet.thread import FleetThread
    from tui.profile.model import Profile
    from tui.profile.problem import Problem
    from tui.view.app import HcsApp
    from tui.view.settings import Settings


def settings_here(ascii: bool) -> Settings:
    """The user's settings, ``ascii`` added, for a terminal that can show them; ends the command on any other."""
    if not has_terminal(ascii=True):  # whatever the settings say
        require_terminal()
    settings = load_settings()
    if ascii:
        settings = replace(settings, ascii=True)
    require_terminal(ascii=settings.ascii)
    return settings


def show(source: Source, painted: Callable[[], None] | None = None, *, ascii: bool = False) -> Exit:
    """Open the dashboard over any source. ``painted`` is called after the first paint."""
    settings = settings_here(ascii)
    from tui.view.app import HcsApp

    app = HcsApp(source, on_ready=painted, settings=settings)
    app.run()
    return _ending(app)


def _ending(app: HcsApp) -> Exit:
    """A dashboard that crashed has told it on the terminal."""
    return Exit.INTERNAL if app.return_code else Exit(app.ended_by)


def show_profile(
    load: Callable[[], Profile], title: str, *, read_only: bool = False, launch: bool = False, ascii: bool = False
) -> Exit:
    """Open the dashboard over a live fleet, whose servers outlive it unless it launched them itself (the demo).

    Raises what ``load`` raises.

    ``load`` is called after the first paint, which shows ``title``; then the hosts are connected.
    """
    settings = settings_here(ascii)
    gc.disable()  # nothing that a start makes is garbage; looking for some would cost a tenth of its time
    from tui.fleet.opening import Opening
    from tui.view.app import HcsApp

    live = _Live(load, read_only, launch)

    def painted() -> None:
        app.run_worker(live.start(app))

    app = HcsApp(Opening(title, read_only=read_only), on_ready=painted, lasting=not launch, settings=settings)
    return live.run(app)


def show_picker(*, read_only: bool = False, ascii: bool = False) -> Exit:
    """Choose a profile on the screen, then open the dashboard over it."""
    settings = settings_here(ascii)
    from tui.fleet.opening import Opening
    from tui.view.app import HcsApp

    live = _Live(None, read_only)

    def painted() -> None:
        from tui.cli.picking import choices
        from tui.view.screens.picker import Picker

        app.push_screen(Picker(choices), chosen)

    def chosen(path: Path | None) -> None:
        if path is None:
            app.exit()
            return
        app.open(Opening(path.stem, read_only=read_only))
        live.load = partial(open_profile, str(path), quiet=True)
        app.run_worker(live.start(app))

    app = HcsApp(Opening("", read_only=read_only), on_ready=painted, settings=settings)
    return live.run(app)


@dataclass
class _Live:
    """A profile under an open dashboard, and its fleet once it has been read."""

    load: Callable[[], Profile] | None  # nothing as long as none was chosen
    read_only: bool
    launch: bool = False
    source: FleetThread | None = None
    warnings: Sequence[Problem] = ()
    error: Exception | None = None

    def run(self, app: HcsApp) -> Exit:
        """Show the dashboard until it is left."""
        try:
            app.run()
        finally:
            self.end()
        return _ending(app)

    async def start(self, app: HcsApp) -> None:
        """Read the profile and show its fleet; where that fails, close the dashboard, for ``end`` to tell."""
        try:
            from tui.fleet.thread import FleetThread

            assert self.load is not None
            profile = await asyncio.to_thread(self.load)
            self.warnings = profile.warnings
            self.source = FleetThread(profile, read_only=self.read_only, launch=self.launch)
            app.open(self.source)
            app.call_after_refresh(self.source.start)  # it loads asyncssh
        except Exception as error:
            self.error = error
            app.exit()
        finally:
            gc.freeze()  # what has been made so far is modules for the most part: never looked through again
            gc.enable()

    def end(self) -> None:
        """Let go of the hosts, and say what could not be said under the dashboard."""
        if self.source is not None:
            self.source.stop()
        for warning in self.warnings:
            narrate(f"warning: {warning}")
        if self.error is not None:
            raise self.error


@click.command("dashboard")
@click.argument("profile", required=False)
@click.option("--read-only", is_flag=True, help="Launch and kill nothing.")
@ascii_option
def command(profile: str | None, read_only: bool, ascii: bool) -> Exit:
    """Open the dashboard over PROFILE; without one, choose from those that are found."""
    from tui.profile.builtin import find_profile

    if profile is None:
        return show_picker(read_only=read_only, ascii=ascii)
    path = find_profile(profile)
    if path.is_file() and has_terminal(ascii=True):
        return show_profile(lambda: open_profile(profile, quiet=True), path.stem, read_only=read_only, ascii=ascii)
    loaded = open_profile(profile, quiet=True)  # of what is no file or has no screen, mistakes are told at once
    return show_profile(lambda: loaded, loaded.name, read_only=read_only, ascii=ascii)
