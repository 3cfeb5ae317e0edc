"""States in words: golden texts for a fleet with every situation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.states import NOW, fleet, server
from tui.report.events import heartbeat_text
from tui.report.restarts import restart_remarks
from tui.report.server import server_text
from tui.report.text import status_table
from tui.report.units import iso, iso_local, number, percent, span
from tui.sglang.restarts import Restarts

STATUS = """\
SERVER  HOST  STATE          FOR  TOK/S  RUN  QUEUE   KV  MAMBA   PORT
gpu1    box   ready       48m20s    409   48     12  81%    62%  30001
gpu2    box   host cache  50m03s                                 30002
gpu3    box   failed                                             30003
gpu4    box   absent                                             30004
gpu5    box   stopped                                            30005
gpu6    box   ready !     48m20s    409   48     12  81%    62%  30006
6 servers: 1 absent, 1 starting, 2 ready, 1 stopped, 1 failed; 819 tok/s
gpu3: 150.10 GB of host memory asked for the Mamba pool after 150.00 GB for KV;
    48.2 GB were left
    line 640: ValueError: Not enough host memory available. Requesting 150.10 GB
        but only have 48.20 GB free. Please reduce the size of the hierarchical
        cache.
    -> --hicache-size 98 or less fits
    -> from SGLang 0.5.17 on the size is shared between the two pools
gpu6: host unreachable for 2m10s: connection lost
gpu6: already runs with other flags: --hicache-size 98"""

READY = """\
gpu1: ready
  SGLang 0.5.12, model /models/Q, 812 lines

STAGE             TOOK
launching         3.0s
loading weights    21s
host cache       1m01s
ready

CACHE        PER RANK  RANKS  PARTS            TOKENS  SLOTS  LAYOUT
device KV    9.02 GiB      1  k 4.51 + v 4.51  147456
host KV     150.00 GB      1
host Mamba  150.10 GB      1                              48  layer_first
host total 300.10 GB, all ranks

max_total_num_tokens 147456, max_running_requests 9, context_len 262144

generates 409 tok/s, prefills 1 200 tok/s, 48 running, 12 queued, KV 81%, Mamba
    62%, accept length 2.71"""


def test_servers_of_a_host_that_never_answered_are_not_counted_as_absent() -> None:
    absent = next(state for state in fleet() if state.run is None)
    unknown = replace(absent, unreachable_since=NOW - 5, unreachable_why="no route")
    assert "3 servers: 1 absent, 2 unknown" in status_table([absent, unknown, unknown], NOW)


def test_status_fits_80_columns() -> None:
    states = fleet()
    states[1] = replace(states[1], info=replace(states[1].info, ready_timeout=7200.0))
    assert status_table(states, NOW) == STATUS


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (70, "SERVER HOST STATE FOR TOK/S RUN QUEUE KV MAMBA PORT"),
        (60, "SERVER HOST STATE FOR TOK/S RUN QUEUE KV MAMBA"),
        (50, "SERVER HOST STATE TOK/S RUN QUEUE KV"),
        (40, "SERVER STATE TOK/S RUN QUEUE KV"),
        (10, "SERVER STATE"),
    ],
)
def test_narrow_tables_drop_columns_in_order(width: int, titles: str) -> None:
    states = fleet()[:1] + fleet()[2:]
    assert status_table(states, NOW, width).splitlines()[0].split() == titles.split()


def test_long_names_are_cut_and_nothing_is_wider_than_80() -> None:
    state = server(0)
    state = replace(state, info=replace(state.info, name="n" * 64, host="h" * 64))
    lines = status_table([state], NOW).splitlines()
    assert lines[1].startswith("n" * 17 + "...  " + "h" * 11 + "...")
    assert max(map(len, lines)) <= 80


def test_no_servers() -> None:
    assert status_table([], NOW) == "no servers"


def test_one_server_in_words() -> None:
    assert server_text(fleet()[0], NOW) == READY


def test_a_failed_server_in_words() -> None:
    text = server_text(fleet()[2], NOW)
    assert text.startswith("gpu3: failed at host cache (oom_host_hicache)\n")
    assert "    -> --hicache-size 98 or less fits\n" in text


def test_heartbeat() -> None:
    text, details = heartbeat_text(fleet()[1], NOW)
    assert text.startswith("host cache  for 1m32s  92 GB pinned  missing TP1  | Allocating 150.10 GB host memory")
    assert (details["stage"], details["seconds"], details["pinned_gb"]) == ("host_cache", 92.0, 92.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0s"), (9.94, "9.9s"), (9.96, "10s"), (59.4, "59s"), (59.6, "1m00s"), (161, "2m41s"), (3599.7, "1h00"),
     (3720, "1h02"), (86399.9, "1d00h"), (277200, "3d05h"), (-1, "0s")],
)  # fmt: skip
def test_spans(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_numbers_and_times() -> None:
    assert [number(value) for value in (None, 0, 0.184, 4.5, 62.04, 409.37, 12400)] == [
        *("", "0", "0.18", "4.5", "62", "409", "12 400"),
    ]
    assert (percent(None), percent(0.805)) == ("", "80%")
    assert iso(NOW, 7200) == "2026-05-28T22:26:40+02:00"
    assert iso_local(NOW + 7200, 7200) == "2026-05-28T22:26:40+02:00"
    assert iso_local(NOW + 7200.5, None) == "2026-05-28T22:26:40.500"


def test_a_host_that_was_lost_just_now_is_not_lost_for_no_time() -> None:
    lost = replace(server(6), unreachable_since=NOW - 0.02, unreachable_why="no route")
    assert "host unreachable: no route" in status_table([lost], NOW)


def test_a_restart_by_another_session_and_one_that_was_given_up() -> None:
    waits = Restarts(
        "on-failure", "ann@laptop (pid 7)", count=1, limit=5, pending=True, next_at=NOW + 12.0, why="crash"
    )
    state = replace(server(6), restarts=waits)
    assert restart_remarks(state, NOW)[0] == "restart 2 of 5 in 12s, by ann@laptop (pid 7), since it ended: crash"
    over = replace(
        state, restarts=replace(waits, count=5, pending=False, next_at=None, why="given up after 5 restarts")
    )
    given_up, promise = restart_remarks(over, NOW)
    assert given_up == "given up after 5 restarts"
    assert promise == "once it is launched again, restarts on failure, by ann@laptop (pid 7), 5 so far"
