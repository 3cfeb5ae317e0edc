"""The release by the flags that a log lists; and it is handed to what depends on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.sglang.wordings import difference, words
from tui.sglang import verdict
from tui.sglang.events import HttpRead, Launched, LogRead
from tui.sglang.facts import read
from tui.sglang.memory import version_tuple
from tui.sglang.model import ModelFacts, RunInfo, ServerInfo
from tui.sglang.reduce import reduce
from tui.sglang.release import FIRST_FLAGS, release
from tui.sglang.state import ServerState

REAL = Path(__file__).parents[1] / "data" / "real"
WITH_ARGS = [path for path in sorted(REAL.glob("*.log")) if b"server_args=" in path.read_bytes()]


@pytest.mark.parametrize("log", WITH_ARGS, ids=lambda path: path.stem)
def test_whole_logs_tell_their_release(log: Path) -> None:
    told = read([log.read_bytes()]).version
    named = re.match(r"\d+\.\d+\.\d+(?:\.post\d+)?", log.name)
    assert named is not None
    assert told == named[0]


def test_a_dump_that_was_cut_or_shortened_tells_nothing() -> None:
    flags = {flag: "1" for _, flag in FIRST_FLAGS}
    assert release(flags) == FIRST_FLAGS[-1][0]
    assert release({flag: "1" for _, flag in FIRST_FLAGS[:25]}) == "0.5.12"
    assert release({name: value for name, value in flags.items() if name != "hicache_size"}) is None
    assert release({}) is None
    assert release({"model_path": "/models/tiny", "tp_size": "8"}) is None


def test_releases_stand_in_their_order() -> None:
    versions = [version_tuple(version) for version, _ in FIRST_FLAGS]
    assert None not in versions
    assert versions == sorted(versions, key=lambda version: version or (0, 0, 0))
    assert len({flag for _, flag in FIRST_FLAGS}) == len(FIRST_FLAGS)


def test_what_runs_counts_before_what_was_installed_and_what_the_log_gives_away() -> None:
    flags = ", ".join(f"{flag}=1" for version, flag in FIRST_FLAGS if (version_tuple(version) or ()) <= (0, 5, 12))
    log = read([f"[2026-07-30 13:35:00] server_args=ServerArgs({flags})\n".encode()])
    state = reduce(ServerState(ServerInfo("one")), LogRead(1.0, log))
    assert verdict.version(state) == "0.5.12"
    run = RunInfo("r", 1, 0.0, ("python",), "/log", sglang="0.5.12.post1")
    state = reduce(reduce(state, Launched(2.0, run)), LogRead(3.0, log))
    assert verdict.version(state) == "0.5.12.post1"
    assert (
        verdict.version(reduce(state, HttpRead(4.0, True, facts=ModelFacts(version="0.5.12.post2")))) == "0.5.12.post2"
    )


@pytest.mark.parametrize(("last", "sizes"), [("0.5.16", "once per pool and rank"), ("0.5.17", "once per rank")])
def test_advice_counts_the_pools_as_this_release_does(last: str, sizes: str) -> None:
    known = [flag for version, flag in FIRST_FLAGS if (version_tuple(version) or ()) <= (version_tuple(last) or ())]
    flags = {**dict.fromkeys(known, "1"), "hicache_size": "150", "model_path": "'/models/Qwen3-Next-80B'"}
    dump = ", ".join(f"{name}={value}" for name, value in flags.items())
    lines = (
        f"[2026-07-30 13:35:00] server_args=ServerArgs({dump})",
        "Traceback (most recent call last):",
        "ValueError: Not enough host memory available. Requesting 150.10 GB but only have 48.20 GB free. Please reduce "
        "the size of the hierarchical cache.",
        "[2026-07-30 13:35:09] Received sigquit from a child process. It usually means the child failed.",
    )
    failure = read([("\n".join(lines) + "\n").encode()]).failure
    assert failure is not None
    assert f"this SGLang ({last}) takes --hicache-size {sizes}" in failure.advice[0]


def test_what_two_releases_say_differently(tmp_path: Path) -> None:
    old = 'class ServerArgs:\n    port: int\nlogger.info(f"Load weight begin. avail mem={x:.2f} GB")\n'
    new = """\
class ServerArgs:
    port: int
    enable_new: bool
logger.info(f"Loading weights. avail={x:.2f} GB")
name = "sglang:new_total"
message += f", #new-req: {x}"
@app.get("/new")
def f():
    raise ValueError(f"no {x} left")
"""
    for name, source in (("old", old), ("new", new)):
        folder = tmp_path / name / "sglang/srt"
        folder.mkdir(parents=True)
        (folder / "server_args.py").write_text(source)
    told = [line.rpartition("    ")[0] for line in difference(words(tmp_path / "old"), words(tmp_path / "new"))]
    assert told == [
        "+ error  no {} left",
        "+ flag   enable_new",
        "- log    Load weight begin. avail mem={} GB",
        "+ log    Loading weights. avail={} GB",
        "+ metric sglang:new_total",
        "+ part   , #new-req: {}",
        "+ path   /new",
    ]
