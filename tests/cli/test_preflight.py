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


def test_an_argument_that_linux_refuses_is_told_before_a_launch_and_by_it(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    host = {"ssh": "local", "python": sys.executable, "state_dir": str(tmp_path / "state")}
    server = {"host": "here", "command": ["/bin/echo", "x" * 200_000], "port": 30000}
    path.write_text(json.dumps({"name": "p", "hosts": {"here": host}, "servers": {"a": server}}))
    told = hcs_tui("check", str(path), "--offline")
    assert told.code == 1 and "argument 1 has 200000 bytes, and Linux takes at most 131071 in one" in told.out
    launched = hcs_tui("up", str(path))
    assert launched.code == 1 and "Argument list too long" in launched.err
    assert "give what is long in a file" in launched.err and "permissions" not in launched.err
