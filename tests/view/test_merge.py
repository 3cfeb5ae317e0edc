"""Merging logs by time: the pure order, and the file that grows."""

from __future__ import annotations

import math
import re
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui.view.log.clean import MAX_BYTES
from tui.view.log.heads import HEAD, MOST, body, heads
from tui.view.log.made import Limits
from tui.view.log.merge import Stream, first_time, released
from tui.view.log.merged import GAP, MergedLog
from tui.view.log.source import HOLD, REST, Followed

BASE = 1_764_470_040  # 2025-11-30 02:34:00


def stamp(second: int) -> str:
    return f"[2025-11-30 {2 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}]"


line = st.tuples(st.integers(0, 5000) | st.none(), st.text("ab \u00e9|[", max_size=6))
logs = st.lists(st.lists(line, max_size=12), min_size=1, max_size=4)


def written(lines: Sequence[tuple[int | None, str]]) -> bytes:
    return "".join(f"{'' if at is None else stamp(at)} {text}\n" for at, text in lines).encode()


def merged(texts: Sequence[bytes], sizes: Sequence[int]) -> list[bytes]:
    """The lines of all logs, each fed in pieces of one of the sizes."""
    streams = [Stream(b"%d| " % n) for n in range(len(texts))]

    def fill(stream: Stream) -> bool:
        place = streams.index(stream)
        data = texts[place][stream.offset :][: sizes[place % len(sizes)]]
        stream.feed(data)
        return bool(data)

    for stream, text in zip(streams, texts, strict=True):
        stream.due = len(text)
    return b"".join(got[1].text for got in released(streams, fill) if got).splitlines()


@given(logs, st.lists(st.integers(1, 60), min_size=1, max_size=4))
def test_nothing_is_lost_each_log_keeps_its_order_and_pieces_do_not_matter(
    lines: list[list[tuple[int | None, str]]], sizes: list[int]
) -> None:
    texts = [written(one) for one in lines]
    told = merged(texts, sizes)
    assert told == merged(texts, [1 << 20])
    for n, text in enumerate(texts):
        head = b"%d| " % n
        assert [one.removeprefix(head) for one in told if one.startswith(head)] == text.splitlines()


@given(logs)
def test_logs_in_order_of_time_are_merged_in_order_of_time(lines: list[list[tuple[int | None, str]]]) -> None:
    """A line without a stamp has the time of the one before."""
    texts = [written([(at, text) for at, text in sorted((at or 0, text) for at, text in one)]) for one in lines]
    times = [re.search(rb"\[.*?\]", one) for one in merged(texts, [1 << 20])]
    told = [found[0] for found in times if found]
    assert told == sorted(told)


def test_lines_without_a_stamp_stay_behind_their_line() -> None:
    trace = b"[2025-11-30 02:34:05] Traceback (most recent call last):\n  File x\nValueError: 1999-01-01\n"
    other = b"[2025-11-30 02:34:04] a\n[2025-11-30 02:34:05.250] b\n[2025-11-30T02:34:06Z] c\n2025-11-30 02:34:07 d\n"
    assert merged([trace, other], [7]) == [
        b"1| [2025-11-30 02:34:04] a",
        b"0| [2025-11-30 02:34:05] Traceback (most recent call last):",
        b"0|   File x",
        b"0| ValueError: 1999-01-01",
        b"1| [2025-11-30 02:34:05.250] b",
        b"1| [2025-11-30T02:34:06Z] c",
        b"1| 2025-11-30 02:34:07 d",
    ]


@pytest.mark.parametrize("size", [1, 5, 1000, 1 << 20])
def test_a_progress_bar_is_its_newest_state_and_a_record_behind_it_has_its_own_time(size: int) -> None:
    bar = b"[2025-11-30 02:34:01] begin\n\rload: 0%|\rload: 50%|\rload: 100%| 2/2[2025-11-30 02:34:09] done\n"
    other = b"[2025-11-30 02:34:05] between\n"
    assert merged([bar, other], [size]) == [
        b"0| [2025-11-30 02:34:01] begin", b"0| load: 100%| 2/2", b"1| [2025-11-30 02:34:05] between",
        b"0| [2025-11-30 02:34:09] done",
    ]  # fmt: skip


