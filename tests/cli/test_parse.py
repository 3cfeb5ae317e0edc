"""``hcs-tui parse``: what a log says, and one line where it says nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_frame import ROOT, hcs_tui

REAL = ROOT / "tests/data/real"
CORPUS = ROOT / "tests/data/corpus"
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
        (bytes(range(256)) * 400, 3, "is binary"),
    ],
    ids=["empty", "blank", "vllm", "binary"],
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


def test_it_loads_no_screen_and_no_ssh() -> None:
    log = str(REAL / "0.5.12_llama.log")
    code = (
        f"import sys; sys.argv[1:] = ['parse', {log!r}]\nfrom tui.cli.main import run\nrun()\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'textual', 'asyncssh', 'rich', 'pydantic'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"
