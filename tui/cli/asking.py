"""Questions of hosts, asked on the terminal as `ssh` asks them. Without a terminal nobody is asked."""

from __future__ import annotations

import asyncio
import os
import sys
import termios

import click

from tui.cli.options import narrate
from tui.fleet.api import Reconnect
from tui.fleet.fleet import Fleet
from tui.host.answers import answer
from tui.host.api import HostError
from tui.host.question import LockedKey, Question
from tui.report.clean import clean

_TRIES = 3  # for a passphrase


class Asker:
    """Asks one question at a time, each once, whoever wants to know. Call it with the error of a host: whether that
    host is worth another attempt."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._answered: dict[Question, bool] = {}

    @property
    def asking(self) -> bool:
        """Whether a question stands on the terminal."""
        return self._turn.locked()

    async def __call__(self, error: HostError) -> bool:
        question = error.question
        if question is None or not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
            return False
        async with self._turn:
            if question not in self._answered:
                narrate(error.message)
                self._answered[question] = await _ask(question)
            return self._answered[question]


async def ask_for_hosts(fleet: Fleet) -> None:
    """Ask what the hosts of a settled fleet wait for, and let those whose question was answered try again."""
    ask = Asker()
    asked: set[tuple[str, Question]] = set()
    while True:
        new = [(name, e, e.question) for name, e in fleet.errors().items() if e.question]
        new = [one for one in new if (one[0], one[2]) not in asked]
        if not new:
            return
        for name, error, question in new:
            asked.add((name, question))
            if await ask(error):
                await fleet.act(Reconnect(name))
        await fleet.settled()


async def _ask(question: Question) -> bool:
    hidden = isinstance(question, LockedKey)
    prompt = f"Passphrase for {question.path}: " if isinstance(question, LockedKey) else f"Add it to {question.file}? "
    for _ in range(_TRIES):
        reply = await _line(clean(prompt) if hidden else clean(prompt) + "(yes/no) ", hidden=hidden)
        if not reply:
            return False
        try:
            return await answer(question, reply)
        except HostError as error:
            narrate(error.message)
            if not hidden:
                return False
    return False


async def _line(prompt: str, *, hidden: bool) -> str:
    """A line from the terminal, without its end; what is ``hidden`` is not echoed. Ctrl+C cancels as anywhere."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    loop = asyncio.get_running_loop()
    read: asyncio.Future[bytes] = loop.create_future()
    if hidden:
        quiet = termios.tcgetattr(terminal)
        quiet[3] &= ~termios.ECHO
        termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)
    click.echo(prompt, nl=False, err=True)
    loop.add_reader(terminal, lambda: None if read.done() else read.set_result(os.read(terminal, 4096)))
    try:
        return (await read).decode("utf-8", "replace").rstrip("\r\n")
    finally:
        loop.remove_reader(terminal)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        if hidden:
            click.echo(err=True)
