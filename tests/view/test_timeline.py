"""The start-up's times: nothing is claimed that no time stamp tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal import ROOT
from tui.fleet.saved import read_log
from tui.view.draw.row import plain
from tui.view.draw.timeline import timeline
from tui.view.glance import glance

HANGS = ROOT / "tests/data/corpus/025-hang-kimi-k2-after-shards.log"
OUT_OF_MEMORY = (
    'Traceback (most recent call last):\n  File "x.py", line 1, in f\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB.\n"
)
LATER = "[2025-12-23 03:12:50 TP0] Using KV cache dtype: torch.bfloat16\n"


@pytest.mark.parametrize(
    ("more", "weights", "total"),
    [
        ("", "? ◐", "total        ?   began 03:12:20"),
        (OUT_OF_MEMORY, "?", "total        ?   began 03:12:20"),
        (LATER, "? ◐", "total        at least 30s"),
        (LATER + OUT_OF_MEMORY, "30s", "total        30s"),
    ],
    ids=["hangs", "failed", "a later line", "failed after a later line"],
)
def test_a_saved_logs_last_stage(more: str, weights: str, total: str, tmp_path: Path) -> None:
    """Progress bars and tracebacks have no time: the stage in which they stand is not over when it began."""
    log = tmp_path / "a.log"
    log.write_bytes(HANGS.read_bytes() + more.encode())
    rows = plain(timeline(glance(read_log(log), 0.0), 60, 12)).splitlines()
    stage = next(row for row in rows if row.startswith("weights"))
    assert stage.rstrip().endswith(weights) and rows[-1].rstrip() == total