@pytest.mark.parametrize("bar", [b"", b"\r"])
@pytest.mark.parametrize("size", [1000, MAX_BYTES, 1 << 20])
def test_of_a_huge_line_no_more_is_kept_than_is_shown(size: int, bar: bytes) -> None:
    stream = Stream(b"")
    huge = b"begin " + b"x" * 500_000 + bar + b"y" * 2000 + b" end"
    for start in range(0, len(huge), size):
        stream.feed(huge[start : start + size])
        assert len(stream._part) <= 3 * MAX_BYTES
    stream.feed(b"\n")
    (piece,) = stream.queue
    assert piece.end == len(huge) + 1
    assert piece.text == (b"y" * 2000 + b" end" if bar else huge[:MAX_BYTES]) + b"\n"


def test_an_unfinished_line_comes_again_whole_when_it_goes_on() -> None:
    """So that a secret is never cut in two where it could not be seen as one."""
    stream = Stream(b"a| ")
    stream.feed(b"--api-key=sk-very")
    stream.tell_unfinished()
    stream.tell_unfinished()
    stream.feed(b"secret\nnext")
    stream.tell_unfinished()
    stream.feed(b"\n")
    assert [piece.text for piece in stream.queue] == [
        b"a| --api-key=sk-very\n", b"a| --api-key=sk-verysecret\n", b"a| next\n",
    ]  # fmt: skip


def test_hosts_clocks_are_told_from_utc() -> None:
    text = b"[2025-11-30 10:34:00] east\n"
    assert first_time(b"no\n" + text, 8 * 3600.0) == BASE == first_time(b"[2025-11-30 02:34:00] x")
    assert first_time(b"none at all\n[2025-13-30 02:34:00] no time\n") is None


def test_names_are_distinct_and_of_one_width() -> None:
    names = [
        "gpu0",
        "a-very-long-prefix-of-gpu1",
        "a-very-long-prefix-of-gpu2",
        "日本",
        "a|b c",
        "a|b_c",
        "",
        "x\x1b[2J",
    ]
    names += [f"same-start-{n}-in-the-middle-same-long-end" for n in range(3)]
    told = heads(names)
    assert len(set(told.values())) == len(names) and len({cell_len(head) for head in told.values()}) == 1
    assert all(HEAD.fullmatch(head) and cell_len(head) <= MOST + 3 for head in told.values())
    assert all(body(f"{head}rest | more") == "rest | more" for head in told.values())
    assert told["gpu0"].startswith("gpu0 ") and "gpu1" in told["a-very-long-prefix-of-gpu1"]


# the file


class Logs:
    """Logs in a folder, their merged file, and a clock."""

    def __init__(self, folder: Path, *servers: str, limits: Limits | None = None) -> None:
        self.folder, self.servers = folder, list(servers)
        self.runs = dict.fromkeys(servers, "1")
        self.east: dict[str, int | None] = {}
        self.tick, self.now = 100.0, float(BASE)
        self.merged = MergedLog(lambda: self.now, lambda: self.tick, limits or Limits())
        self.slices = 0

    def path(self, server: str) -> Path:
        return self.folder / f"{server}-{self.runs[server]}.log"

    def write(self, server: str, *lines: str, end: str = "\n") -> None:
        with self.path(server).open("a") as file:
            file.write("".join(f"{one}{end}" for one in lines))

    def wanted(self) -> list[Followed]:
        paths = [(server, self.path(server)) for server in self.servers]
        return [Followed(server, path if path.exists() else None, self.east.get(server)) for server, path in paths]

    def work(self, seconds: float = 0.0) -> list[str]:
        """The merged lines after some time."""
        self.tick += seconds
        self.now += seconds
        for _ in self.merged.work(self.wanted()):
            self.slices += 1
        assert self.merged.path is not None
        lines = self.merged.path.read_text().splitlines()
        assert self.merged.lines == len(lines)
        return lines


