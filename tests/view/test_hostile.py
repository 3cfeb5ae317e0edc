"""Hostile texts in every place that a host, a server or a log can fill: none of them reaches the terminal or the
markup engine as more than text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.view.sources import NOW, FixedSource, fleet
from tests.view.test_app import running, until
from tui.fleet.api import ForwardState, Outcome
from tui.report.clean import clean, json_text
from tui.report.json import document
from tui.report.server import server_text
from tui.report.text import status_table
from tui.sglang.model import Failure, FailureKind, Stranger
from tui.sglang.safe import UNSAFE
from tui.sglang.state import ServerState
from tui.view.log.clean import shown
from tui.view.snapshot import screen_text

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07",  # clears the screen, sets the title
    "\x1b]52;c;b3duZWQ=\x1b\\",  # writes the clipboard
    "\x9b31m\x9d8;;http://evil\x9c",  # the same by C1 controls
    "[bold red]x[/] [/bold] [@click=app.quit]y[/] [link=http://evil]z[/]",  # markup of the toolkit
    "[/", "[bold", "\\[", "[red]",
    "\u202egnp.exe\u202c\u2066\u2069\u200b\ufeff",  # turns the reading order, hides
    "\r\x00\x08\x7f\x0c\x0b",
    "two\nlines\tand a tab",
    "\U000e0041 \u2028 \ud800",
)  # fmt: skip
ROWS = 48
ALL = " ".join(HOSTILE)


def infected(state: ServerState, text: str) -> ServerState:
    """The state with the text in every field that something else than the profile fills."""
    info = replace(state.info, model=text, url=text, log=text)
    run = replace(state.run, run=text, log=text, command=(text, "--flag", text)) if state.run else None
    log = replace(
        state.log, last_line=text, missing_ranks=(text,), warnings=(text,), version=text, model=text,
        args={"model_path": text, text: text},
    )  # fmt: skip
    if log.failure:
        log = replace(log, failure=Failure(FailureKind.OTHER, text, 1, text, (text, text)))
    return replace(
        state, info=info, run=run, log=log, warnings=(text,),
        notes=(text,), listener=text, unreachable_why=text,
    )  # fmt: skip


def clean_screen(text: str) -> str:
    """The screen, after a look that nothing is in it that a terminal would obey."""
    found = UNSAFE.search(text)
    assert found is None, (found, text[max(0, found.start() - 60) : found.end() + 20])
    assert text.count("\n") == ROWS and "\t" not in text
    return text


@pytest.mark.parametrize("text", [ALL, "[/", "[bold"])
async def test_no_screen_lets_anything_through(tmp_path: Path, text: str) -> None:
    source = infect(fleet(tmp_path), text)
    source.outcome = Outcome(False, text)
    async with running(source, size=(160, ROWS), frozen=False) as (app, pilot):
        for server in source.servers:
            app.select(server.info.name)
            await pilot.pause(0.15)
            clean_screen(screen_text(app))
        for keys in (["z"], ["escape", "w"], ["m"], ["escape", "c"], ["escape", "question_mark"], ["escape", "l"],
                     ["K"], ["escape", "R"], ["escape", "ctrl+p"], ["escape", "slash", "x", "enter"]):  # fmt: skip
            await pilot.press(*keys)
            await pilot.pause(0.1)
            clean_screen(screen_text(app))
        await until(lambda: app.is_running, pilot)
        assert app._exception is None


def infect(source: FixedSource, text: str) -> FixedSource:
    for path in source.logs.values():
        with path.open("ab") as file:
            file.write(b"\n" + text.encode("utf-8", "surrogatepass") + b"\n")
    first, *others = (infected(state, text) for state in source.servers)
    stranger = Stranger(text, text, container=text, output=text)
    source.servers = (replace(first, info=replace(first.info, stranger=stranger)), *others)
    source.host_states = tuple(
        replace(host, phase="unreachable", message=text, forwards=(ForwardState("gpu0", 1, 2, text),))
        for host in source.host_states
    )
    source.version += 1
    return source


@given(st.text() | st.lists(st.sampled_from(HOSTILE) | st.text(max_size=3)).map("".join))
@example(ALL)
def test_the_one_way_out_of_the_commands(text: str) -> None:
    assert UNSAFE.search(clean(text)) is None
    assert clean(clean(text)) == clean(text)
    printed = json_text({"a": [text, {"b": text}]})
    assert UNSAFE.search(printed) is None
    told = json.loads(printed)["a"]
    if "*" not in printed and text.isprintable():  # nothing looked like a key, no half of a character
        assert told == [text, {"b": text}]


@given(
    st.binary(max_size=200) | st.lists(st.sampled_from(HOSTILE)).map(lambda x: "".join(x).encode("utf-8", "replace"))
)
@example(ALL.encode("utf-8", "replace"))
def test_lines_of_a_log(raw: bytes) -> None:
    for line in shown(raw.replace(b"\n", b"")):
        assert UNSAFE.search(line) is None and "\n" not in line and "\t" not in line


@pytest.mark.parametrize("text", [*HOSTILE, ALL])
def test_reports(tmp_path: Path, text: str) -> None:
    states = [infected(state, text) for state in fleet(tmp_path).servers]
    for told in (status_table(states, NOW), *(server_text(state, NOW) for state in states)):
        assert UNSAFE.search(clean(told)) is None
    assert UNSAFE.search(json_text(document("p", states, NOW))) is None


def test_every_command_prints_through_the_one_way_out() -> None:
    """``click.echo`` and ``print`` stand in it alone, and where what is said is our own."""
    own = {"options.py", "errors.py", "asking.py"}
    for path in sorted((Path(__file__).parents[2] / "tui/cli").glob("*.py")):
        if path.name not in own:
            assert not re.search(r"\b(click\.echo|print|sys\.stdout\.write)\(", path.read_text()), path
