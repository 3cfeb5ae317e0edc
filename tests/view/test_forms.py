"""Actions that open a form or a list: other flags, all servers at once, earlier runs, smoke tests, copying."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList, TextArea

from tests.view import sources
from tests.view.sources import GB, NOW, FixedSource
from tests.view.test_app import running, said
from tui.fleet.api import Action, Describe, FetchLog, Kill, Launch, Outcome, PastRuns, Relaunch, SmokeTest
from tui.fleet.runs import PastRun
from tui.host.api import RunExit, RunRecord
from tui.sglang.model import Exit, MemoryReading, Stranger
from tui.view.app import HcsApp
from tui.view.glance import glance
from tui.view.screens.bulk import Bulk, ending_words
from tui.view.screens.confirm import TypeName
from tui.view.screens.edit import EditFlags
from tui.view.screens.history import History
from tui.view.screens.told import Told
from tui.view.snapshot import screen_text

FLAGS = {
    "model-path": "Qwen3.6-27B",
    "enable-hierarchical-cache": "true",
    "hicache-size": "150",
    "api-key": "!secret KEY",
}
COMMAND = "cd /w && python -m sglang.launch_server --model-path Qwen3.6-27B --port 30000"
SIZES = [(120, 40), (80, 24), (60, 20)]


async def press(app: HcsApp, pilot: Pilot[None], *keys: str) -> None:
    """Press keys, and take what came of it."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause()
        app.tell_outcomes()
        await pilot.pause()


def described(source: FixedSource) -> FixedSource:
    details: Mapping[str, object] = {"flags": FLAGS, "command": COMMAND}
    source.outcome = Outcome(True, "as it is launched", details)
    return source


def record(n: int, **more: object) -> RunRecord:
    base = RunRecord(
        f"2025-11-30T0{n}-00", "dflash", "gpu0", 4000 + n, NOW - 4000 * (5 - n), None,
        ("python", "-m", "sglang.launch_server", "--hicache-size", str(100 + n)), "/runs/server.log", False,
        exit=RunExit(0, None, False, NOW - 4000 * (5 - n) + 600), who="ann@laptop", log_size=16_000_000,
    )  # fmt: skip
    return replace(base, **more)  # type: ignore[arg-type]  # the test names real fields


def past(source: FixedSource) -> FixedSource:
    lives = replace(sources.ready("gpu0", 0, 409.0))
    over = replace(lives, alive=False, exit=Exit(0, None, False, NOW), stop_asked=NOW)
    source.outcome = Outcome(
        True,
        "3 runs",
        {
            "runs": (
                PastRun("box", record(4, run="run-1", alive=True, exit=None), lives),
                PastRun("box", record(3), over),
                PastRun("box", record(2, exit=RunExit(1, None, False, NOW)), sources.failed("gpu0", 0)),
            )
        },
    )
    return source


# other flags


async def test_other_flags_show_what_becomes_different(source: FixedSource) -> None:
    described(source)
    async with running(source, size=(120, 40)) as (app, pilot):
        await press(app, pilot, "E")
        assert source.acted == [Describe("gpu0")] and isinstance(app.screen, EditFlags)
        text = said(app)
        assert "nothing is changed" in text and "hicache-size: 150" in text and "api-key: !secret KEY" in text
        assert "gpu0 on box, ready for 1h02, will be ended and launched again" in text
        area = app.screen.query_one(TextArea)
        area.text = area.text.replace("150", "98") + "tp-size: 2\nhicache-sise: 1\n"
        await pilot.pause()
        text = said(app)
        assert "~ hicache-size: 150 → 98" in text and "+ tp-size: 2" in text
        assert "did you mean 'hicache-size'?" in text
        area.text = area.text.replace("hicache-sise: 1\n", "").replace("api-key: !secret KEY\n", "")
        await pilot.pause()
        assert "- api-key: !secret KEY" in said(app)
        await press(app, pilot, "ctrl+s")
        assert source.acted[1:] == [Relaunch("gpu0", {"hicache-size": 98, "api-key": None, "tp-size": 2})]


async def test_planned_memory_follows_what_is_typed(source: FixedSource) -> None:
    described(source)
    source.change("gpu0", memory=MemoryReading(int(303.4 * GB), int(300.0 * GB), 503 * GB))
    async with running(source, size=(120, 40)) as (app, pilot):
        await press(app, pilot, "E")
        assert "host memory: 300 GB (150 GB KV + 150 GB Mamba): fits into 352 GB free once this server" in said(app)
        area = app.screen.query_one(TextArea)
        area.text = area.text.replace("150", "200")
        await pilot.pause()
        text = said(app)
        assert "host memory: 400 GB" in text and "does NOT fit" in text and "hicache-size 169 or less fits" in text
        area.text = area.text.replace("enable-hierarchical-cache: true\n", "")
        await pilot.pause()
        assert "no host memory is planned" in said(app)