@pytest.fixture
def two(tmp_path: Path) -> Logs:
    return Logs(tmp_path, "a", "b")


def test_the_file_is_private_and_goes(two: Logs) -> None:
    two.write("a", f"{stamp(1)} x")
    assert two.work() == [f"a | {stamp(1)} x"]
    path = two.merged.path
    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    two.merged.close()
    assert not path.parent.exists() and two.merged.path is None


def test_what_killed_programs_left_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone = subprocess.Popen(["true"])
    gone.wait()
    left, kept = tmp_path / f"hcs-tui-merged-{gone.pid}-abc", tmp_path / "hcs-tui-merged-of-somebody"
    left.mkdir()
    (left / "1.log").write_text("x")
    kept.mkdir()
    one, other = MergedLog(), MergedLog()
    assert not left.exists() and kept.exists() and len(list(tmp_path.iterdir())) == 3
    one.close()
    other.close()
    assert list(tmp_path.iterdir()) == [kept]


def test_what_comes_in_waits_for_what_was_written_before_it(two: Logs) -> None:
    two.write("a", f"{stamp(1)} first")
    two.write("b", f"{stamp(2)} second")
    begun = [f"a | {stamp(1)} first", f"b | {stamp(2)} second"]
    assert two.work() == begun
    two.write("a", f"{stamp(5)} a5")
    assert two.work(0.1) == begun
    two.write("b", f"{stamp(4)} b4", f"{stamp(6)} b6")
    assert two.work(0.1) == begun
    assert two.work(HOLD)[2:] == [f"b | {stamp(4)} b4", f"a | {stamp(5)} a5", f"b | {stamp(6)} b6"]
    two.write("a", f"{stamp(3)} too late")
    two.work(0.1)
    assert two.work(HOLD)[-1] == f"a | {stamp(3)} too late"


def test_a_traceback_that_comes_in_stays_whole(two: Logs) -> None:
    two.write("a", f"{stamp(1)} a")
    two.work()
    two.write("b", f"{stamp(6)} b")
    two.write("a", f"{stamp(5)} Traceback (most recent call last):", "  File x", "ValueError")
    two.work(0.1)
    assert two.work(HOLD)[1:] == [
        f"a | {stamp(5)} Traceback (most recent call last):", "a |   File x", "a | ValueError", f"b | {stamp(6)} b",
    ]  # fmt: skip


def test_clocks_in_other_zones_are_compared(two: Logs) -> None:
    two.east = {"a": 3600, "b": 0}
    two.write("a", f"{stamp(3601)} one", f"{stamp(3603)} three")
    two.write("b", f"{stamp(2)} two")
    assert [one.split()[-1] for one in two.work()] == ["one", "two", "three"]
    assert two.merged.zones and two.merged.since == "03:00:01"


def test_a_server_without_a_log_gets_one_and_its_next_run_another(two: Logs) -> None:
    two.write("a", f"{stamp(1)} a")
    assert two.work() == [f"a | {stamp(1)} a"]
    two.write("b", f"{stamp(2)} run 1")
    two.work(0.1)
    assert two.work(HOLD)[1:] == [f"b | {stamp(2)} run 1"]
    before = two.merged.path
    two.write("b", "its last words")
    two.runs["b"] = "2"
    two.write("b", f"{stamp(3)} run 2")
    two.work(0.1)
    assert two.work(HOLD)[2:] == ["b | its last words", "b | … a new run", f"b | {stamp(3)} run 2"]
    assert two.merged.path == before


def test_a_log_that_is_gone_for_a_while_is_kept(two: Logs) -> None:
    two.write("a", f"{stamp(1)} a")
    two.work()
    for _ in two.merged.work([Followed("a", None), Followed("b", None)]):
        pass
    two.write("a", f"{stamp(2)} on")
    two.work(0.1)
    assert two.work(HOLD) == [f"a | {stamp(1)} a", f"a | {stamp(2)} on"]


