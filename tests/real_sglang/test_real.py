"""Real SGLang on the CPU, from launch to the proof that it is gone, by ``hcs-tui`` alone through a real sshd.

The model is hybrid (attention and Mamba layers) and has HiCache, so both host pools are allocated: the program's own
case.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.host.sshd import Sshd
from tests.ports import free_port
from tests.real_sglang import environment
from tests.real_sglang.driver import PATIENCE, complete, end_all, get, hcs_tui, working_in
from tui.sglang import http

ENVIRONMENT = environment.folder()  # before the tests get a home folder of their own
SERVER = "hybrid"
VERSION = "0.5.23"
ARGS = {
    "device": "cpu",
    "host": "127.0.0.1",
    "mamba-radix-cache-strategy": "no_buffer",
    "disable-overlap-schedule": True,
    "max-mamba-cache-size": 24,
    "max-total-tokens": 2048,
    "enable-hierarchical-cache": True,
    "hicache-size": 1,
    "hicache-io-backend": "direct",
    "hicache-mem-layout": "page_first_direct",
    "enable-metrics": True,
}
KV_HOST = re.compile(r"Allocating kv hierarchical KV host pool: (\d+) tokens, ([\d.]+) GB host memory")
MAMBA_HOST = re.compile(
    r"Allocating ([\d.]+) GB host memory for hierarchical Mamba cache \((\d+) state slots, layout=(\w+)"
)


@dataclass(frozen=True)
class Site:
    """A profile with one server, and the folder on the host that the server works in."""

    profile: str
    folder: Path


@pytest.fixture
def site(tmp_path: Path, sshd: Sshd) -> Iterator[Site]:
    python = environment.ensure(ENVIRONMENT)
    model = tmp_path / "model"
    script = environment.HERE / "make_tiny_model.py"
    environment.run("making the model", [str(python), str(script), str(model)], environment.server_env())
    folder = tmp_path / "work"
    folder.mkdir()
    host = {
        "ssh": sshd.address,
        "identity": sshd.identity,
        "known_hosts": sshd.known_hosts,
        "python": sys.executable,
        "state_dir": str(tmp_path / "state"),
    }
    server = {
        "host": "box",
        "port": free_port(),
        "python": str(python),
        "cwd": str(folder),
        "log": "logs/sglang.log",
        "env": environment.server_env(),
        "ready_timeout": f"{PATIENCE:.0f}s",
        "args": {"model-path": str(model), **ARGS},
    }
    profile = tmp_path / "real.yaml"
    YAML().dump({"name": "real", "hosts": {"box": host}, "servers": {SERVER: server}}, profile)
    yield Site(str(profile), folder)
    end_all(folder)


@pytest.mark.sshd
@pytest.mark.timeout(4 * PATIENCE)
def test_a_real_server_from_launch_to_the_proof_that_it_is_gone(site: Site) -> None:
    launched = launch(site)
    log = check_log(site)
    check_pools(status(site), log)
    check_serving(site, launched["url"])
    check_endpoints(launched["url"])
    relaunched = relaunch(site, launched)
    check_silent(site, relaunched["url"])
    end(site, launched, relaunched)


def status(site: Site) -> dict[str, Any]:
    answer = hcs_tui("status", site.profile, "--json")
    assert answer.code == 0, answer
    document = answer.json
    assert document["profile"] == "real"
    report: dict[str, Any] = document["servers"][0]
    return report


def launch(site: Site) -> dict[str, Any]:
    """``up`` waits until the server is ready, and leaves it running."""
    answer = hcs_tui("up", site.profile, "--json")
    assert answer.code == 0, answer
    last = answer.events[-1]
    assert last["event"] == "summary", answer
    report: dict[str, Any] = last["servers"][0]
    assert (report["phase"], report["stage"], report["failure"]) == ("ready", "ready", None), answer
    stages = [entry["stage"] for entry in report["stages"]]
    assert {"loading_weights", "kv_cache", "mamba_cache", "host_cache", "warmup", "ready"} <= set(stages), stages
    assert len(working_in(site.folder)) >= 3, "the server, its scheduler and its detokenizer"
    again = hcs_tui("up", site.profile, "--json")
    assert again.code == 0, again
    assert again.events[-1]["servers"][0]["run"] == report["run"], "a server that runs is never started twice"
    return report


def check_log(site: Site) -> str:
    """``logs`` prints the log that the profile's ``log:`` leads to on the host."""
    answer = hcs_tui("logs", site.profile, SERVER)
    assert answer.code == 0, answer
    assert answer.out.count("The server is fired up and ready to roll!") == 1
    kept = (site.folder / "logs" / "sglang.log").read_text(errors="replace")
    assert "ready to roll" in kept
    tail = hcs_tui("logs", site.profile, SERVER, "-n", "1")
    assert tail.out.count("\n") == 1, tail
    return answer.out


