"""``runs``, ``runs compare`` and ``runs prune`` over runs of real processes on this machine."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.test_frame import Ran, hcs_tui
from tests.host.links import Ear, HostOf, follow, opened, python
from tui.cli.runs import LOOKS

SPEAK = (
    "import sys\n"
    "print('[2026-01-01 10:00:00] server_args=ServerArgs(model_path=\"/m\")')\n"
    "print('[2026-01-01 10:00:0' + sys.argv[1] + '] Load weight begin. avail mem=70.00 GB')\n"
    "print('[2026-01-01 10:00:09] Load weight end. type=X, dtype=torch.bfloat16, mem usage=10 GB.')\n"
    "raise SystemExit(int(sys.argv[2]))"
)


@dataclass(frozen=True)
class Kept:
    profile: str
    runs: list[str]  # oldest first
    folder: Path


async def _make(state: Path) -> list[str]:
    made = []
    async with opened(HostOf(state_dir=str(state))) as link:
        ear = Ear(link)
        for number, status in enumerate((0, 3, 0)):
            spec = python(SPEAK, str(number + 1), str(status), f"--hicache-size={number}", server="a")
            run = await follow(link, spec)
            await ear.ended(run.run)
            made.append(run.run)
    return made


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Three runs for those who only look."""
    return _keep(tmp_path_factory.mktemp("kept"))


@pytest.fixture
def doomed(tmp_path: Path) -> Kept:
    return _keep(tmp_path)


def _keep(tmp_path: Path) -> Kept:
    runs = asyncio.run(_make(tmp_path / "state"))
    path = tmp_path / "p.yaml"
    hosts = {"here": {"ssh": "local", "python": sys.executable, "state_dir": str(tmp_path / "state")}}
    servers = {"a": {"command": ["/bin/true"], "port": 1}, "b": {"command": ["/bin/true"], "port": 2}}
    path.write_text(json.dumps({"name": "p", "hosts": hosts, "defaults": {"host": "here"}, "servers": servers}))
    folder = next((tmp_path / "state").rglob(runs[0])).parent
    return Kept(str(path), runs, folder)


def text_of(ran: Ran) -> str:
    assert ran.code == 0, ran
    return ran.out


def test_runs_are_listed_with_what_became_of_them(kept: Kept) -> None:
    found = json.loads(text_of(hcs_tui("runs", kept.profile, "--json")))["runs"]
    assert [one["id"] for one in found] == kept.runs[::-1]
    failed = found[1]
    assert failed["exit"] == {"status": 3, "signal": None, "oom_killed": False}
    assert (failed["phase"], failed["fate"], failed["server"], failed["host"]) == ("failed", "ended", "a", "here")
    assert failed["failure"]["kind"] == "other" and failed["failure"]["short"]
    assert failed["who"] == "alice@desk" and failed["log_bytes"] == Path(failed["log"]).stat().st_size
    assert failed["started"] <= failed["ended"]
    assert len({one["argv_digest"] for one in found}) == 3
    assert [one["phase"] for one in found] == ["stopped", "failed", "stopped"]
    table = text_of(hcs_tui("runs", kept.profile, "a")).splitlines()
    assert table[0].split() == ["RUN", "SERVER", "HOST", "STARTED", "TOOK", "STATE", "LOG", "WHO"]
    assert table[2].startswith(kept.runs[1]) and "failed exit 3" in table[2]
    assert text_of(hcs_tui("runs", kept.profile, "b")) == "no runs\n"


def test_of_very_many_runs_the_older_ones_are_listed_by_their_records(doomed: Kept) -> None:
    old = doomed.folder / doomed.runs[0]
    for number in range(LOOKS):
        name = f"20200101T000000Z-{number:06x}"
        copy = shutil.copytree(old, doomed.folder / name)
        told = json.loads((copy / "run.json").read_text())
        (copy / "run.json").write_text(json.dumps({**told, "run": name, "started": 1.5e9 + number}))
    ran = hcs_tui("runs", doomed.profile, "--json")
    found = json.loads(ran.out)["runs"]
    assert (ran.code, len(found)) == (0, LOOKS + 3)
    assert [one["exit"]["status"] for one in found] == [0, 3, *[0] * (LOOKS + 1)]
    assert f"of {LOOKS + 3} runs the logs of the newest {LOOKS} were read" in ran.err


