"""``hcs-tui demo``: the dashboard on an embedded SSH host with simulated servers."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from tui.cli.errors import fail
from tui.cli.exits import Exit
from tui.cli.options import Seconds, ascii_option, narrate
from tui.demo.host import DemoHost, serve
from tui.profile.load import load
from tui.profile.model import Profile


@contextmanager
def running_demo(servers: int = 4) -> Iterator[Profile]:
    """The demo's host, up for the length of the block, and the profile of its servers. It ends all of them."""
    with termination_interrupts(), tempfile.TemporaryDirectory(prefix="hcs-demo-") as folder, DemoHost() as host:
        paths = host.start(Path(folder), servers=servers)
        yield load(paths.profile)


@contextmanager
def termination_interrupts() -> Iterator[None]:
    """Within the block SIGTERM is what Ctrl-C is: the demo ends its servers and removes its folder."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        on_interrupt = signal.getsignal(signal.SIGINT)  # asyncio's, while its loop runs
        if not callable(on_interrupt):
            raise KeyboardInterrupt
        on_interrupt(number, frame)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@click.command("demo")
@click.option("--servers", default=4, type=click.IntRange(1, 64), show_default=True, help="How many servers.")
@click.option("--headless", type=Seconds(min=1), metavar="SECONDS", help="No screen: settle within SECONDS.")
@click.option("--serve", "folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@ascii_option
def command(servers: int, headless: float | None, folder: Path | None, ascii: bool) -> Exit:
    """Open the dashboard on an embedded SSH host with simulated servers; nothing else is needed.

    --serve keeps the host up and writes DIR/demo.yaml, key and known_hosts for the other commands.
    """
    if folder is not None:
        if headless is not None:
            fail("--serve and --headless do not go together")
        serve(folder, servers=servers)
        return Exit.OK
    if headless is not None:
        return _headless(servers, headless)
    from tui.cli.dashboard import settings_here, show_profile

    settings_here(ascii)  # before anything is started
    with running_demo(servers) as profile:
        return show_profile(lambda: profile, profile.name, launch=True, ascii=ascii)


def _headless(servers: int, seconds: float) -> Exit:
    """Launch the demo, say what happens until it is settled or the time is over, and print a table."""
    import asyncio

    from tui.cli.launching import headless_demo

    with running_demo(servers) as profile:
        began = time.monotonic()
        code = asyncio.run(headless_demo(profile, seconds))
        narrate(f"{time.monotonic() - began:.1f} s")
        return code