def check_pools(report: dict[str, Any], log: str) -> None:
    """What the report says of the caches is what SGLang printed."""
    kv, mamba = KV_HOST.search(log), MAMBA_HOST.search(log)
    assert kv, log[-4000:]
    assert mamba, log[-4000:]
    pools = {(pool["place"], pool["kind"]): pool for pool in report["pools"]}
    assert set(pools) == {("device", "KV"), ("device", "Mamba"), ("host", "KV"), ("host", "Mamba")}
    host_kv, host_mamba = pools["host", "KV"], pools["host", "Mamba"]
    assert (host_kv["tokens"], host_kv["gb"], host_kv["unit"]) == (int(kv[1]), float(kv[2]), "GB")
    assert (host_mamba["gb"], host_mamba["unit"]) == (float(mamba[1]), "GB")
    assert (host_mamba["slots"], host_mamba["layout"]) == (int(mamba[2]), mamba[3])
    assert host_kv["gb"] > 0 and host_mamba["gb"] > 0
    assert pools["device", "KV"]["tokens"] == ARGS["max-total-tokens"]
    assert pools["device", "Mamba"]["slots"] == ARGS["max-mamba-cache-size"]
    assert report["max_total_num_tokens"] == ARGS["max-total-tokens"]
    assert report["context_len"] == 4096


def check_serving(site: Site, url: str) -> None:
    """The server answers, and its throughput is seen soon after."""
    answer = complete(url, tokens=300)
    assert answer["usage"]["completion_tokens"] == 300
    deadline = time.monotonic() + 60
    while (report := status(site))["throughput"]["generate"] is None and time.monotonic() < deadline:
        complete(url, tokens=300)  # the pace of this loop is the server's own
    assert report["throughput"]["generate"] > 0, report
    assert report["phase"] == "ready"
    assert report["sglang_version"] == VERSION
    assert report["max_total_num_tokens"] == ARGS["max-total-tokens"]
    assert report["context_len"] == 4096


def check_silent(site: Site, url: str) -> None:
    """Of a server whose log tells nothing, work is seen by HTTP while it is done."""
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(complete, url, 1500)
        seen = [status(site)]
        while not answer.done():  # the pace of this loop is that of the status command
            seen.append(status(site))
    assert answer.result()["usage"]["completion_tokens"] == 1500
    busy = [report for report in seen if report["requests"]["running"] == 1]
    assert any(report["throughput"]["generate"] for report in busy), [report["throughput"] for report in seen]
    last = seen[-1]
    assert (last["phase"], last["sglang_version"], last["max_running_requests"]) == ("ready", VERSION, 4)
    assert (last["max_total_num_tokens"], last["context_len"]) == (ARGS["max-total-tokens"], 4096)


def check_endpoints(url: str) -> None:
    """What the real server answers is read, and its counters are those of the tokens that it generated."""
    bodies = {path: get(url, path) for path in ("/metrics", "/v1/loads", "/server_info", "/model_info", "/v1/models")}
    readings = {path: http.read(path, body, 0.0) for path, body in bodies.items()}
    metrics, loads, info = readings["/metrics"], readings["/v1/loads"], readings["/server_info"]
    assert metrics and loads and info
    assert metrics.generated is not None and metrics.generated >= 300, bodies["/metrics"][-4000:]
    assert loads.generated is not None and 0.8 <= loads.generated / metrics.generated <= 1.2, bodies["/v1/loads"]
    assert (loads.facts.version, info.facts.version) == (VERSION, VERSION)
    assert info.facts.max_total_num_tokens == loads.facts.max_total_num_tokens == ARGS["max-total-tokens"]
    assert info.sample.generate is not None and info.sample.generate > 0
    assert (metrics.sample.running, loads.sample.running, loads.sample.queued) == (0, 0, 0)
    assert http.model_facts("/v1/models", bodies["/v1/models"]).context_len == 4096
    assert http.model_facts("/model_info", bodies["/model_info"]).model
    assert get(url, "/ready") is not None


def relaunch(site: Site, before: dict[str, Any]) -> dict[str, Any]:
    """``relaunch`` with changed flags: the old processes are gone, the new run has them. Its log tells next to nothing:
    all that is known comes by HTTP."""
    old = working_in(site.folder)
    changes = ("--set", "max-running-requests=4", "--set", "log-level=warning")
    answer = hcs_tui("relaunch", site.profile, SERVER, *changes, "--json")
    assert answer.code == 0, answer
    report: dict[str, Any] = answer.events[-1]["servers"][0]
    assert report["phase"] == "ready", answer
    assert report["run"] != before["run"]
    assert report["max_running_requests"] == 4
    assert not old & working_in(site.folder), "processes of the first run are left"
    assert "ready to roll" not in (site.folder / "logs" / "sglang.log").read_text(errors="replace")
    return report


def end(site: Site, first: dict[str, Any], report: dict[str, Any]) -> None:
    """``down`` ends everything, says so, and is right."""
    answer = hcs_tui("down", site.profile, "--json")
    assert answer.code == 0, answer
    assert next(event for event in answer.events if event["event"] == "down")["ok"], answer
    assert not working_in(site.folder), answer
    with pytest.raises(OSError):
        complete(report["url"], tokens=1)
    after = status(site)
    assert (after["phase"], after["failure"]) == ("stopped", None), after
    log = hcs_tui("parse", first["log"], "--json")
    assert log.code == 0, log
    assert log.json["phase"] == "stopped"
