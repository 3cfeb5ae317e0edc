"""Servers whose logs tell nothing: known by process, port and HTTP, with no trace of their keys."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.fleet.rig import DEADLINE, profile, reach, running
from tests.ports import free_port
from tui.fleet import probe
from tui.fleet.api import Launch
from tui.fleet.translate import server_info
from tui.profile.load import loads
from tui.profile.model import Profile
from tui.report.json import report
from tui.sglang import verdict
from tui.sglang.events import HttpRead, Launched
from tui.sglang.model import Phase, RunInfo, ServerInfo
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

KEY = "sk-very-secret"
# A server of SGLang 0.5.12 without metrics and with a log format of its own; it writes down what it is asked.
SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

port, asked, key = int(sys.argv[1]), sys.argv[2], sys.argv[4] if len(sys.argv) > 4 else "nobody knows it"
ANSWERS = {
    "/model_info": {"model_path": "/models/tiny"},
    "/server_info": {"version": "0.5.12", "model_path": "/models/tiny", "api_key": key, "admin_api_key": key,
                     "max_total_num_tokens": 4096,
                     "internal_states": [{"api_key": key, "last_gen_throughput": 123.5}]},
    "/v1/loads": {"version": "0.5.12", "loads": [{"dp_rank": 0, "num_running_reqs": 3, "num_waiting_reqs": 1,
                  "token_usage": 0.25, "gen_throughput": 0.0, "max_running_requests": 48}]},
    "/v1/models": {"data": [{"id": "tiny", "max_model_len": 8192}]},
}

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        with open(asked, "a") as file:
            file.write(self.path + "\\n")
        known = self.headers.get("Authorization") == "Bearer " + key
        body = json.dumps(ANSWERS.get(self.path, {})).encode()
        self.send_response((200 if self.path in ANSWERS else 404) if known else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        print(json.dumps({"level": "info", "event": "answered", "path": self.path}), flush=True)

print(json.dumps({"level": "info", "event": "starting"}), flush=True)
ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def own_format(folder: Path, *flags: str) -> Profile:
    """A profile with that server."""
    program, port = folder / "server.py", free_port()
    program.write_text(SERVER)
    command = [sys.executable, str(program), "{port}", str(folder / "asked"), *flags]
    text = {
        "name": "rig",
        "hosts": {"here": {"ssh": "local", "python": sys.executable, "state_dir": str(folder / "state")}},
        "defaults": {"stop_grace": "5s"},
        "servers": {"gpu0": {"host": "here", "command": command, "port": port, "gpus": [0]}},
    }
    return loads(json.dumps(text))


def everything_written(folder: Path) -> bytes:
    """All that this side and the host's side keep."""
    kept = [path for name in ("spool", "history", "state") for path in (folder / name).rglob("*") if path.is_file()]
    assert kept
    return b"".join(path.read_bytes() for path in kept)


async def test_a_server_that_logs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PROBE_SECONDS", 0.2)
    flags = ("--log-level", "warning", "--enable-metrics")
    async with running(profile(tmp_path, ["plain"], flags=flags), tmp_path) as fleet:
        assert (await fleet.act(Launch("gpu0"))).ok
        await reach(fleet, "gpu0", Phase.READY)
        supervisor = fleet.supervisors["gpu0"]
        assert supervisor.state.log.latest is None and supervisor.state.log.ready is False
        assert await fleet.until(lambda: supervisor.state.http is not None, DEADLINE)
        told = report(supervisor.state, supervisor.now)
        assert told["phase"] == told["stage"] == "ready"
        requests = told["requests"]
        assert isinstance(requests, dict) and requests["running"] is not None
        assert told["max_total_num_tokens"] and told["context_len"] and told["sglang_version"]


async def test_a_server_with_a_format_of_its_own_and_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PROBE_SECONDS", 0.2)
    asked = tmp_path / "asked"
    async with running(own_format(tmp_path, "--api-key", KEY), tmp_path) as fleet:
        assert (await fleet.act(Launch("gpu0"))).ok
        await reach(fleet, "gpu0", Phase.READY)
        supervisor = fleet.supervisors["gpu0"]
        assert await fleet.until(lambda: asked.read_text().count("/server_info") >= 3, DEADLINE)
        assert await fleet.until(lambda: supervisor.state.http is not None, DEADLINE)
        state = supervisor.state
        told = report(state, supervisor.now)
        assert (told["sglang_version"], told["max_total_num_tokens"], told["context_len"]) == ("0.5.12", 4096, 8192)
        rates = verdict.throughput(state, supervisor.now)
        assert (rates.generate, rates.stale) == (123.5, False)
        assert (told["requests"], told["max_running_requests"]) == ({"running": 3, "queued": 1}, 48)
        assert KEY not in repr(state) and KEY not in json.dumps(told)
    paths = asked.read_text().split()
    once = {"/metrics", "/ready", "/v1/models"}
    assert {path: paths.count(path) for path in once} == dict.fromkeys(once, 1), "what is not there is asked for once"
    assert set(paths) == once | {"/model_info", "/v1/loads", "/server_info"}, "no health, nothing deprecated"
    assert KEY.encode() not in everything_written(tmp_path)


