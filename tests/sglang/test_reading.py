"""Reading is total, bounded, and does not depend on where the bytes were cut."""

from __future__ import annotations

import random
import time
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bench.parse import Shape, access, data_parallel, decode, log, prefill
from tui.sglang import verdict
from tui.sglang.events import Launched, LogRead
from tui.sglang.facts import Carry, LogFacts, facts, finish, merge, read
from tui.sglang.model import RunInfo, ServerInfo
from tui.sglang.parser import HEAD_CAP, LogParser
from tui.sglang.reduce import marks, reduce
from tui.sglang.series import MOST_UNREAD, SERIES
from tui.sglang.state import ServerState

DATA = Path(__file__).parent.parent / "data"
LOGS = sorted((DATA / "corpus").glob("*.log")) + sorted((DATA / "real").glob("*.log"))
READY = b"[2026-07-30 13:35:11] The server is fired up and ready to roll!\n"
FRAGMENTS = [
    READY,
    b"[2026-07-30 13:35:12 TP0] Load weight begin. avail mem=78.41 GB\n",
    b"[2026-07-30 13:35:12 DP0 TP0] Decode batch, #running-req: 3, #token: 9, token usage: 0.10, gen "
    b"throughput (token/s): 7.5, #queue-req: 1\n",
    b"[2026-07-30 13:35:12 DP1 TP1] Decode batch, #running-req: 4, #token: 9, token usage: 0.30, gen "
    b"throughput (token/s): 2.5, #queue-req: 0, \n",
    b"[2026-07-30 13:35:40 DP1 TP1] Decode batch. #running-req: 4, #token: 9, token usage: 0.30, accept "
    b"len: 2.10, gen throughput (token/s): 12.50, #queue-req: 0\r\n",
    b"[2026-07-30 13:35:13.123 TP0] Prefill batch, #new-seq: 1, #new-token: 100, #cached-token: 50, token "
    b"usage: 0.1, #running-req: 0, #queue-req: 0\n",
    b"[2026-07-30 13:35:13] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: "
    b"0.1, #running-req: 0, #queue-req: 0\n",
    b'[2026-07-30 13:35:13] INFO:     10.0.0.1:4011 - "GET /health HTTP/1.1" 200 OK\n',
    b'[2026-07-30 13:35:14] INFO:     10.0.0.1:4011 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n',
    b"\rCapturing batches (bs=4 avail_mem=2.91 GB):  50%|##   | 2/4 [00:00<00:00, 5.37it/s]",
    b"[2026-07-30 13:35:13 TP0] Capture cuda graph end. Time elapsed: 1.79 s\n",
    b"ValueError: Not enough host memory available. Requesting 40.00 GB but only have 34.13 GB free.\n",
    b"[2026-07-30 13:35:13 TP0] Scheduler hit an exception: Traceback (most recent call last):\n",
    b"[2026-07-30 13:35:10] server_args=ServerArgs(model_path='m', api_key='sk-secret', tp_size=2)\n",
    b"[2026-07-30 13:35:13 TP1] Allocating 150.10 GB host memory for hierarchical Mamba cache (layout=layer_first).\n",
    b"(Engine pid=4) [2026-07-30 13:35:15 TP0] Decode batch [12], #running-req: 3, gen throughput "
    b"(token/s): 8.5, #queue-req: 1\n",
    b"\x1b[32m[2026-07-30 13:35:15] INFO\x1b[0m:     Shutting down\n",
    b"[2026-07-30 13:35:13 DP0 TP0] Decode batch, #running-req: 3, gen throughput (token/s): 9.5, #queue-req: 1",
    b"[2026-07-30 13:35:16 PP1 TP0] Prefill batch, #new-seq: 2, #new-token: 60, #cached-token: 7, token usage: 0.1\n",
    b"[2026-07-30 13:35:16 PP0 TP0] Prefill batch, #cached-token: 7, #new-seq: 2, #new-token: 50, token usage: 0.1\n",
    b"[2026-07-30 13:34:59 TP0] Decode batch, mamba usage: 0.40, gen throughput (token/s): 3.5\n",
    b"[pod/a/b] [2026-07-30 13:35:17] Decode batch size is odd\n",
    b"[2026-13-41 13:35:17 TP0] Decode batch, #running-req: 5, gen throughput (token/s): 1.5\n",
    b"[2026-07-30 13:35:17 TP0] Decode batch, #running-req: 5, #token: 9, token usage: 0.20, cuda graph: Tr\n",
    b"ue, gen throughput (token/s): 81.50, #queue-req: 2\n",
    b"[2026-07-30 13:35:17 TP0] Prefill batch, #new-seq: 1, #new-token: 1, #cached-to\n",
    b"ken: 0, token usage: 0.1, #running-req: 0, #queue-req: 0\n",
    b"Killed\n",
    b"\n\r\n\n",
    b"\xff\xfe\x00\n",
    b"\n",
    b"\r\n",
]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    borders = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(borders)]


