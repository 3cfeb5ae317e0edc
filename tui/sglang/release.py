"""Which release of SGLang wrote a log: it does not say so, but its ``server_args`` dump lists every flag that it knows.

A release is known by a flag that came with it and never went away. Post-releases and development builds count as the
release whose flags they have. Found by comparing the fields of ``ServerArgs`` of 38 releases.
"""

from __future__ import annotations

from collections.abc import Mapping

from tui.sglang.args import number

# Oldest first: (release, a flag that every release from then on has)
FIRST_FLAGS: tuple[tuple[str, str], ...] = (
    ("0.4.0", "revision"),
    ("0.4.1", "ep_size"),
    ("0.4.2", "tool_call_parser"),
    ("0.4.3", "lora_backend"),
    ("0.4.4", "page_size"),
    ("0.4.5", "disaggregation_mode"),
    ("0.4.6", "hicache_size"),
    ("0.4.6.post5", "enable_eplb"),
    ("0.4.7", "enable_two_batch_overlap"),
    ("0.4.8", "sleep_on_idle"),
    ("0.4.9", "crash_dump_folder"),
    ("0.4.9.post6", "hicache_io_backend"),
    ("0.5.0rc2", "hicache_mem_layout"),
    ("0.5.1", "moe_runner_backend"),
    ("0.5.2", "mamba_ssm_dtype"),
    ("0.5.3", "enable_deterministic_inference"),
    ("0.5.4", "mamba_full_memory_ratio"),
    ("0.5.5", "speculative_moe_runner_backend"),
    ("0.5.6", "fastapi_root_path"),
    ("0.5.7", "encoder_only"),
    ("0.5.8", "admin_api_key"),
    ("0.5.9", "attn_cp_size"),
    ("0.5.10", "enable_hisparse"),
    ("0.5.11", "enable_http2"),
    ("0.5.12", "detokenizer_worker_num"),
    ("0.5.13", "kv_canary"),
    ("0.5.14", "cuda_graph_config"),
    ("0.5.15", "dcp_size"),
    ("0.5.16", "enable_flexkv"),
    ("0.5.17", "mamba_max_states_per_path"),
    ("0.5.18", "language_model_only"),
    ("0.5.19", "hicache_host_memory_mode"),
    ("0.5.20", "ple_offload_backend"),
    ("0.5.21", "boundary_reduction"),
    ("0.5.22", "enable_watermark"),
    ("0.5.23", "enable_paged_experts"),
)


def release(args: Mapping[str, str]) -> str | None:
    """The release that knows exactly these flags; ``None`` where the dump is missing, cut or shortened by hand."""
    known = [version for version, flag in FIRST_FLAGS if flag in args]
    return known[-1] if known and len(known) == [version for version, _ in FIRST_FLAGS].index(known[-1]) + 1 else None


def printed_page(args: Mapping[str, str]) -> int:
    """Tokens of which a prefill line counts multiples: a page of the cache up to 0.5.19, later 1; 1 where unknown."""
    exact = dict(FIRST_FLAGS)["0.5.20"]
    return 1 if exact in args else max(1, number(args, "page_size"))