async def test_without_its_key_a_server_is_not_taken_for_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PROBE_SECONDS", 0.2)
    async with running(own_format(tmp_path), tmp_path) as fleet:
        assert (await fleet.act(Launch("gpu0"))).ok
        supervisor = fleet.supervisors["gpu0"]
        assert await fleet.until(lambda: any("key" in note for note in supervisor.state.notes), DEADLINE)
        assert verdict.phase(supervisor.state) is Phase.STARTING
        assert supervisor.state.listening == "own"
    assert set((tmp_path / "asked").read_text().split()) == {"/ready"}


async def test_a_server_too_busy_to_answer_stays_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PROBE_SECONDS", 0.2)
    answers: list[bool | None] = []
    async with running(own_format(tmp_path, "--api-key", KEY), tmp_path) as fleet:
        assert (await fleet.act(Launch("gpu0"))).ok
        await reach(fleet, "gpu0", Phase.READY)
        fleet.listeners.append(
            lambda _s, _b, event: answers.append(event.ready) if isinstance(event, HttpRead) else None
        )
        state = fleet.supervisors["gpu0"].state
        assert state.run is not None and state.run.pid is not None
        os.kill(state.run.pid, signal.SIGSTOP)
        try:
            assert await fleet.until(lambda: None in answers, DEADLINE)
            assert verdict.phase(fleet.supervisors["gpu0"].state) is Phase.READY
        finally:
            os.kill(state.run.pid, signal.SIGCONT)


def test_http_is_rare() -> None:
    assert probe.PROBE_SECONDS >= 10.0


@pytest.mark.parametrize(("version", "planned"), [(None, 300.0), ("0.5.16", 300.0), ("0.5.17", 150.0)])
def test_what_a_launch_plans_depends_on_its_release(version: str | None, planned: float) -> None:
    args = {"model-path": "/models/Qwen3-Next-80B", "enable-hierarchical-cache": True, "hicache-size": 150}
    text = {"name": "p", "servers": {"one": {"host": "local", "python": "python3", "port": 30000, "args": args}}}
    info = server_info(loads(json.dumps(text)).server("one"), version)
    assert info.planned_host_gb == planned
    state = reduce(ServerState(ServerInfo("one")), Launched(1.0, RunInfo("r", 1, 1.0, (), "/log"), (), info))
    assert state.info == info


SHORT = """
import sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

tokens = 0

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        text = 'sglang:realtime_tokens_total{mode="decode",tp_rank="0"} %d\\n' % tokens
        body = text.encode() if self.path == "/metrics" else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass

server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(time.strftime("[%Y-%m-%d %H:%M:%S] Load weight begin. avail mem=78.41 GB"), flush=True)
print(time.strftime("[%Y-%m-%d %H:%M:%S] The server is fired up and ready to roll!"), flush=True)
while True:
    time.sleep(0.1)
    tokens += 30
    print(time.strftime("[%Y-%m-%d %H:%M:%S] Prefill batch, #new-seq: 1, #new-token: 500, #cached-token: 0, ")
          + "token usage: 0.04, #running-req: 1, #queue-req: 2", flush=True)
"""


async def test_short_answers_print_no_rate_but_have_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log comes first: what it tells is shown, and only what it does not tell is asked for."""
    monkeypatch.setattr(probe, "PROBE_SECONDS", 0.5)
    made = own_format(tmp_path)
    (tmp_path / "server.py").write_text(SHORT)
    async with running(made, tmp_path) as fleet:
        assert (await fleet.act(Launch("gpu0"))).ok
        await reach(fleet, "gpu0", Phase.READY)
        supervisor = fleet.supervisors["gpu0"]

        def rate() -> float:
            return verdict.throughput(supervisor.state, supervisor.now).generate or 0.0

        assert await fleet.until(lambda: rate() > 0, DEADLINE)
        told = report(supervisor.state, supervisor.now)
        assert (told["requests"], told["usage"]) == (
            {"running": 1, "queued": 2},
            {"kv": 0.04, "mamba": None, "swa": None},
        )
        assert supervisor.state.http_ready is None, "the log says that it is ready"
