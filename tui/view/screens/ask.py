"""What a host waits for: whether to trust its key, or the passphrase of ours."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui.fleet.api import Question, UnknownHostKey
from tui.report.clean import clean


class Ask(ModalScreen[str]):
    """Dismissed with what was entered, or with nothing by Esc. A host key takes the whole word ``yes``: no key that is
    pressed by chance adds one."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss('')", "leave it")]

    def __init__(self, hosts: str, question: Question) -> None:
        super().__init__()
        self._hosts, self._question = hosts, question

    def compose(self) -> ComposeResult:
        question = self._question
        known = isinstance(question, UnknownHostKey)
        with Container(classes="dialog question") as dialog:
            dialog.border_title = "Unknown host key" if known else "Passphrase"
            yield Static(clean(_text(self._hosts, question)), markup=False, classes="text")
            yield Input(password=not known, id="reply")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        reply, event.input.value = event.value, ""
        if isinstance(self._question, UnknownHostKey) and reply.strip().lower() != "yes":
            event.input.placeholder = "yes, or Esc"
        elif reply:
            self.dismiss(reply)


def _text(hosts: str, question: Question) -> str:
    if isinstance(question, UnknownHostKey):
        return (
            f"{hosts}: nobody has seen the key of {question.host} before.\n\n{question.fingerprint}\n\n"
            f"Compare it with the host's. Type yes and Enter to add it to {question.file}; Esc leaves it."
        )
    return (
        f"{hosts}: the key {question.path} is encrypted.\n\n"
        "Its passphrase opens it until the dashboard ends, and is not kept. Esc leaves it."
    )
