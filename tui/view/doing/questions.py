"""Asking what hosts wait for: each question once, and again when the user tries the host again."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from functools import cached_property

from textual.widgets import Input

from tui.fleet.api import WRONG_PASSPHRASE, Answer, HostState, Outcome, Question
from tui.view.doing.dashboard import Dashboard
from tui.view.doing.saying import Saying


class Questions:
    """Which question is to be asked next."""

    def __init__(self) -> None:
        self._asked: set[Question] = set()
        self._answers: dict[Question, Future[Outcome]] = {}

    def next(self, hosts: Iterable[HostState]) -> tuple[str, Question] | None:
        """The hosts that wait for it, and the question. It is not asked again until it went away and came back, or its
        answer was a wrong passphrase."""
        waiting: dict[Question, list[str]] = {}
        for host in hosts:
            if host.question:
                waiting.setdefault(host.question, []).append(host.name)
        self._asked &= waiting.keys()
        for answered in [question for question, future in self._answers.items() if future.done()]:
            outcome = self._answers.pop(answered).result()
            if outcome.details.get("error") == WRONG_PASSPHRASE:
                self._asked.discard(answered)
        question = next((q for q in waiting if q not in self._asked and q not in self._answers), None)
        if question is None:
            return None
        self._asked.add(question)
        return ", ".join(waiting[question]), question

    def answered(self, question: Question, future: Future[Outcome]) -> None:
        self._answers[question] = future

    def ask_again(self, question: Question) -> None:
        self._asked.discard(question)


class QuestionActions(Saying, Dashboard):
    """Asks while nothing else is asked and nothing is typed."""

    @cached_property
    def questions(self) -> Questions:
        return Questions()

    def ask_questions(self) -> None:
        if len(self.screen_stack) > 1 or isinstance(self.focused, Input):
            return
        found = self.questions.next(self.source.hosts())
        if found is None:
            return
        from tui.view.screens.ask import Ask

        hosts, question = found

        def replied(reply: str | None) -> None:
            if reply:
                future = self.source.act(Answer(question, reply))
                self.questions.answered(question, future)
                self.pending.add(future)

        self.push_screen(Ask(hosts, question), replied)
