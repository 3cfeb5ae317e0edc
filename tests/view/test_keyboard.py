"""What comes from a terminal, to the byte: nothing breaks the reading of it, and no paste is taken for keys."""

from __future__ import annotations

import os
import pty
import threading
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st
from textual import events
from textual.message import Message

from tests.view.test_hostile import ALL
from tui.sglang.safe import UNSAFE
from tui.view.keyboard import MOST, Keyboard, read_keys

START, END = b"\x1b[200~", b"\x1b[201~"
ODD = (
    b"\x1b", b"\x1b[", START, END, b"\x1b[<0;10;5M", b"\x1b[<64;999999999999999;1M", b"\x1b[<35;1;1M",
    b"\x1b[M\xff\xff\xff", b"\x1bOR", b"\x1b[A", b"\x1b[99999999999;1u", b"\x1b[0;0;1114112u", b"\x1b[48;0;0;0;0t",
    b"\x1b[?2048;2$y", b"\xc3\xa9", b"\xc3", b"\xff\xfe", b"\x00", b"\x9b31m", b"\x1b]11;rgb:0/0/0\x07",
    b"\x1b[" + b"1;" * 40 + b"m",
)  # fmt: skip


def heard(*pieces: bytes) -> list[Message]:
    keyboard = Keyboard()
    return [message for piece in pieces for message in keyboard.feed(piece)]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def told(messages: list[Message]) -> list[object]:
    return [m.key if isinstance(m, events.Key) else m.text if isinstance(m, events.Paste) else m for m in messages]


@given(st.lists(st.sampled_from(ODD) | st.binary(max_size=5)))
@example(list(ODD))
def test_whatever_comes_keys_are_heard_afterwards(pieces: list[bytes]) -> None:
    keyboard = Keyboard()
    for piece in pieces:
        list(keyboard.feed(piece))
    messages = [*keyboard.feed(END + b"\x1b" * 3 + b"[A" + b" " * 40 + b"q")]  # ends what was begun
    assert isinstance(messages[-1], events.Key) and messages[-1].key == "q"
    messages = heard(END.join(pieces) + END + b"\x1b" * 3 + b"[A" + b" " * 40 + b"q")
    assert isinstance(messages[-1], events.Key) and messages[-1].key == "q"


@given(st.lists(st.sampled_from(ODD) | st.binary(max_size=9) | st.just(b"Ky\n")), st.lists(st.integers(0), max_size=5))
@example([b"\x1b" + b"K" * 60, ALL.encode("utf-8", "replace")], [])
def test_a_paste_is_one_thing_wherever_it_is_cut(parts: list[bytes], places: list[int]) -> None:
    pasted = b"".join(parts).replace(END, b"").replace(START, b"")
    if END in pasted:
        return
    messages = heard(*cut(START + pasted + END, places))
    assert all(isinstance(message, events.Paste) for message in messages[-1:])
    keys = [message for message in messages if isinstance(message, events.Key)]
    assert not keys and len(messages) == 1
    (paste,) = messages
    assert isinstance(paste, events.Paste) and UNSAFE.search(paste.text) is None and "\r" not in paste.text


def test_around_a_paste_is_typed() -> None:
    assert told(heard(b"a\x1b[A" + START + b"one\r\ntwo\rthree" + END + b"b")) == ["a", "up", "one\ntwo\nthree", "b"]


def test_a_mark_in_two_pieces_with_a_pause_between() -> None:
    keyboard = Keyboard()
    first = [*keyboard.feed(b"\x1b[2")]
    keyboard._parser._timeout_time = 0  # the pause
    first += keyboard.tick()
    assert told([*keyboard.feed(b"00~K\nR" + END + b"j")])[-2:] == ["K\nR", "j"]
    assert not {"K", "R"} & set(told(first))


def test_a_long_paste_is_cut() -> None:
    messages = heard(*[START, *[b"x" * 4096] * 1000, END, b"q"])
    assert told(messages) == ["x" * MOST, "q"]


def test_reading_ends_when_the_terminal_hangs_up() -> None:
    main, child = pty.openpty()
    messages: list[Message] = []
    thread = threading.Thread(target=read_keys, args=(child, lambda: False, messages.append))
    thread.start()
    os.close(main)
    thread.join(10)
    assert not thread.is_alive()
    os.close(child)


def test_alt_and_a_letter_is_no_letter_in_any_form() -> None:
    keyboard = Keyboard()
    messages = [*keyboard.feed(b"a\x1b[99;3u\x1bc\x1bc")]
    keyboard._parser._timeout_time = 0  # nothing more comes for a while
    messages += keyboard.tick()
    assert told(messages) == ["a", "alt+c", "alt+c", "alt+c"]
    assert [m.character for m in messages if isinstance(m, events.Key)] == ["a", None, None, None]
