"""``hcs-tui snapshot``: the dashboard's picture, text or JSON without a screen."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import click

from tui.cli.errors import fail
from tui.cli.exits import Exit
from tui.cli.options import narrate, open_profile
from tui.fleet.api import Source
from tui.fleet.outcome import decided, settled
from tui.fleet.thread import FleetThread
from tui.profile.model import Profile
from tui.report.clean import json_text
from tui.report.json import document
from tui.sglang import verdict
from tui.sglang.model import Phase

_VIEWS = ("board", "wall", "merged", "charts", "hosts")  # those of tui.view.snapshot, which loads the screen
_LOOK_SECONDS = 0.1
_CONNECT_SECONDS = 30.0


def wait_for(source: FleetThread, until: str | None) -> Exit:
    """Start a live source and wait as ``--until`` says."""
    source.start()
    if not _poll(source.settled, _CONNECT_SECONDS):
        return Exit.UNREACHABLE
    deadline = max((s.info.ready_timeout for s in source.states()), default=60.0)
    match until:
        case None:
            reached = True
        case "ready":
            _poll(lambda: all(decided(s) for s in source.states()), deadline)
            reached = all(verdict.phase(s) is Phase.READY for s in source.states())
        case "settled":
            reached = _poll(lambda: settled(source.states(), source.now()), deadline)
        case seconds:
            _poll(lambda: False, float(seconds))
            reached = True
    unreachable = any(h.phase in ("unreachable", "refused") for h in source.hosts())
    return Exit.worst([Exit.OK if reached else Exit.UNDECIDED, Exit.UNREACHABLE if unreachable else Exit.OK])


def _poll(condition: Callable[[], bool], seconds: float) -> bool:
    """Look until ``condition`` holds: the fleet lives on another thread, and a tenth of a second is soon enough."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def write(source: Source, out: Path, size: tuple[int, int], theme: str, view: str, profile: str | None) -> None:
    """Draw ``source`` as the ending of ``out`` says: svg, png, txt or json."""
    try:
        _write(source, out, size, theme, view, profile)
    except OSError as error:
        fail(f"--out {out}: cannot be written: {(error.strerror or str(error)).lower()}")


def _write(source: Source, out: Path, size: tuple[int, int], theme: str, view: str, profile: str | None) -> None:
    ending = out.suffix.lower()
    if ending == ".json":
        text = json_text(document(profile, source.states(), source.now()), indent=1) + "\n"
        out.write_text(text)
        return
    from tui.view.snapshot import snapshot

    picture = snapshot(source, size=size, theme=theme, view=view)
    if ending == ".txt":
        out.write_text(picture.text)
    elif ending == ".svg":
        out.write_text(picture.svg)
    else:
        from tui.report.png import svg_to_png

        svg_to_png(picture.svg, out)
    narrate(f"{out} written")


def live(profile: Profile, until: str | None, draw: Callable[[Source], None], *, launch: bool = False) -> Exit:
    """Draw a live fleet. It launches nothing of a real profile: a picture changes nothing."""
    source = FleetThread(profile, read_only=not launch, launch=launch)
    try:
        code = wait_for(source, until)
        draw(source)
        return code
    finally:
        source.stop()


@click.command("snapshot")
@click.argument("sources", metavar="SOURCE", nargs=-1, required=True)
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="FILE.{svg,png,txt,json}")
@click.option("--size", default="120x36", metavar="WxH", show_default=True, help="Columns and rows of the screen.")
@click.option("--theme", default="dark", show_default=True, metavar="T")
@click.option("--view", type=click.Choice(_VIEWS), default="board", show_default=True)
@click.option("--until", metavar="ready|settled|SECONDS", help="What to wait for [the first look].")
def command(sources: tuple[str, ...], out: Path, size: str, theme: str, view: str, until: str | None) -> Exit:
    """Draw SOURCE (a profile, `demo`, or saved logs) as a picture, text or JSON."""
    if out.suffix.lower() not in (".svg", ".png", ".txt", ".json"):
        fail(f"--out {out}: the name must end in .svg, .png, .txt or .json")
    if not out.absolute().parent.is_dir():
        fail(f"--out {out}: there is no folder {out.absolute().parent}")
    if out.suffix.lower() != ".json":
        from tui.view.theme import theme_names

        if theme not in theme_names():
            fail(f"--theme {theme}: there are {', '.join(theme_names())}")
    if until not in (None, "ready", "settled") and not _is_seconds(until):
        fail(f"--until {until}: it takes ready, settled or a number of seconds")
    screen = _size(size)

    def draw(profile: str | None) -> Callable[[Source], None]:
        return lambda source: write(source, out, screen, theme, view, profile)

    if sources == ("demo",):
        from tui.cli.demo import running_demo

        with running_demo() as profile:
            return live(profile, until, draw(profile.name), launch=True)
    if len(sources) == 1 and _is_profile(sources[0]):
        loaded = open_profile(sources[0])
        return live(loaded, until, draw(loaded.name))
    from tui.cli.replay import saved_logs

    draw(None)(saved_logs(sources))
    return Exit.OK


def _is_profile(source: str) -> bool:
    """Whether ``source`` means a profile: by its ending, or because no such file exists."""
    return Path(source).suffix.lower() in (".yaml", ".yml") or not Path(source).exists()


def _is_seconds(text: str | None) -> bool:
    try:
        return text is not None and 0 <= float(text) < float("inf")
    except ValueError:
        return False


def _size(text: str) -> tuple[int, int]:
    """Columns and rows of ``WxH``; a screen smaller than 40x10 or larger than 500x200 is a mistake."""
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal() and 40 <= int(width) <= 500 and 10 <= int(height) <= 200):
        fail(f"--size {text}: it takes columns x rows, from 40x10 to 500x200, such as 120x36")
    return int(width), int(height)
