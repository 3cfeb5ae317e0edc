"""Several saved logs of which some are none: the others are shown, and these are named."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.test_frame import hcs_tui
from tests.terminal import SCREEN_ON, Terminal
from tui.fleet.saved import SavedLogs
from tui.view.app import HcsApp
from tui.view.snapshot import screen_text

GOOD = b"[2025-12-23 03:12:20 TP0] Load weight begin. avail mem=139.11 GB\n"
WRONG = {
    "empty": (b"", "is empty: no server has written to it"),
    "binary": (bytes(range(256)) * 40, "is binary, not a log"),
    "other": (
        b"INFO 07-30 13:35:00 [api_server.py:1] vLLM API server version 0.9\n",
        "is a log of vLLM; only SGLang's",
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.log").write_bytes(GOOD)
    for name, (data, _) in WRONG.items():
        (tmp_path / f"{name}.log").write_bytes(data)
    return tmp_path


def test_a_snapshot_of_several_logs_names_those_that_are_none(folder: Path) -> None:
    out = folder / "out.json"
    names = ["empty", "good", "binary", "other"]
    ran = hcs_tui("snapshot", *(str(folder / f"{name}.log") for name in names), str(folder), "--out", str(out))
    assert ran.code == 0
    servers = {server["name"]: server for server in json.loads(out.read_text())["servers"]}
    assert list(servers) == [*names, folder.name]
    assert servers["good"]["stage"] == "loading_weights" and servers["good"]["warnings"] == []
    for name, (_, why) in WRONG.items():
        assert servers[name]["phase"] == "absent" and servers[name]["warnings"][0].startswith(why)
        assert f"{folder / name}.log: {why}" in ran.err
    assert servers[folder.name]["warnings"][0].startswith("is a directory")


@pytest.mark.parametrize("view", ["board", "wall", "merged"])
def test_each_view_draws_them(folder: Path, view: str) -> None:
    out = folder / "out.txt"
    logs = [str(folder / f"{name}.log") for name in ("empty", "good", "binary")]
    assert hcs_tui("snapshot", *logs, "--out", str(out), "--view", view).code == 0
    told = out.read_text()
    assert "Load weight begin" in told or view == "board"
    assert all((why in told) is (view != "merged") for why in ("is empty: no server", "is binary, not a log"))


async def test_the_panels_of_a_file_that_is_none_say_so(folder: Path) -> None:
    good, binary = folder / "good.log", folder / "binary.log"
    app = HcsApp(SavedLogs([good, binary], wrong={binary: "is binary"}), frozen=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("2")
        await pilot.pause()
        assert screen_text(app).count("is binary") == 3  # row, start-up, log


@pytest.mark.parametrize("command", ["replay {}", "replay --speed 2 {}", "snapshot {} --out x.txt"])
def test_where_none_is_a_log_all_are_told(command: str, folder: Path) -> None:
    logs = [str(folder / f"{name}.log") for name in WRONG]
    ran = hcs_tui(*command.replace("{}", "|".join(logs)).replace(" ", "|").split("|"))
    assert (ran.code, ran.out) == (2, "")
    told = ran.err.splitlines()
    starts = [f"{folder / name}.log: {why}" for name, (_, why) in WRONG.items()]
    assert all(line.startswith(start) for line, start in zip(told, starts, strict=True)), told


def test_a_name_that_is_no_file_is_refused_among_others(folder: Path) -> None:
    ran = hcs_tui("snapshot", str(folder / "good.log"), str(folder / "god.log"), "--out", str(folder / "x.txt"))
    assert (ran.code, ran.err) == (2, f"{folder / 'god.log'}: no such file\n")


@pytest.mark.parametrize("speed", [(), ("--speed", "9")])
def test_they_have_their_rows_in_the_dashboard(folder: Path, speed: tuple[str, ...]) -> None:
    logs = [str(folder / f"{name}.log") for name in ("good", "empty", "binary")]
    terminal = Terminal([sys.executable, "-m", "tui", "replay", *speed, *logs])
    try:
        told = [WRONG[name][1].encode() for name in ("empty", "binary")]
        terminal.until(lambda: all(why in terminal.output.partition(SCREEN_ON)[2] for why in told))
        terminal.press(b"q")
        terminal.ended()
    finally:
        terminal.close()
