"""What several commands share: arguments, options, and loading a profile."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tui.report.clean import clean, json_text
from tui.sglang.mask import learn

if TYPE_CHECKING:
    from tui.profile.model import Profile

Command = TypeVar("Command", bound=Callable[..., Any])


class Seconds(click.FloatRange):
    """A finite number of seconds."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return number


def json_option(function: Command) -> Command:
    """``--json``, as the parameter ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")(function)


def ascii_option(function: Command) -> Command:
    """``--ascii``: what the settings may say as well."""
    return click.option("--ascii", is_flag=True, help="Draw with ASCII characters alone.")(function)


def profile_argument(function: Command) -> Command:
    """``PROFILE``: a file, or the name of a profile that ``hcs-tui`` alone would offer."""
    return click.argument("profile", metavar="PROFILE")(function)


def servers_argument(function: Command) -> Command:
    """``[SERVER…]``, as the parameter ``servers``: a tuple of names, empty for all."""
    return click.argument("servers", metavar="[SERVER]...", nargs=-1)(function)


def open_profile(text: str, *, quiet: bool = False) -> Profile:
    """Load a profile and say its warnings on stderr, unless ``quiet``. Raises ``ProfileError``."""
    from tui.profile.builtin import find_profile
    from tui.profile.load import load
    from tui.profile.secrets import known_values

    profile = load(find_profile(text))
    learn(known_values(profile.servers))
    for warning in () if quiet else profile.warnings:
        narrate(f"warning: {warning}")
    return profile


def narrate(message: str) -> None:
    """Say something to the person, not to a script: on stderr."""
    click.echo(clean(message), err=True)


def print_text(text: str) -> None:
    """Data for people on stdout."""
    click.echo(clean(text))


def print_json(value: Mapping[str, object], *, line: bool = False) -> None:
    """Data for scripts on stdout: indented, or as one line of a stream."""
    click.echo(json_text(value, indent=None if line else 2))
