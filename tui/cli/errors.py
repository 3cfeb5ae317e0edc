"""Errors → one message for the person at the terminal, and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from typing import NoReturn

import click

from tui.cli.exits import Exit
from tui.report.clean import clean

OUTPUT_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class CommandError(Exception):
    """A command cannot go on; ``message`` says what happened and what to do."""

    def __init__(self, message: str, code: Exit = Exit.USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class OutputClosed(Exception):
    """The reader of our output went away."""


def fail(message: str, code: Exit = Exit.USAGE) -> NoReturn:
    """End the command with one message on stderr and an exit code."""
    raise CommandError(message, code)


def report(error: BaseException) -> Exit:
    """Say on stderr what ``error`` means, and return its exit code. ``HCS_DEBUG=1`` adds the traceback."""
    if os.environ.get("HCS_DEBUG") and not isinstance(error, SystemExit):
        click.echo(clean("".join(traceback.format_exception(error))), err=True)
    if isinstance(error, KeyboardInterrupt | click.Abort) or isinstance(error.__cause__, KeyboardInterrupt):
        return Exit.INTERRUPTED
    if isinstance(error, SystemExit):
        return Exit(error.code) if error.code in list(Exit) else Exit.INTERNAL
    if isinstance(error, BrokenPipeError | OutputClosed):
        _silence_stdout()
        return Exit.BROKEN_PIPE
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n", err=True)
    message, code = explain(error)
    if isinstance(error, OSError) and error.filename is None:
        _silence_stdout()
    click.echo(clean(message), err=True)
    return code


def explain(error: BaseException) -> tuple[str, Exit]:
    """The message and the exit code of an error that is neither click's nor an interruption."""
    from tui.demo.host import DemoError
    from tui.host.api import HostError, HostErrorKind
    from tui.profile.problem import ProfileError, UnknownServer, one_line
    from tui.profile.secrets import SecretMissing
    from tui.report.png import PngUnavailable

    match error:
        case click.ClickException():
            return f"Error: {error.format_message()}", Exit.USAGE
        case CommandError():
            return one_line(error.message), error.code
        case ProfileError():
            return str(error), Exit.USAGE
        case UnknownServer() | SecretMissing() | PngUnavailable() | DemoError():
            return str(error), Exit.USAGE
        case HostError():
            return str(error), Exit.FAILED if error.kind is HostErrorKind.REFUSED else Exit.UNREACHABLE
        case OSError() if error.filename is not None:
            return f"{one_line(str(error.filename))}: {(error.strerror or str(error)).lower()}", Exit.USAGE
        case OSError() if error.errno in OUTPUT_FULL:
            return f"the output cannot be written: {(error.strerror or str(error)).lower()}", Exit.USAGE
        case _:
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            return f"hcs-tui has a mistake in itself: {what}. HCS_DEBUG=1 shows where.", Exit.INTERNAL


def _silence_stdout() -> None:
    """Let the interpreter's last flush go nowhere, so that it does not complain either."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass
