"""No secret leaves a line, and nothing else is touched."""

from __future__ import annotations

import time

import pytest

from tui.sglang.facts import read
from tui.sglang.mask import is_secret_name, mask, mask_text

SECRET = "sq7-Ycret.v4lue"


@pytest.mark.parametrize(
    "line",
    [
        f"server_args=ServerArgs(model_path='m', api_key='{SECRET}', port=1)",
        f"server_args={{'model_path': 'm', 'api_key': '{SECRET}', 'admin_api_key': '{SECRET}'}}",
        f'{{"hf_token": "{SECRET}"}}',
        f"env: HF_TOKEN={SECRET} CUDA_VISIBLE_DEVICES=0",
        f"HUGGING_FACE_HUB_TOKEN={SECRET}",
        f"AWS_SECRET_ACCESS_KEY={SECRET}",
        f"python -m sglang.launch_server --api-key {SECRET} --port 1",
        f"python -m sglang.launch_server --admin-api-key={SECRET}",
        f"Command: ['python', '--api-key', '{SECRET}', '--port']",
        f"Authorization: Bearer {SECRET}",
        f"ssl_keyfile_password='{SECRET}'",
        f"fetching https://user:{SECRET}@proxy.example/x",
        "downloading with hf_abcdefghijklmnopqrstuvwxyz",
    ],
)
def test_secrets_are_masked(line: str) -> None:
    masked = mask_text(line)
    assert SECRET not in masked and "hf_abc" not in masked
    assert "****" in masked


@pytest.mark.parametrize(
    "line",
    [
        "Decode batch, #running-req: 1, #token: 137, token usage: 0.00, gen throughput (token/s): 1.06, #queue-req: 0",
        "server_args=ServerArgs(api_key=None, max_total_tokens=4096, tokenizer_path='m', hicache_size=150)",
        "{'api_key': None, 'key_cache': 'x', 'admin_api_key': None}",
        "max_total_num_tokens=4096, chunked_prefill_size=8192",
        "KeyError: 'model.vision_model.transformer.layers.0.self_attn.qkv_proj.weight'",
        "INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",
        "DFLASH draft runner ready. mask_token='<mask>'",
    ],
)
def test_all_else_stays(line: str) -> None:
    assert mask_text(line) == line


def test_names() -> None:
    for name in ("api_key", "admin_api_key", "HF_TOKEN", "hf-token", "AWS_SECRET_ACCESS_KEY", "ssl_keyfile_password"):
        assert is_secret_name(name)
    assert not any(map(is_secret_name, ("tokenizer_path", "ssl_keyfile", "max_total_tokens", "key", "hicache_size")))


def test_nothing_that_is_kept_holds_a_secret() -> None:
    log = (
        f"[2026-07-30 13:35:11] server_args=ServerArgs(model_path='m', api_key='{SECRET}', hf_token='{SECRET}')\n"
        f"[2026-07-30 13:35:12] Health check failed. Server --api-key {SECRET}\n"
        f"[2026-07-30 13:35:13] retrying with HF_TOKEN={SECRET}\n"
    )
    told = read([log.encode()])
    assert told.args["api_key"] == "****" and told.args["model_path"] == "m"
    assert SECRET not in repr(told)


def test_masking_takes_linear_time() -> None:
    hostile = b"api_key='" + b"x" * 60_000
    begun = time.process_time()
    for line in (hostile, b"key-" * 16_000, b"://" + b"a:" * 30_000, b"--api-key" * 7_000, b"token=" * 10_000):
        mask(line)
    assert time.process_time() - begun < 20  # quadratic would be minutes
