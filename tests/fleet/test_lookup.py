"""Questions about servers that change nothing, on real processes; smoke tests as streams."""

from __future__ import annotations

import filecmp
from pathlib import Path

import pytest

from tests.fleet.rig import profile, reach, running
from tui.fleet.api import Describe, FetchLog, Launch, PastRuns, Relaunch, SmokeTest
from tui.fleet.fleet import Fleet
from tui.fleet.runs import PastRun
from tui.fleet.smoke import read_completion
from tui.host.api import HttpAnswer
from tui.sglang import verdict
from tui.sglang.model import Phase


async def past(fleet: Fleet, *logs: str) -> tuple[PastRun, ...]:
    runs = (await fleet.act(PastRuns("gpu0", logs))).details["runs"]
    assert isinstance(runs, tuple)
    return runs


async def test_earlier_runs_and_their_logs(tmp_path: Path) -> None:
    async with running(profile(tmp_path, ["plain"]), tmp_path) as fleet:
        assert (await fleet.act(PastRuns("gpu0"))).details["runs"] == ()
        await fleet.act(Launch("gpu0"))
        await reach(fleet, "gpu0", Phase.READY)
        first = fleet.supervisors["gpu0"].state.run
        await fleet.act(Relaunch("gpu0", {"tp-size": 2}))
        await reach(fleet, "gpu0", Phase.READY)
        told = await fleet.act(PastRuns("gpu0"))
        unread = told.details["runs"]
        assert isinstance(unread, tuple) and [run.read for run in unread] == [False, False]
        [last] = await past(fleet, unread[1].record.run)
        assert last.read and last.record.run == unread[1].record.run, "one log alone was read"
        runs = await past(fleet, *(run.record.run for run in unread))
        assert told.ok and isinstance(runs, tuple) and len(runs) == 2 and first
        new, old = runs
        assert isinstance(old, PastRun) and old.record.run == first.run and new.record.alive
        assert verdict.phase(old.state) is Phase.STOPPED and verdict.phase(new.state) is Phase.READY
        fetched = await fleet.act(FetchLog("gpu0", first.run))
        path = fetched.details["path"]
        assert isinstance(path, Path) and filecmp.cmp(path, old.record.log, shallow=False)
        missing = await fleet.act(FetchLog("gpu0", "never"))
        assert not missing.ok and "keeps no run never" in missing.message
        described = await fleet.act(Describe("gpu0"))
        flags, command = described.details["flags"], str(described.details["command"])
        assert isinstance(flags, dict) and flags["tp-size"] == "2" and "--tp-size 2" in command
        tested = await fleet.act(SmokeTest("gpu0"))
        first_token, seconds = tested.details["ttft"], tested.details["seconds"]
        assert isinstance(first_token, float) and isinstance(seconds, float) and 0 < first_token <= seconds
        assert tested.details["text"] and "the first after" in tested.message


STREAM = (
    b'data: {"choices": [{"index": 0, "text": " Par"}]}\r\n\r\n'
    b'data: {"choices": [{"index": 0, "text": "is."}], "usage": null}\n\n'
    b'data: {"choices": [], "usage": {"completion_tokens": 5}}\n\ndata: [DONE]\n\n'
)


def test_a_stream_is_put_together() -> None:
    told = read_completion("a", HttpAnswer(200, STREAM, 2.5, 0.5))
    assert told.ok and told.details["text"] == " Paris." and told.details["tokens"] == 5
    assert told.details["ttft"] == 0.5 and told.details["rate"] == 2.0
    assert told.message == "a: 5 tokens in 2.50 s, the first after 0.50 s (2 tok/s): 'Paris.'"


def test_an_answer_that_is_no_stream_has_no_first_token() -> None:
    body = b'{"choices": [{"text": "Paris"}], "usage": {"completion_tokens": 4}}'
    told = read_completion("a", HttpAnswer(200, body, 2.0, 1.9))
    assert told.ok and told.details["ttft"] is None and told.details["rate"] == 2.0


@pytest.mark.parametrize(
    ("status", "body"),
    [(500, b"Internal Server Error"), (200, b""), (200, b"data: nonsense\n\n"), (200, b"[1]"), (401, b'{"error": 1}'),
     (200, b'data: {"error": {"message": "too long"}}\n\n'), (200, b'{"choices": 3}'), (200, b'{"choices": [7]}')],
)  # fmt: skip
def test_what_is_no_completion_is_shown_as_it_came(status: int, body: bytes) -> None:
    told = read_completion("a", HttpAnswer(status, body, 1.0, 0.5))
    assert not told.ok and told.message == f"a: HTTP {status}: {body.decode().strip()}"