def test_a_host_that_does_not_answer_may_keep_runs(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    servers = {"a": {"host": "x", "command": ["/bin/true"], "port": 1}}
    path.write_text(json.dumps({"name": "p", "hosts": {"x": {"ssh": "nowhere.invalid"}}, "servers": servers}))
    ran = hcs_tui("runs", str(path))
    assert (ran.code, ran.out) == (4, "") and "nowhere.invalid" in ran.err
    pruned = hcs_tui("runs", "prune", str(path), "--dry-run")
    assert (pruned.code, pruned.out) == (4, "") and "nothing to delete" not in pruned.err


def test_runs_are_compared(kept: Kept) -> None:
    names = [f"{kept.profile}:a/{kept.runs[0]}", f"{kept.profile}:a"]
    rows = list(csv.reader(io.StringIO(text_of(hcs_tui("runs", "compare", *names, "--csv")))))
    told = {row[0]: row[1:] for row in rows}
    assert rows[0] == ["", f"a/{kept.runs[0]}", f"a/{kept.runs[2]}"]
    assert told["--hicache-size"] == ["0", "2"]
    assert told["loading_weights, s"] == ["8.0", "6.0"]
    assert told["state"] == ["stopped exit 0", "stopped exit 0"]
    markdown = text_of(hcs_tui("runs", "compare", f"{kept.profile}:a/~1", f"{kept.profile}:a", "--markdown"))
    assert "| --hicache-size | 1 | 2 |" in markdown and "| state | failed exit 3 | stopped exit 0 |" in markdown
    both = json.loads(text_of(hcs_tui("runs", "compare", *names, "--json")))
    assert [one["id"] for one in both["runs"]] == [kept.runs[0], kept.runs[2]]
    assert both["flags"]["--hicache-size"] == ["0", "2"]


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("nothing", "names no run"),
        ("{}:c", "has no server 'c'"),
        ("{}:b", "b has 0 runs"),
        ("{}:a/~7", "a has 3 runs, none 7 before the newest"),
        ("{}:a/1999", "a has no run '1999'; there are 2"),
        ("{}:a/2", "a has several runs that begin with '2'"),
    ],
)
def test_a_run_that_is_not_there(kept: Kept, reference: str, said: str) -> None:
    ran = hcs_tui("runs", "compare", f"{kept.profile}:a", reference.format(kept.profile))
    assert (ran.code, ran.out) == (2, "") and said in ran.err


def test_pruning_says_what_goes_and_keeps_the_newest(doomed: Kept, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("keep me")
    (doomed.folder / doomed.runs[0] / "link").symlink_to(precious)
    dry = text_of(hcs_tui("runs", "prune", doomed.profile, "--keep", "1", "--dry-run"))
    assert all(f"would be deleted  a/{run}" in dry for run in doomed.runs[:2])
    assert doomed.runs[2] not in dry
    asked = hcs_tui("runs", "prune", doomed.profile, "--keep", "1", stdin="n\n")
    assert "Delete 2 runs" in asked.err
    assert all((doomed.folder / run).is_dir() for run in doomed.runs)
    nobody = hcs_tui("runs", "prune", doomed.profile, "--keep", "1", stdin="")
    assert nobody.code == 2 and "nothing was deleted" in nobody.err and "--yes" in nobody.err
    one = hcs_tui("runs", "prune", doomed.profile, "--keep", "2", stdin="n\n")
    assert "Delete the run with its log?" in one.err
    done = text_of(hcs_tui("runs", "prune", doomed.profile, "a", "--max-gb", "0", "--yes"))
    assert f"deleted  a/{doomed.runs[0]}" in done
    assert sorted(path.name for path in doomed.folder.iterdir()) == sorted([doomed.runs[2], "lock"])
    assert (precious / "file").read_text() == "keep me"
    again = hcs_tui("runs", "prune", doomed.profile, "--keep", "1", "--yes")
    assert (again.code, again.out, again.err) == (0, "", "nothing to delete\n")


def test_nothing_beyond_the_state_folder_is_pruned(doomed: Kept, tmp_path: Path) -> None:
    """A run directory that is elsewhere by symlink, and a server's folder that is, stay."""
    elsewhere = tmp_path / "elsewhere"
    (doomed.folder / doomed.runs[0]).rename(elsewhere)
    (doomed.folder / doomed.runs[0]).symlink_to(elsewhere)
    done = text_of(hcs_tui("runs", "prune", doomed.profile, "--keep", "1", "--yes"))
    assert doomed.runs[0] not in done and f"deleted  a/{doomed.runs[1]}" in done
    assert (elsewhere / "run.json").exists()


def test_help_shows_the_grammar() -> None:
    shown = text_of(hcs_tui("runs", "--help"))
    assert "PROFILE [SERVER]" in shown and "compare" in shown and "prune" in shown
    assert "PROFILE:SERVER/ID" in text_of(hcs_tui("runs", "compare", "--help"))