async def test_flags_that_cannot_be_are_not_launched(source: FixedSource) -> None:
    described(source)
    async with running(source, size=(120, 40)) as (app, pilot):
        await press(app, pilot, "E")
        area = app.screen.query_one(TextArea)
        area.text = area.text.replace("150", "plenty")
        await press(app, pilot, "ctrl+s")
        assert isinstance(app.screen, EditFlags) and source.acted == [Describe("gpu0")]
        assert "✖ hicache-size takes a whole number of GB" in said(app)
        await press(app, pilot, "escape")
        assert not isinstance(app.screen, EditFlags) and source.acted == [Describe("gpu0")]


async def test_the_form_by_mouse(source: FixedSource) -> None:
    described(source)
    async with running(source, size=(120, 40)) as (app, pilot):
        await press(app, pilot, "E")
        await pilot.click("#no")
        await pilot.pause()
        assert source.acted == [Describe("gpu0")]
        await press(app, pilot, "4", "E")
        assert "gpu3 will be launched." in said(app)
        await pilot.click("#yes")
        await pilot.pause()
        assert source.acted[2:] == [Relaunch("gpu3", {})]


async def test_the_form_is_not_for_read_only_nor_for_strangers(source: FixedSource) -> None:
    described(source)
    source.read_only = True
    async with running(source) as (app, pilot):
        await press(app, pilot, "E", "B")
        assert source.acted == [] and len(app.screen_stack) == 1
    source.read_only = False
    source.change("gpu0", info=replace(source.servers[0].info, stranger=Stranger("alice", "python x")))
    async with running(source) as (app, pilot):
        await press(app, pilot, "E")
        assert source.acted == [] and "found running" in screen_text(app)


# all servers at once


