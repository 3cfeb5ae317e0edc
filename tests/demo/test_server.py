"""A simulated server as processes: its ends, its signals, its children."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.demo.running import SECONDS, Running, running
from tests.waiting import until

VERSIONS = ("0.4.9.post6", "0.5.3", "0.5.9", "0.5.12", "0.5.16", "0.5.20", "0.5.23")


@pytest.mark.parametrize(
    ("version", "scenario"), [*((version, "hicache") for version in VERSIONS), ("0.5.12", "mtp"), ("0.5.23", "mtp")]
)
def test_becomes_ready(version: str, scenario: str) -> None:
    with running("--sglang-version", version, "--scenario", scenario) as server:
        log = server.ready()
    assert log.index("Load weight end") < log.index("Memory pool end") < log.index("Uvicorn running on")
    assert '"POST /generate HTTP/1.1" 200 OK' in log


@pytest.mark.parametrize(("version", "status"), [("0.5.12", -9), ("0.5.18", -9), ("0.5.19", 0), ("0.5.23", 0)])
def test_sigterm_drains_and_ends_as_the_release_does(version: str, status: int) -> None:
    with running("--sglang-version", version) as server:
        server.ready()
        server.process.terminate()
        assert server.end() == status
        assert "SIGTERM received. signum=None frame=None. Draining" in server.log
        assert re.search("emaining number of requests 0", server.log)


def test_a_draining_server_answers_what_it_has_and_says_so() -> None:
    with running("--sglang-version", "0.5.23") as server:
        server.ready()
        script = "import sys, urllib.request as web; print(web.urlopen(sys.argv[1], sys.argv[2].encode()).status)"
        url, body = f"http://127.0.0.1:{server.port}/v1/completions", '{"prompt": "long", "max_tokens": 60}'
        asking = subprocess.Popen([sys.executable, "-c", script, url, body], stdout=subprocess.PIPE)
        server.read_until("Decode batch")
        server.process.terminate()
        assert server.end() == 0
        assert asking.communicate(timeout=SECONDS)[0] == b"200\n"
        assert re.search("Remaining number of requests 1. Remaining requests remaining_rids=", server.log)


def test_sigterm_before_the_first_request_is_uvicorns() -> None:
    with running("--skip-server-warmup") as server:
        server.ready()
        server.process.terminate()
        assert server.end() == 0
        assert "Shutting down" in server.log
        assert "SIGTERM received" not in server.log


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGQUIT, -9), (signal.SIGKILL, -9)])
def test_other_signals_while_serving(number: int, status: int) -> None:
    with running() as server:
        server.ready()
        server.process.send_signal(number)
        assert server.end() == status  # the log ends when the last child is gone


def test_sigterm_while_loading_ends_everything_at_once() -> None:
    with running("--scenario", "hang-nccl") as server:
        server.read_until("Init torch distributed begin")
        until(lambda: set(server.children()) == {"sglang::schedul", "sglang::detoken"})
        server.process.terminate()
        assert server.end() == -signal.SIGTERM


@pytest.mark.parametrize("child", ["sglang::schedul", "sglang::detoken"])
def test_a_child_killed_while_serving_ends_the_tree(child: str) -> None:
    with running("--sglang-version", "0.5.12") as server:
        server.ready()
        os.kill(server.children()[child], signal.SIGKILL)
        assert server.end() == -9
        assert re.search(r"Subprocess \w+ \(pid=\d+\) crashed with exit code -9. Triggering SIGQUIT", server.log)


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("0.5.9", "Rank 0 scheduler is dead. Please check if there are relevant logs."),
        ("0.5.12", "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9)."),
    ],
)
def test_a_scheduler_killed_while_loading(version: str, text: str) -> None:
    with running("--sglang-version", version, "--scenario", "hang-nccl") as server:
        server.read_until("Init torch distributed begin")
        os.kill(server.children()["sglang::schedul"], signal.SIGKILL)
        assert server.end() == 1
        assert text in server.log
        assert "EOFError" in server.log


@pytest.mark.parametrize(
    ("scenario", "status", "last"),
    [
        ("host-memory", -9, "Requesting 150.10 GB but only have 48.20 GB free"),
        ("gpu-memory", -9, "Not enough memory. Please try to increase --mem-fraction-static."),
        ("child-death", 1, "scheduler died during initialization"),
    ],
)
def test_scenarios_that_fail(scenario: str, status: int, last: str) -> None:
    with running("--scenario", scenario) as server:
        assert server.end() == status
        assert last in server.log
        assert "ready to roll" not in server.log


def test_a_silent_death_says_nothing() -> None:
    with running("--scenario", "silent-death") as server:
        assert server.end() == -9
        assert server.log.rstrip().splitlines()[-1].endswith("hierarchical Mamba cache (layout=layer_first).")


@pytest.mark.parametrize(
    ("scenario", "last"), [("hang", "hierarchical Mamba cache"), ("hang-nccl", "Init torch distributed begin")]
)
def test_a_hang_stays(scenario: str, last: str) -> None:
    with running("--scenario", scenario) as server:
        server.read_until(last)
        stays_silent(server)


def test_a_taken_port_is_told_after_the_load_and_the_process_stays_whatever_it_is_asked() -> None:
    with running("--scenario", "port-taken") as server:
        log = server.read_until(r"ERROR: +\[Errno 98\] error while attempting to bind on address \('127.0.0.1', \d+\)")
        assert "Memory pool end" in log
        server.read_until("Waiting for application shutdown")
        server.process.terminate()
        stays_silent(server)


def test_a_port_that_somebody_else_has_is_found_taken() -> None:
    with running("--skip-server-warmup") as first:
        first.ready()
        with running("--port", str(first.port)) as second:
            second.read_until("Errno 98")


def stays_silent(server: Running) -> None:
    """The server lives and prints nothing more: its log stays empty for half a second, in which at this speed one that
    did not hang would be ready. No event would come after it."""
    import select

    assert server.process.stdout is not None
    assert not select.select([server.process.stdout], [], [], 0.5)[0]
    assert server.process.poll() is None


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["--hierarchical-cache-limit", "150"], "error: unrecognized arguments: --hierarchical-cache-limit 150"),
        (["--hicache-size", "0.5"], "error: argument --hicache-size: invalid int value: '0.5'"),
        (["--scenario", "nonsense"], "error: argument --scenario: invalid choice: 'nonsense'"),
        (["--sglang-version", "main"], "error: argument --sglang-version"),
    ],
)
def test_wrong_arguments_end_with_status_2(argv: list[str], text: str) -> None:
    with running(*argv) as server:
        assert server.end() == 2
        assert server.log.startswith("usage: launch_server.py")
        assert text in server.log


def test_flags_are_shown_as_they_were_given() -> None:
    with running("--model-path", "/models/x", "--hicache-size", "30", "--enable-hierarchical-cache") as server:
        log = server.read_until("hierarchical KV cache")
    assert "model_path='/models/x'" in log
    assert "hicache_size=30" in log
    assert "Allocating 30.00 GB host memory for hierarchical KV cache." in log


@pytest.mark.parametrize(("scenario", "text"), [("plain", ""), ("host-memory", "Scheduler hit an exception")])
def test_at_level_warning_only_what_goes_wrong_is_said(scenario: str, text: str) -> None:
    with running("--scenario", scenario, "--log-level", "warning", "--sglang-version", "0.5.9") as server:
        if text:
            server.read_until(text)
        else:
            ready_by_http(server)
        assert "Load weight" not in server.log and "ready to roll" not in server.log


def ready_by_http(server: Running) -> None:
    def answers() -> bool:
        try:
            return server.ask("GET", "/model_info")[0] == 200
        except ConnectionError:
            return False

    until(answers)


def test_two_ranks_are_two_schedulers_with_prefixes() -> None:
    with running("--tp-size", "2") as server:
        log = server.ready()
    assert "TP0] Load weight begin" in log
    assert "TP1] Load weight begin" in log
    assert "TP1] max_total_num_tokens" not in log


def test_pinning_takes_real_memory_and_little_of_it() -> None:
    with running("--scenario", "hang", "--reserve-mb", "32") as server:
        server.read_until("hierarchical Mamba cache")
        status = Path(f"/proc/{server.children()['sglang::schedul']}/status")
        until(lambda: 20_000 < _anonymous_kb(status) < 64_000)  # 24 of the 32 MB come before it hangs


def _anonymous_kb(status: Path) -> int:
    found = re.search(r"RssAnon:\s+(\d+)", status.read_text())
    assert found
    return int(found[1])


def test_a_server_does_not_outlive_the_demos_host(monkeypatch: pytest.MonkeyPatch) -> None:
    host = subprocess.Popen(["sleep", "300"])
    monkeypatch.setenv("HCS_DEMO_HOST_PID", str(host.pid))
    with running() as server:
        server.ready()
        host.kill()
        host.wait(SECONDS)
        assert server.end() == -9


def test_starting_is_quick_to_import() -> None:
    code = "import sys; import tui.demo.server; print('asyncio' in sys.modules or 'asyncssh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"False\n"