def test_a_hosts_clock_that_is_known_later_puts_its_lines_in_order(two: Logs) -> None:
    two.east = {"a": 0}
    two.write("a", f"{stamp(2)} a")
    two.write("b", f"{stamp(3601)} b")
    assert two.work() == [f"a | {stamp(2)} a", f"b | {stamp(3601)} b"]
    two.east = {"a": 0, "b": 3600}
    assert two.work(GAP) == [f"b | {stamp(3601)} b", f"a | {stamp(2)} a"]


def test_a_log_that_was_cut_or_replaced_begins_anew(two: Logs) -> None:
    two.write("a", f"{stamp(1)} of the old one", f"{stamp(1)} more of it")
    two.work()
    two.path("a").write_text(f"{stamp(2)} cut\n")
    two.work(0.1)
    assert two.work(HOLD)[2:] == ["a | … its log begins anew", f"a | {stamp(2)} cut"]
    two.path("a").unlink()
    two.write("a", f"{stamp(3)} replaced, and longer than it was before")
    two.work(0.1)
    assert two.work(HOLD)[-1].endswith("longer than it was before")


def test_other_servers_make_it_anew(two: Logs) -> None:
    two.write("a", f"{stamp(5)} a")
    two.work()
    before = two.merged.path
    assert before is not None
    two.servers.append("found-later")
    two.runs["found-later"] = "1"
    two.write("found-later", f"{stamp(3)} old")
    assert two.work(0.1) == [f"found-later | {stamp(3)} old", f"a           | {stamp(5)} a"]
    assert two.merged.path != before and not before.exists()
    two.servers.remove("a")
    assert two.work(0.1) == [f"found-later | {stamp(3)} old"]


def test_old_lines_that_come_only_now_are_put_in_order(two: Logs) -> None:
    """As at a re-adoption: one log after the other comes over from its host."""
    two.write("a", f"{stamp(50)} a")
    two.work()
    two.write("b", f"{stamp(1)} b")
    two.work(0.1)
    assert two.work(HOLD) == [f"a | {stamp(50)} a", f"b | {stamp(1)} b"]
    assert two.work(GAP) == [f"b | {stamp(1)} b", f"a | {stamp(50)} a"]
    before = two.merged.path
    two.write("b", f"{stamp(52)} caught up")
    two.work(0.1)
    two.work(HOLD)
    two.write("b", f"{stamp(20)} late")
    two.work(0.1)
    assert two.work(HOLD)[-1] == f"b | {stamp(20)} late"
    two.work(GAP)
    assert two.merged.path == before, "what is late after that stays where it came"


def test_a_clock_that_is_behind_does_not_make_it_anew_for_ever(two: Logs) -> None:
    two.write("a", f"{stamp(1000)} a")
    two.work()
    paths = set()
    for second in range(60):
        two.write("b", f"{stamp(second)} b")
        two.work(0.1)
        two.work(GAP)
        paths.add(two.merged.path)
    assert 2 < len(paths) < 20


def test_a_middle_that_is_filled_in_is_shown(two: Logs, tmp_path: Path) -> None:
    """The end first, from a file of its own; then the whole from another."""
    end = tmp_path / "b-1.log.tail-123"
    end.write_text(f"of a line\n{stamp(9)} end\n")
    two.write("a", f"{stamp(5)} a")
    wanted = [*two.wanted()[:1], Followed("b", end)]
    for _ in two.merged.work(wanted):
        pass
    two.write("b", f"{stamp(1)} begin", f"{stamp(6)} middle, of a line", f"{stamp(9)} end")
    end.unlink()
    assert two.work(GAP) == [
        f"b | {stamp(1)} begin", f"a | {stamp(5)} a", f"b | {stamp(6)} middle, of a line", f"b | {stamp(9)} end",
    ]  # fmt: skip