def fold(chunks: list[bytes]) -> LogFacts:
    carry, told = Carry(), LogFacts()
    for chunk in chunks:
        new, carry = facts(chunk, carry)
        told = merge(told, new)
    assert told.lines == finish(carry).lines
    return finish(carry)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_chunk_borders_do_not_matter(path: Path) -> None:
    data = path.read_bytes()
    whole = read([data])
    dice = random.Random(path.stem)
    for _ in range(3):
        assert fold(cut(data, [dice.randrange(len(data)) for _ in range(12)])) == whole
    assert fold([data[i : i + 997] for i in range(0, len(data), 997)]) == whole


logs = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map(b"".join)


@given(
    st.one_of(logs, st.binary(max_size=400), logs.map(lambda text: READY + text)), st.lists(st.integers(0), max_size=9)
)
@settings(max_examples=300, deadline=None)
def test_anything_cut_anywhere_reads_the_same(data: bytes, places: list[int]) -> None:
    assert fold(cut(data, places)) == fold([data])


@given(logs)
@settings(max_examples=150, deadline=None)
def test_many_lines_at_a_time_read_like_one_by_one(data: bytes) -> None:
    assert fold([READY + data]) == fold(
        [READY, *(line + b"\n" for line in data.split(b"\n")[:-1]), data.split(b"\n")[-1]]
    )


@given(logs, logs, logs)
@settings(max_examples=60, deadline=None)
def test_merging_is_associative_and_reduce_takes_batches_of_any_size(a: bytes, b: bytes, c: bytes) -> None:
    first, carry = facts(a, Carry())
    second, carry = facts(b, carry)
    third, _ = facts(c, carry)
    assert merge(merge(first, second), third) == merge(first, merge(second, third)) == third
    state = ServerState(ServerInfo("x"))
    both, _ = facts(a + b, Carry())
    one_by_one = reduce(reduce(state, LogRead(1.0, first)), LogRead(1.0, second))
    assert one_by_one == reduce(state, LogRead(1.0, both))


@given(logs)
@settings(max_examples=60, deadline=None)
def test_verdicts_are_total(data: bytes) -> None:
    for start in (ServerState(ServerInfo("x")), _running()):
        state = reduce(start, LogRead(5.0, read([data])))
        verdict.phase(state), verdict.stage(state), verdict.stages(state), verdict.failure(state)
        assert verdict.throughput(state, 99.0).stale == marks(state, 99.0).stale


def _running() -> ServerState:
    run = RunInfo("r", 1, 1.0, ("sglang",), "/log", utc_offset=0)
    return reduce(ServerState(ServerInfo("x", port=1)), Launched(1.0, run))


