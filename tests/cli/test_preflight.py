"""What ``check`` says of a host as a whole."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.cli.test_frame import hcs_tui


def test_host_memory_counts_the_servers_that_ask_for_it(tmp_path: Path) -> None:
    servers = {
        "cached": {"port": 1, "args": {"enable-hierarchical-cache": True, "hicache-size": 100_000}},
        "plain": {"port": 2},
    }
    path = tmp_path / "p.yaml"
    hosts = {"here": {"ssh": "local", "python": sys.executable, "state_dir": str(tmp_path / "state")}}
    defaults = {"host": "here", "python": sys.executable, "args": {"model-path": "/m"}}
    path.write_text(json.dumps({"name": "p", "hosts": hosts, "defaults": defaults, "servers": servers}))
    checks = json.loads(hcs_tui("check", str(path), "--json").out)["checks"]
    [memory] = [check for check in checks if check["check"] == "host memory"]
    assert memory["result"] == "fail" and "asked by 1 of 2 servers" in memory["found"]
