"""``hcs-tui parse``: what a log says, and one line where it says nothing."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_frame import ROOT, hcs_tui

REAL = ROOT / "tests/data/real"
CORPUS = ROOT / "tests/data/corpus"
VLLM_FAILED = """
ERROR 11-30 03:00:20 [core.py:396]   File "/usr/lib/vllm/v1/engine/core.py", line 387, in run_engine_core
ERROR 11-30 03:00:20 [core.py:396] ValueError: No available memory for the cache blocks.
"""
VLLM = """\
INFO 06-01 10:00:00 [api_server.py:1043] vLLM API server version 0.9.0
INFO 06-01 10:00:05 [core.py:58] Initializing a V1 LLM engine (v0.9.0) with config: model='/m'
Loading safetensors checkpoint shards: 100% Completed | 4/4 [00:01<00:00,  2.41it/s]
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB.
"""


@pytest.mark.parametrize(
    ("log", "code", "phase"),
    [
        (REAL / "0.5.12_llama.log", 0, None),
        (REAL / "0.5.23_fail_bad_flag.log", 1, "failed"),
        (CORPUS / "004-mamba-kv-ready-tp2-qwen35-cpu-experts.log", 0, "ready"),
        (CORPUS / "025-hang-kimi-k2-after-shards.log", 3, "starting"),
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else None,
)
def test_exit_codes(log: Path, code: int, phase: str | None) -> None:
    ran = hcs_tui("parse", str(log), "--json")
    answer = json.loads(ran.out)
    assert (ran.code, ran.err) == (code, "")
    assert answer["phase"] in ("ready", "stopped") if phase is None else answer["phase"] == phase
    assert answer["name"] == log.stem
    assert answer["log"] == str(log)


def test_stdin_says_the_same() -> None:
    log = CORPUS / "004-mamba-kv-ready-tp2-qwen35-cpu-experts.log"
    by_file = json.loads(hcs_tui("parse", str(log), "--json").out)
    by_pipe = json.loads(hcs_tui("parse", "-", "--json", stdin=log.read_text()).out)
    assert by_pipe == {**by_file, "name": "stdin", "log": None}


def test_words() -> None:
    ran = hcs_tui("parse", str(CORPUS / "004-mamba-kv-ready-tp2-qwen35-cpu-experts.log"))
    assert ran.code == 0
    assert "device KV" in ran.out
    assert "541816" in ran.out


@pytest.mark.parametrize(
    ("data", "code", "said"),
    [
        (b"", 3, "is empty"),
        (b" \n\n", 3, "is empty"),
        (VLLM.encode(), 3, "is a log of vLLM"),
        (VLLM_FAILED.encode(), 3, "is a log of vLLM"),
        (bytes(range(256)) * 400, 3, "is binary"),
        (gzip.compress(b"[2026-01-01 00:00:00] sglang"), 3, "is compressed; read it by `zcat "),
        ("[2026-01-01 00:00:00] sglang".encode("utf-16"), 3, "is in UTF-16; read it by `iconv "),
    ],
    ids=["empty", "blank", "vllm", "vllm failed", "binary", "gzip", "utf-16"],
)
def test_no_log_of_sglang(data: bytes, code: int, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(data)
    ran = hcs_tui("parse", str(path), "--json")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (code, "", 1)
    assert ran.err.startswith(f"{path}: {said}")


def test_no_file(tmp_path: Path) -> None:
    for path, said in ((tmp_path, "is a directory"), (tmp_path / "none.log", "no such file")):
        ran = hcs_tui("parse", str(path))
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"{path}: {said}")


OTHERS = {
    "vLLM": "INFO 07-30 13:35:00 [api_server.py:1] vLLM API server version 0.9",
    "TGI": "2024-05-01T10:00:00.000000Z  INFO text_generation_launcher: Args {",
    "llama.cpp": "llama_model_loader: loaded meta data with 26 key-value pairs",
    "TensorRT-LLM": "[TensorRT-LLM] TensorRT-LLM version: 0.15",
}


@pytest.mark.parametrize("command", ["parse {}", "replay {}", "snapshot {} --out {}.json"])
@pytest.mark.parametrize("engine", OTHERS)
def test_logs_of_other_engines(command: str, engine: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(OTHERS[engine] + "\n")
    ran = hcs_tui(*command.replace("{}", str(path)).split())
    assert (ran.code, ran.out) == (3 if command.startswith("parse") else 2, "")
    assert ran.err == f"{path}: is a log of {engine}; only SGLang's are understood\n"


@pytest.mark.parametrize(
    "command",
    ["parse {}", "replay {}", "snapshot {} --out x.txt", "check {}", "check {} --offline", "up {}", "import {}"],
)
def test_what_is_no_file_is_said_and_not_waited_for(command: str, tmp_path: Path) -> None:
    """A pipe that nobody writes to, and a device without an end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, said in ((str(pipe), "is a pipe"), ("/dev/zero", "is a device")):
        ran = hcs_tui(*command.replace("{}", path).split())
        assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1), ran
        assert f"{path}: " in ran.err and said in ran.err


def test_a_shells_pipe_is_read() -> None:
    log = REAL / "0.5.12_llama.log"
    command = f"{sys.executable} -m tui parse --json <(cat {log})"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["sglang_version"] == "0.5.12"


def test_a_text_that_no_server_wrote(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("hello world\n")
    ran = hcs_tui("parse", str(path))
    assert (ran.code, ran.out, ran.err) == (3, "", f"{path}: nothing in it is told by SGLang\n")


def test_a_closed_standard_output_is_no_mistake_of_ours() -> None:
    log = REAL / "0.5.12_llama.log"
    command = f"{sys.executable} -m tui parse {log} >&-"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_standard_input_is_said() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m tui parse - <&-"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "-: standard input is closed\n")


@pytest.mark.parametrize("text", ["", "  ", "python -m sglang.launch_server --model-path x --port"])
def test_import_says_what_is_wrong(text: str) -> None:
    ran = hcs_tui("import", text)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert "is empty" in ran.err or "--port has no number" in ran.err


def test_it_loads_no_screen_and_no_ssh() -> None:
    log = str(REAL / "0.5.12_llama.log")
    code = (
        f"import sys; sys.argv[1:] = ['parse', {log!r}]\nfrom tui.cli.main import run\nrun()\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'textual', 'asyncssh', 'rich', 'pydantic'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"