@pytest.mark.parametrize("ranks", [data_parallel(1), data_parallel(40)])
def test_a_long_series_is_that_of_its_last_ten_minutes(ranks: tuple[str, ...]) -> None:
    """More lines than are kept unread: what was worked out on the way is what would be read in the end."""
    shape = Shape("", 2 * len(ranks), ranks, (decode, prefill))
    data = READY + b"".join(log(10_000, shape, block) for block in range(4))
    parser, looked = LogParser(), LogParser()
    parser.feed(data)
    for start in range(0, len(data), 1 << 16):
        looked.feed(data[start : start + (1 << 16)])
        assert looked.facts().series[-1] is not None
    assert len(parser.batches.ring.told) <= MOST_UNREAD
    assert parser.facts().series == looked.facts().series
    tail = LogParser()
    tail.feed(READY + data[-len(data) // 8 :].partition(b"\n")[2])
    assert parser.facts().series[-5:] == tail.facts().series[-5:]


def test_seconds_told_in_many_pieces_are_kept_once() -> None:
    """A live log comes twenty times a second, for hours: no piece but a second's last is kept."""
    whole, pieces = LogParser(), LogParser()
    data = READY + log(30_000, Shape("", 20, data_parallel(1), (decode,)))
    whole.feed(data)
    for line in data.splitlines(keepends=True):
        pieces.feed(line)
    assert len(pieces.batches.ring.told) <= 2 * SERIES
    assert pieces.facts().series == whole.facts().series


def test_a_series_is_the_same_whenever_and_in_whatever_order_it_is_looked_at() -> None:
    """What was worked out for one look is used by the next, also by a look at what was known earlier."""
    dice, parser = random.Random(3), LogParser()
    lines = (READY + log(400, Shape("", 3, data_parallel(2), (decode, prefill)))).splitlines(keepends=True)
    known: list[tuple[int, LogFacts]] = []
    for count, line in enumerate(lines, start=1):
        parser.feed(line)
        known.append((count, parser.facts()))
        if dice.random() < 0.3:
            assert len(known[-1][1].series) >= 0
    for count, told in dice.sample(known, 60):
        assert told.series == read([b"".join(lines[:count])]).series


def test_carries_are_values() -> None:
    _, carry = facts(READY, Carry())
    once, _ = facts(FRAGMENTS[2], carry)
    again, _ = facts(FRAGMENTS[2], carry)
    assert once == again


def test_what_is_kept_is_bounded() -> None:
    parser = LogParser()
    parser.feed(READY)
    for block in range(3):
        parser.feed(log(4000, Shape("", 1, data_parallel(2), (decode, decode, decode, prefill, access)), block))
    for number in range(5000):
        parser.feed(f"[2026-07-30 13:35:13 TP{number}] max_running_requests is capped to {number} by x\n".encode())
        parser.feed(
            f"[2026-07-30 13:35:13 TP{number}] KV Cache is allocated. K size: 1.00 GB, V size: 1.00 GB\n".encode()
        )
    told = parser.facts()
    assert len(told.series) == 600
    assert len(told.warnings) <= 20
    assert len(told.missing_ranks) <= 64
    assert told.series == tuple(sorted(told.series, key=lambda sample: sample.at_local))


@pytest.mark.parametrize("end", [b"\n", b"\r", b""])
def test_a_line_of_many_megabytes(end: bytes) -> None:
    parser = LogParser()
    for _ in range(160):
        parser.feed(b"x" * 65536 + (b"\r" if end == b"\r" else b""))
    parser.feed(end + b"[2026-07-30 13:35:11] The server is fired up and ready to roll!\n")
    assert len(parser.tail) + len(parser.head) <= 2 * 65536 + 1
    told = parser.facts()
    assert told.size > 10_000_000
    assert told.ready == (end != b"")
    assert len(told.last_line) <= 500


def test_a_progress_bars_past_is_kept_short() -> None:
    parser = LogParser()
    parser.feed(b"Loading safetensors checkpoint shards:  10% Completed | 1/10 [00:01<00:09,  1.0s/it]\r" * 1000)
    assert len(parser.head) <= HEAD_CAP
    told = parser.facts()
    assert told.progress is not None and (told.progress.done, told.stage) == (1, "loading_weights")


def test_a_bar_that_is_drawn_again_as_it_was_is_read_once() -> None:
    parser = LogParser()
    with patch.object(LogParser, "_segment", autospec=True, side_effect=LogParser._segment) as segment:
        parser.feed(b"Loading 10%\r" * 1000 + b"Loading 20%\r")
    assert [call.args[1] for call in segment.call_args_list] == [b"Loading 10%", b"Loading 20%"]


def test_blank_lines_are_counted_and_end_a_traceback() -> None:
    trace = b'Traceback (most recent call last):\n  File "x.py", line 1, in f\nValueError: broken\n'
    for blank in (b"\n", b"\r\n"):
        one_by_one, carry = LogFacts(), Carry()
        for piece in (trace, *[blank] * 500, b"after\n"):
            one_by_one, carry = facts(piece, carry)
        assert read([trace + blank * 500 + b"after\n"]) == one_by_one
        assert one_by_one.lines == 504


HOSTILE = (
    b"Loading " * 8000,
    b"1%|" * 20_000,
    b"Capturing (" * 6000,
    b"[2026-07-30 13:35:11 " * 3000,
    b"server_args=ServerArgs(" + b"a='" * 20_000,
    b"server_args={" + b"'a': {" * 10_000,
    b"Decode batch, " + b"#a: 1" * 12_000,
    b"Decode batch, " + b"a" * 60_000,
    b"(pid=" * 12_000,
    b"a | " * 15_000,
    b'  File "' + b"/x" * 30_000 + b'", line 1, in ',
    b"{" * 60_000,
    b'{"log": "' + b"\\n" * 30_000 + b'"}',
    b"\x1b[" * 30_000,
    b"Mamba Cache is allocated. conv_state size: " + b"1" * 60_000,
    b"TP0 " * 15_000,
    b"[pod/" * 12_000,
    b"[20" * 20_000,
    b"x[2026-07-30 13:35:11] " * 3000,
    b"Decode batch, #running-req: 1, " * 2000,
    b"INFO:     " + b"a" * 60_000,
    b"{a=" * 20_000,
)


@pytest.mark.parametrize("line", HOSTILE, ids=lambda line: line[:12].decode("latin-1"))
def test_no_line_takes_long(line: bytes) -> None:
    begun = time.process_time()
    for prefix in (b"", b"[2026-07-30 13:35:11 TP0] "):
        read([READY, prefix + line + b"\n"])
        read([prefix + line + b"\n"])
    assert time.process_time() - begun < 10  # a quadratic search takes minutes


def test_a_failures_line_is_masked() -> None:
    argv = b"launch_server.py: error: unrecognized arguments: --foo --api-key sq7-Ycret.v4lue\n"
    failure = read([b"usage: launch_server.py [-h]\n" + argv]).failure
    assert failure is not None and "--foo" in failure.line and "sq7" not in repr(failure)
