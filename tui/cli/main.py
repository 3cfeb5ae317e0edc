"""``hcs-tui``: one click group over a table of commands, and the one place where errors become exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path

import click

from tui import __version__
from tui.cli.errors import OutputClosed, report
from tui.cli.exits import Exit

COMMANDS = {  # name → the module that has it as ``command``, and its line in --help (which loads none of them)
    "dashboard": ("tui.cli.dashboard", ""),
    "demo": ("tui.cli.demo", "The dashboard on an embedded SSH host with simulated servers."),
    "up": ("tui.cli.up", "Launch what does not run; wait until each is ready or failed."),
    "down": ("tui.cli.down", "End servers; prove that nothing is left."),
    "relaunch": ("tui.cli.relaunch", "End servers and launch them again, perhaps with other flags."),
    "status": ("tui.cli.status", "What each server does now."),
    "logs": ("tui.cli.logs", "A server's log, from its first line on."),
    "runs": ("tui.cli.runs", "Runs that the hosts keep; compare some, prune old ones."),
    "check": ("tui.cli.check", "Validate a profile; then preflight on its hosts."),
    "discover": ("tui.cli.discover", "SGLang servers that already run on hosts, whoever started them."),
    "forward": ("tui.cli.forward", "A server's port on this machine's loopback, until interrupted."),
    "import": ("tui.cli.importing", "A launch line or script as a profile."),
    "parse": ("tui.cli.parse", "Read any SGLang log: stage, caches, throughput, failure and advice."),
    "replay": ("tui.cli.replay", "The dashboard over saved logs."),
    "snapshot": ("tui.cli.snapshot", "The dashboard as a picture, text or JSON."),
    "schema": ("tui.cli.schema", "The JSON Schema of a profile, a report or the settings."),
}
DEFAULT = "dashboard"  # for `hcs-tui` and `hcs-tui PROFILE`


class Commands(click.Group):
    """A group whose commands are loaded by name, and whose default is the dashboard."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in COMMANDS if name != DEFAULT]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:  # click would make it exit code 1, which means that a server failed
            raise OutputClosed from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in COMMANDS and args[0] not in ("--help", "-h", "--version")):
            if args and not args[0].startswith("-"):
                _must_be_profile(ctx, args[0])
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


def _must_be_profile(ctx: click.Context, word: str) -> None:
    """A first word that is no command must be a profile: a misspelt command is told as such."""
    from tui.profile.builtin import SUFFIXES, available_profiles
    from tui.profile.problem import nearest

    if "/" in word or Path(word).suffix in SUFFIXES or Path(word).exists():
        return
    names = [*COMMANDS, *dict.fromkeys(path.stem for path in available_profiles())]
    if word not in names:
        hint = nearest(word, names)
        raise click.UsageError(f"no command and no profile is called {word!r}; {hint}".rstrip("; "), ctx)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="hcs-tui", message="%(prog)s %(version)s")
def cli() -> None:
    """Launch SGLang servers on remote GPU hosts over SSH, and watch their caches come to life.

    hcs-tui [PROFILE] [--read-only] [--ascii] opens the dashboard; without a PROFILE it offers those that it finds.
    --read-only: launch and kill nothing. --ascii: draw with ASCII characters alone.
    """


def run(args: Sequence[str] | None = None) -> Exit:
    """Run the command line ``args`` (default: the process's own) to its exit code; raises nothing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        result = cli.main(args=list(args) if args is not None else None, prog_name="hcs-tui", standalone_mode=False)
        if sys.stdout is not None:  # it may have been closed before the start
            sys.stdout.flush()
    except BaseException as error:  # the one boundary: nothing may reach the user as a traceback
        return report(error)
    return Exit(result or 0)


def main() -> None:
    """The console script."""
    sys.exit(int(run()))
