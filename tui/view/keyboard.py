"""What a terminal sends: keys, the mouse and pastes. Nothing that comes in can end the program, and what was pasted is
never taken for keys, not even where it holds escapes."""

from __future__ import annotations

import os
import selectors
from codecs import getincrementaldecoder
from collections.abc import Callable, Generator, Iterable, Iterator

from textual import events
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.message import Message

from tui.sglang.safe import UNSAFE

MOST = 64 * 1024
"""Characters of a paste that are taken."""

_ESC = "\x1b"
_STEP = 4096  # bytes at once
_WAIT = 0.1  # seconds between two looks whether it is over


class Keyboard:
    """Bytes → messages. Textual's parser is given all but what was pasted."""

    def __init__(self) -> None:
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._parser = XTermParser()
        self._tail = ""  # of what was typed: a mark may come in two pieces
        self._pasted: str | None = None  # what has come of a paste

    def feed(self, data: bytes) -> Iterator[Message]:
        """What ``data`` means; what is not whole yet is waited for."""
        text = self._decode(data)
        while text:
            if self._pasted is None:
                text = yield from self._typed(text)
            else:
                text = yield from self._paste(text)

    def tick(self) -> Iterator[Message]:
        """What is certain when nothing came for a while: that Esc was a key of its own."""
        yield from self._parsed(self._parser.tick)

    def _typed(self, text: str) -> Generator[Message, None, str]:
        """Up to where a paste begins; returns what follows that."""
        known = self._tail + text
        at = known.find(BRACKETED_PASTE_START)
        end = len(text) if at < 0 else at + len(BRACKETED_PASTE_START) - len(self._tail)
        for character in text[:end]:  # of a sequence that the parser cannot bear, no more is lost than itself
            yield from self._parsed(self._parser.feed, character)
        self._tail = known[-len(BRACKETED_PASTE_START) + 1 :] if at < 0 else ""
        if at >= 0:
            self._pasted = ""
            yield from self._parsed(self._parser.feed, BRACKETED_PASTE_END)  # nothing pasted is for the parser
        return text[end:]

    def _paste(self, text: str) -> Generator[Message, None, str]:
        """Up to where the paste ends; returns what follows that."""
        pasted, end, rest = f"{self._pasted}{text}".partition(BRACKETED_PASTE_END)
        if end:
            self._pasted = None
            yield events.Paste(_clean(pasted[:MOST]))
        else:
            self._pasted = pasted if len(pasted) < 2 * MOST else pasted[:MOST] + pasted[-len(BRACKETED_PASTE_END) :]
        return rest

    def _parsed(self, parse: Callable[..., Iterable[Message]], *text: str) -> Iterator[Message]:
        """What the parser makes of it. Where it fails it begins anew."""
        try:
            messages = [*parse(*text)]
            for message in _alt(messages) if text == (_ESC,) else messages:
                if isinstance(message, events.Paste):  # the empty one between the two marks
                    continue
                if isinstance(message, events.Key) and message.key.startswith("alt+"):
                    message.character = None  # Alt and a letter is a key, not that letter typed
                yield message
        except Exception:
            self._parser = XTermParser()


def _alt(messages: list[Message]) -> list[Message]:
    """What an Esc begins anew was Alt and a letter, where it was that: the parser, in a hurry, tells ``^`` and the
    letter."""
    match messages:
        case [events.Key(key="circumflex_accent"), events.Key(key=key), *rest] if len(key) == 1:
            return [events.Key(f"alt+{f'shift+{key.lower()}' if key.isupper() else key}", None), *rest]
    return messages


def read_keys(file: int, over: Callable[[], bool], take: Callable[[Message], None]) -> None:
    """Read the terminal ``file`` until it is ``over`` or hung up."""
    keyboard = Keyboard()
    with selectors.SelectSelector() as selector:
        selector.register(file, selectors.EVENT_READ)
        while not over():
            if selector.select(_WAIT):
                try:
                    data = os.read(file, _STEP)
                except OSError:
                    return
                if not data:
                    return
                for message in keyboard.feed(data):
                    take(message)
            for message in keyboard.tick():
                take(message)


def _clean(text: str) -> str:
    return UNSAFE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
