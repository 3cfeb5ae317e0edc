"""The demo as a newcomer runs it, at its own pace: three servers ready, one failed, then live throughput."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.report.keeping import kept

ROOT = Path(__file__).parents[2]


def test_the_demo_settles_headless_and_in_a_picture(tmp_path: Path) -> None:
    environ = {**os.environ, "HCS_HOME": str(tmp_path / "side"), "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-m", "tui"]
    out = tmp_path / "demo.json"
    headless = subprocess.Popen([*program, "demo", "--headless", "120"], env=environ, stdout=subprocess.PIPE, text=True)
    picture = [*program, "snapshot", "demo", "--until", "settled", "--out", str(out)]
    assert subprocess.run(picture, env=environ, timeout=150).returncode == 0
    table, _ = headless.communicate(timeout=150)
    assert headless.returncode == 0 and len(re.findall(r"^gpu\d +demo +ready", table, re.M)) == 3

    servers = kept(json.loads(out.read_text())["servers"])
    assert sorted(s["phase"] for s in servers) == ["failed", "ready", "ready", "ready"]
    assert all(s["throughput"]["generate"] > 0 for s in servers if s["phase"] == "ready")
    failed = next(s for s in servers if s["phase"] == "failed")
    assert failed["failure"]["kind"] == "oom_host_hicache" and "150.10 GB" in failed["failure"]["line"]
