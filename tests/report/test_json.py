"""The report's dictionary keeps to its schema, for states of every kind and for every log that is here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from tests.report.states import LOCAL, NOW, fleet
from tui.report.events import json_line
from tui.report.json import document, report
from tui.report.schema import report_schema
from tui.report.server import server_text
from tui.sglang.events import LogRead
from tui.sglang.facts import read
from tui.sglang.model import ServerInfo
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

LOGS = sorted((Path(__file__).parents[1] / "data").rglob("*.log"))
SCHEMA = report_schema()
CHECKER = jsonschema.Draft202012Validator(SCHEMA)


def saved(path: Path) -> ServerState:
    return reduce(ServerState(ServerInfo(path.stem, log=str(path))), LogRead(NOW, read([path.read_bytes()])))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("state", fleet(), ids=lambda state: state.info.name)
def test_every_situation_keeps_to_the_schema(state: ServerState) -> None:
    answer = report(state, NOW)
    CHECKER.validate(answer)
    assert list(answer) == SCHEMA["required"]
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer


def test_every_log_keeps_to_the_schema() -> None:
    assert len(LOGS) > 80
    for path in LOGS:
        state = saved(path)
        answer = report(state, NOW)
        CHECKER.validate(answer)
        json.dumps(answer, allow_nan=False)
        lines = server_text(state, NOW).splitlines()
        assert lines[0].startswith(f"{path.stem}: ")


def test_a_ready_server() -> None:
    answer = report(fleet()[0], NOW)
    expected = {
        "name": "gpu1",
        "host": "box",
        "run": "run1",
        "port": 30001,
        "pid": 4001,
        "gpus": [1],
        "started": "2026-05-28T21:36:37+02:00",
        "log": "/w/server.log",
        "phase": "ready",
        "stage": "ready",
        "failure": None,
        "exit": None,
        "requests": {"running": 48, "queued": 12},
        "usage": {"kv": 0.81, "mamba": 0.62, "swa": None},
        "speculative": {"algorithm": "EAGLE", "accept_len": 2.71, "accept_rate": None},
        "throughput": {"generate": 409.37, "prefill": 1200.0, "as_of": "2026-05-28T22:26:39+02:00", "stale": False},
    }
    assert {key: answer[key] for key in expected} == expected
    assert answer["stages"][1] == {  # type: ignore[index]  # a report is a dictionary of JSON values
        "stage": "loading_weights",
        "seconds": 21.4,
        "start": "2026-05-28T21:36:40+02:00",
    }


def test_a_failed_server() -> None:
    answer = report(fleet()[2], NOW)
    assert answer["exit"] == {"status": None, "signal": "SIGKILL", "oom_killed": False}
    failure = answer["failure"]
    assert isinstance(failure, dict)
    assert (failure["kind"], failure["line_number"]) == ("oom_host_hicache", 640)


def test_times_without_a_known_zone_have_no_offset() -> None:
    state = fleet()[0]
    answer = report(replace(state, run=None, alive=None, listening=None), LOCAL)
    assert answer["started"] == "2026-05-28T21:36:40"


def test_a_document_and_event_lines() -> None:
    answer = document("dflash", fleet(), NOW)
    assert (answer["profile"], len(answer["servers"])) == ("dflash", 6)  # type: ignore[arg-type]  # JSON values
    line = json.loads(json_line(NOW, None, "summary", servers=[1], why={"b", "a"}, path=Path("x")))
    assert (line["server"], line["event"], line["servers"], line["why"], line["path"]) == (
        *(None, "summary", [1]),
        *(["a", "b"], "x"),
    )
    assert "\n" not in json_line(NOW, "a", "note", note="two\nlines")