async def test_all_are_launched_that_do_not_run(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        await press(app, pilot, "B")
        assert isinstance(app.screen, Bulk)
        text = said(app)
        assert "All 4 servers on box: 2 ready, 1 starting, 1 failed." in text
        assert "Launch 1 (l)" in text and "Relaunch 4 (R)" in text and "Kill 3 (K)" in text
        await press(app, pilot, "l")
        assert source.acted == [Launch("gpu3")]
        assert "launch: 1 of 1 done" in screen_text(app)


@pytest.mark.parametrize("typed", ["2", "", "yes", "33"])
async def test_a_wrong_count_ends_nothing(source: FixedSource, typed: str) -> None:
    async with running(source) as (app, pilot):
        await press(app, pilot, "B", "K")
        assert isinstance(app.screen, TypeName)
        await press(app, pilot, *typed, "enter")
        assert source.acted == [] and isinstance(app.screen, TypeName)
        await press(app, pilot, "escape")
        assert source.acted == [] and len(app.screen_stack) == 1


async def test_the_typed_count_ends_them_and_each_is_told(source: FixedSource) -> None:
    source.outcome = Outcome(False, "2 left after SIGKILL")
    async with running(source) as (app, pilot):
        await press(app, pilot, "B", "K")
        text = said(app)
        assert "Kill 3 servers?" in text and "gpu0, gpu1, gpu2 will be ended. 95 running requests are lost." in text
        assert "Type 3 and Enter to end them; Esc leaves them." in text
        await press(app, pilot, "3", "enter")
        assert source.acted == [Kill("gpu0"), Kill("gpu1"), Kill("gpu2")]
        assert "kill: 0 of 3 done" in screen_text(app) and "2 left after SIGKILL" in screen_text(app)


async def test_only_listed_servers_are_meant_and_no_strangers(source: FixedSource) -> None:
    source.change("gpu0", info=replace(source.servers[0].info, stranger=Stranger("alice", "python x")))
    async with running(source) as (app, pilot):
        await press(app, pilot, "B", "R")
        text = said(app)
        assert "gpu1, gpu2 will be ended and launched again" in text and "1 that does not run is launched." in text
        await press(app, pilot, "2", "enter")
        assert source.acted == [Relaunch("gpu1"), Relaunch("gpu2"), Relaunch("gpu3")]
        source.acted.clear()
        app.list_only("gpu1")
        await press(app, pilot, "B")
        assert "1 of 4 servers, as the board lists them on box: 1 ready." in said(app)
        await press(app, pilot, "K", "1", "enter")
        assert source.acted == [Kill("gpu1")]


async def test_all_by_mouse(source: FixedSource) -> None:
    async with running(source) as (app, pilot):
        await press(app, pilot, "B")
        await pilot.click("#kill")
        await pilot.pause()
        assert isinstance(app.screen, TypeName) and source.acted == []


# earlier runs


async def test_earlier_runs_are_listed(source: FixedSource) -> None:
    past(source)
    async with running(source, size=(120, 40)) as (app, pilot):
        await press(app, pilot, "H")
        assert source.acted == [PastRuns("gpu0")] and isinstance(app.screen, History)
        text = said(app)
        assert "STARTED" in text and "● ready" in text and "◌ stopped exit 0" in text and "✖ failed" in text
        assert "10m00s" in text and "host memory: wants 150.10 GB" in text and "3m16s" in text
        await press(app, pilot, "down", "down")
        assert "2025-11-30T02-00: host memory" in said(app)
        await press(app, pilot, "escape")
        assert not isinstance(app.screen, History)


class OneByOne(FixedSource):
    """A host that tells of its runs at once, and of their logs when it is asked for them."""

    def act(self, action: Action) -> Future[Outcome]:
        whole = self.outcome
        runs = whole.details.get("runs")
        if isinstance(action, PastRuns) and isinstance(runs, tuple):
            wanted = [run for run in runs if not action.logs or run.record.run in action.logs]
            told = tuple(replace(run, read=bool(action.logs)) for run in wanted)
            self.outcome = Outcome(True, "", {"runs": told})
        future = super().act(action)
        self.outcome = whole
        return future


async def test_runs_are_shown_before_their_logs_were_read(source: FixedSource) -> None:
    slow = past(OneByOne(source.servers, source.host_states, source.logs))
    async with running(slow, size=(120, 40)) as (app, pilot):
        await pilot.press("H")
        app.tell_outcomes()
        await pilot.pause()
        text = said(app)
        assert "… lives" in text and "… exit 0" in text and text.count("reading …") >= 3
        assert "✖" not in text and "host memory" not in text, "nothing that only a log can tell"
        await press(app, pilot, "c")
        assert isinstance(app.screen, History), "there is nothing to compare yet"
        app.tell_outcomes()
        await pilot.pause()
        text = said(app)
        assert "● ready" in text and "✖ failed" in text and "reading" not in text
        assert slow.acted == [PastRuns("gpu0"), PastRuns("gpu0", ("run-1", "2025-11-30T03-00", "2025-11-30T02-00"))]


async def test_the_log_of_an_earlier_run_and_back(source: FixedSource, tmp_path: Path) -> None:
    past(source)
    async with running(source, size=(120, 40)) as (app, pilot):
        await press(app, pilot, "H", "down")
        old = tmp_path / "old.log"
        old.write_text("a line of the earlier run\n")
        source.outcome = Outcome(True, "its log", {"path": old})
        await press(app, pilot, "enter")
        assert source.acted[1:] == [FetchLog("gpu0", "2025-11-30T03-00")]
        text = screen_text(app)
        assert "a line of the earlier run" in text
        assert "gpu0 · log of run 2025-11-30T03-00 · Esc: the present one" in text and " lines" not in text
        await press(app, pilot, "2")
        assert "gpu1 · log ─" in screen_text(app)
        await press(app, pilot, "1", "escape")
        text = screen_text(app)
        assert "gpu0 · log ─" in text and "Decode batch" in text and app.earlier == {}


async def test_the_present_run_needs_no_fetching(source: FixedSource) -> None:
    past(source)
    async with running(source) as (app, pilot):
        await press(app, pilot, "H", "enter")
        assert source.acted == [PastRuns("gpu0")] and len(app.screen_stack) == 1


async def test_two_runs_are_compared(source: FixedSource) -> None:
    past(source)
    async with running(source, size=(120, 50)) as (app, pilot):
        await press(app, pilot, "H", "down", "space", "down", "space")
        assert said(app).count("✔") == 2
        await press(app, pilot, "c")
        assert isinstance(app.screen, Told)
        text = said(app)
        assert "gpu0/2025-11-30T03-00 gpu0/2025-11-30T02-00" in text and "--hicache-size 103 102" in text
        await press(app, pilot, "escape")
        assert isinstance(app.screen, History)


async def test_a_host_that_does_not_answer_and_a_server_that_never_ran(source: FixedSource) -> None:
    source.outcome = Outcome(False, "gpu0: box cannot be reached")
    async with running(source) as (app, pilot):
        await press(app, pilot, "H")
        assert "gpu0: box cannot be reached" in said(app)
        await press(app, pilot, "space", "c", "enter", "escape")
        source.outcome = Outcome(True, "0 runs", {"runs": ()})
        await press(app, pilot, "H")
        assert "it has not run yet" in said(app)


# small ones


async def test_a_smoke_test_is_a_dialog_and_a_failed_one_a_line(source: FixedSource) -> None:
    details = {"text": " Paris. [b]", "tokens": 32, "seconds": 1.5, "ttft": 0.21, "rate": 24.0, "prompt": "The capital"}
    source.outcome = Outcome(True, "gpu0: 32 tokens", details)
    async with running(source) as (app, pilot):
        await press(app, pilot, "t")
        assert source.acted == [SmokeTest("gpu0")] and isinstance(app.screen, Told)
        text = said(app)
        assert "32 tokens in 1.50 s · first token after 0.21 s · 24.0 tok/s after it" in text
        assert "The capital Paris. [b]" in text
        await press(app, pilot, "enter")
        source.outcome = Outcome(False, "gpu0: HTTP 500: no")
        await press(app, pilot, "t")
        assert len(app.screen_stack) == 1 and "gpu0: HTTP 500: no" in screen_text(app)


async def test_the_command_line_is_copied(source: FixedSource) -> None:
    described(source)
    async with running(source) as (app, pilot):
        await press(app, pilot, "y")
        assert source.acted == [Describe("gpu0")] and app.clipboard == COMMAND
        source.outcome = Outcome(False, "a saved log")
        await press(app, pilot, "y")
        assert "a saved log" in screen_text(app)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("keys", ["E", "B", "BK", "H", "t", "A", "?"])
async def test_forms_fit(source: FixedSource, size: tuple[int, int], keys: str) -> None:
    past(source)
    details = {**source.outcome.details, "flags": FLAGS, "text": "x " * 60, "tokens": 1, "seconds": 1.0, "rate": 1.0}
    source.outcome = Outcome(True, "", details)
    async with running(source, size=size) as (app, pilot):
        await press(app, pilot, *("question_mark" if key == "?" else key for key in keys))
        box = app.screen.query_one(".dialog").region
        assert box.x >= 0 and box.y >= 0 and box.right <= size[0] and box.bottom <= size[1]
        for widget in app.screen.query("Button, TextArea, OptionList, Input, #difference").results():
            if widget.display and not isinstance(widget, OptionList):
                assert widget.region.width > 0 and box.contains_region(widget.region), widget


@pytest.mark.parametrize(("columns", "wraps"), [(120, False), (80, True), (60, True)])
async def test_compared_runs_stand_side_by_side(source: FixedSource, columns: int, wraps: bool) -> None:
    past(source)
    async with running(source, size=(columns, 50)) as (app, pilot):
        await press(app, pilot, "H", "down", "space", "down", "space", "c")
        rows = screen_text(app).split("\n")
        assert any(re.search("--hicache-size +103 +102 ", row) for row in rows) and "98 or less" in said(app)
        assert (not any("host memory: wants" in row and "98 or less" in row for row in rows)) or not wraps
        assert "↑↓ scroll · Esc closes" in screen_text(app)
        assert max(len(row.rstrip()) for row in rows) <= columns


async def test_from_flags_that_cannot_be_nothing_follows(source: FixedSource) -> None:
    described(source)
    async with running(source, size=(120, 40)) as (app, pilot):
        await press(app, pilot, "E")
        area = app.screen.query_one(TextArea)
        area.text = area.text.replace("150", "5banana")
        await pilot.pause()
        text = said(app)
        assert "✖ hicache-size" in text and "host pools" not in text and "host memory" not in text


async def test_only_what_can_be_done_to_all_is_offered(source: FixedSource) -> None:
    source.servers = source.servers[2:]
    async with running(source) as (app, pilot):
        await press(app, pilot, "B")
        assert "Both servers on box" in said(app) and "Launch 1" in said(app) and "Kill 1" in said(app)
        await press(app, pilot, "escape")
        source.servers = source.servers[:1]
        source.version += 1
        app.look()
        await press(app, pilot, "B")
        assert "The one server on box" in said(app) and "Launch" not in said(app) and "Kill 1" in said(app)
        await press(app, pilot, "l", "down", "down", "enter")
        assert "Kill 1 server?" in said(app)


def test_names_are_told_whole_and_in_their_natural_order() -> None:
    states = [sources.ready(f"demo{n}", n, 400.0) for n in (*range(10, 40), *range(2, 10))]
    glances = [glance(state, NOW) for state in states]
    text = ending_words("kill", [g.name for g in glances], glances)
    assert text.startswith("demo2, demo3, ") and "demo9, demo10, demo11" in text
    assert re.search(r", demo\d\d and \d+ more will be ended\.", text)
    gone = [glance(replace(state, unreachable_since=NOW - 9), NOW) for state in states[:2]]
    assert "2 out of reach" in ending_words("kill", [g.name for g in gone], gone)