def test_only_the_ends_of_long_logs_and_since_when_all_are_there(tmp_path: Path) -> None:
    logs = Logs(tmp_path, "a", "b", limits=Limits(ends=2000, least=100, most=1000))
    logs.write("a", *(f"{stamp(n)} a{n}" for n in range(400)))
    logs.write("b", f"{stamp(9)} b9", f"{stamp(399)} b399")
    lines = logs.work()
    first = int(lines[1].rpartition("a")[2])
    assert 350 < first < 380 and logs.merged.since == stamp(first)[12:-1]
    assert lines[0] == f"b | {stamp(9)} b9"
    assert lines[-2:] == [f"a | {stamp(399)} a399", f"b | {stamp(399)} b399"]
    assert len(lines) == 400 - first + 2


def test_a_flood_is_passed_over_and_that_is_said(tmp_path: Path) -> None:
    logs = Logs(tmp_path, "a", limits=Limits(ends=5000, least=100, most=5000))
    logs.write("a", f"{stamp(0)} first")
    logs.work()
    logs.write("a", *(f"{stamp(n)} {'x' * 100}" for n in range(1, 900)))
    logs.work(0.1)
    lines = logs.work(HOLD)
    assert "0.1 MB passed over" in lines[1] and lines[-1].startswith(f"a | {stamp(899)}")
    assert len(lines) < 50


def test_too_large_a_file_begins_anew_with_the_ends(tmp_path: Path) -> None:
    logs = Logs(tmp_path, "a", limits=Limits(ends=1000, least=100, most=1000, file=3000))
    for n in range(300):
        logs.write("a", *(f"{stamp(n)} {k}" for k in range(10)))
        logs.work(GAP / 10)
    assert logs.merged.path is not None
    assert logs.merged.path.stat().st_size < 3000 + 11 * 10 * 40
    assert len(list(logs.merged.path.parent.iterdir())) == 1


def test_a_log_without_any_stamp_is_first_and_its_new_lines_are_where_they_came(two: Logs) -> None:
    two.write("a", "unstamped 1", "unstamped 2")
    two.write("b", f"{stamp(0)} b")
    two.now = float(BASE)
    assert two.work() == ["a | unstamped 1", "a | unstamped 2", f"b | {stamp(0)} b"]
    two.write("b", f"{stamp(239)} later")  # 02:03:59, before what comes now
    two.write("a", "unstamped 3")
    two.work(0.1)
    assert two.work(HOLD)[3:] == [f"b | {stamp(239)} later", "a | unstamped 3"]


def test_an_unfinished_line_is_shown_once_it_rests(two: Logs) -> None:
    two.write("a", f"{stamp(1)} x")
    two.work()
    two.write("a", "Killed", end="")
    two.work(0.1)
    assert len(two.work(HOLD)) == 1
    assert two.work(REST)[1:] == ["a | Killed"]
    two.write("a", " by the kernel")
    two.work(0.1)
    assert two.work(HOLD)[1:] == ["a | Killed", "a | Killed by the kernel"]


def test_a_saved_log_without_a_last_newline_is_whole(two: Logs) -> None:
    two.write("a", f"{stamp(1)} x", "Killed", end="\n")
    two.path("a").write_text(two.path("a").read_text().rstrip())
    two.write("b", f"{stamp(2)} y")
    assert two.work() == [f"a | {stamp(1)} x", "a | Killed", f"b | {stamp(2)} y"]


def test_large_logs_are_merged_in_slices(tmp_path: Path) -> None:
    logs = Logs(tmp_path, *(f"s{n:02}" for n in range(64)))
    text = "".join(f"{stamp(n)} {'x' * 150}\n" for n in range(300))
    for n in range(64):
        logs.path(f"s{n:02}").write_text(text)
    lines = logs.work()
    assert len(lines) == 64 * 300 and logs.slices > 64
    times = [re.findall(r"\[.*\]", one)[0] for one in lines]
    assert times == sorted(times)
    assert math.isfinite(logs.tick)
