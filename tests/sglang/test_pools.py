"""Cache pools in every wording of SGLang."""

from __future__ import annotations

import pytest

from tui.sglang.facts import LogFacts, read
from tui.sglang.model import Pool


def told(*lines: str) -> LogFacts:
    return read([("\n".join(f"[2026-02-01 00:05:03{line}" for line in lines) + "\n").encode()])


KV = "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 100, KV size: 1.50 GB"


@pytest.mark.parametrize(
    ("message", "pool"),
    [
        (
            "KV Cache is allocated. K size: 2.82 GB, V size: 2.83 GB.",
            Pool("device", "KV", 5.65, "GiB", {"k": 2.82, "v": 2.83}),
        ),
        (
            "KV Cache is allocated. #tokens: 399740, K size: 1.52 GB, V size: 1.52 GB",
            Pool("device", "KV", 3.04, "GiB", {"k": 1.52, "v": 1.52}, tokens=399740),
        ),
        (
            "KV Cache is allocated. #tokens: 2454421, KV size: 160.63 GB",
            Pool("device", "KV", 160.63, "GiB", tokens=2454421),
        ),
        (
            "Full KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 7, K size: 1.00 GB, V size: 2.00 GB",
            Pool("device", "KV", 3.0, "GiB", {"k": 1.0, "v": 2.0}, tokens=7),
        ),
        (
            "SWA KV Cache is allocated. dtype: torch.bfloat16, #tokens: 7, KV size: 9.21 GB",
            Pool("device", "SWA", 9.21, "GiB", tokens=7),
        ),
        (
            "MiniMax sparse index KV Cache is allocated. dtype: torch.bfloat16, #tokens: 7, KV size: 0.21 GB",
            Pool("device", "indexer", 0.21, "GiB", tokens=7),
        ),
        (
            "Mamba Cache is allocated. conv_state size: 0.03GB, ssm_state size: 2.74GB ",
            Pool("device", "Mamba", 2.77, "GiB", {"conv": 0.03, "ssm": 2.74}),
        ),
        (
            "Mamba Cache is allocated. max_mamba_cache_size: 257, conv_state size: 0.46GB, ssm_state size: 13.04GB "
            "intermediate_ssm_state_cache size: 1.05GB intermediate_conv_window_cache size: 0.02GB ",
            Pool(
                "device",
                "Mamba",
                14.57,
                "GiB",
                {"conv": 0.46, "ssm": 13.04, "intermediate_ssm": 1.05, "intermediate_conv": 0.02},
                slots=257,
            ),
        ),
        (
            "int8 mamba checkpoint pool: 64 slots, 1.25GB (qdata 1.00 + scale 0.05 + conv 0.20); active mamba pool 9",
            Pool("device", "Mamba checkpoint", 1.25, "GiB", slots=64),
        ),
        (
            "[unified-memory-pool] UnifiedKVPool allocated: total_bytes=31.25 GB (=33554432000 B), 3 sub-pool(s)",
            Pool("device", "unified", 31.25, "GiB"),
        ),
        ("Allocating 40.00 GB host memory for hierarchical KV cache.", Pool("host", "KV", 40.0, "GB")),
        (
            "Allocating kv hierarchical KV host pool: 3035904 tokens, 40.41 GB host memory, packed MTP KV layers: "
            "target_layers=12, draft_layers=1, total_layers=13.",
            Pool("host", "KV", 40.41, "GB", tokens=3035904),
        ),
        (
            "Allocating draft_swa hierarchical KV host pool: 30 tokens, 0.41 GB host memory.",
            Pool("host", "draft SWA", 0.41, "GB", tokens=30),
        ),
        (
            "Allocating 150.10 GB host memory for hierarchical Mamba cache (layout=layer_first).",
            Pool("host", "Mamba", 150.1, "GB", layout="layer_first"),
        ),
        (
            "Allocating 0.58 GB host memory for hierarchical Mamba cache (39868 state slots, "
            "layout=page_first_direct).",
            Pool("host", "Mamba", 0.58, "GB", slots=39868, layout="page_first_direct"),
        ),
        (
            "Allocating 35.25 GB host memory for NSA indexer (layout=page_first).",
            Pool("host", "indexer", 35.25, "GB", layout="page_first"),
        ),
        (
            "Allocating 35.25 GB host memory for DSA indexer (layout=page_first), packed MTP layers: target_layers=1, "
            "draft_layers=1, total_layers=2.",
            Pool("host", "indexer", 35.25, "GB", layout="page_first"),
        ),
        (
            "Allocating 3.25 GB host memory for V4 paged pool 'c4' (layers=3, pages=7, layout=page_first).",
            Pool("host", "V4 c4", 3.25, "GB", layout="page_first"),
        ),
        (
            "Allocating 3.25 GB host memory for V4 state pool 'c4' (layers=3, pages=7, state_page_bytes=9).",
            Pool("host", "V4 state c4", 3.25, "GB"),
        ),
        (
            "Allocating 3.25 GB host memory for MiniMax sparse index-K (layout=page_first).",
            Pool("host", "indexer", 3.25, "GB", layout="page_first"),
        ),
    ],
)
def test_wordings(message: str, pool: Pool) -> None:
    assert told(f"] {message}").pools == (pool,)
    assert told(f" TP0] {message}", f" TP1] {message}").pools[0].ranks == 2


@pytest.mark.parametrize(
    "message",
    [
        "Not enough host memory available. Requesting 40.00 GB but only have 34.13 GB free. Please reduce the size",
        "ValueError: Not enough host memory for DSA indexer hierarchical cache. Requesting 3.00 GB but only",
        "KV Cache skipped (no-op pool). Logical #tokens: 5, physical K/V size: ~1.0 KB placeholder",
        "KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 9, K size: 90.00 GB, V size: 90.00 GB",
        "MLATokenToKVPoolHost dummy mode: allocator-only, size=5 tokens, saving 40.00 GB host memory",
        "HiCache memory headroom: host 21.3 GiB, cgroup 8589934589.9 GiB",
        "SWAKVPool mem usage: 12.34 GB, swa size: 5, full size: 6",
    ],
)
def test_what_is_no_pool(message: str) -> None:
    assert told(f"] {message}").pools == ()


def test_a_draft_models_pools() -> None:
    host = "Allocating 10.00 GB host memory for hierarchical KV cache."
    draft = KV.replace("1.50", "0.10")
    facts = told(*(f" TP0] {text}" for text in (KV, "Memory pool end. avail mem=1 GB", draft, host, host)))
    assert [(p.place, p.kind, p.gb) for p in facts.pools] == [
        ("device", "KV", 1.5),
        ("device", "draft", 0.1),
        ("host", "KV", 10.0),
        ("host", "draft", 10.0),
    ]


def test_sliding_window_attention_tells_two_unlabelled_pools() -> None:
    full = KV.replace("1.50", "2.50")
    facts = told("] Use sliding window memory pool. full_layer_tokens=9, swa_layer_tokens=100", f"] {KV}", f"] {full}")
    assert [p.kind for p in facts.pools] == ["SWA", "KV"]


def test_pools_of_ranks_without_names_are_counted() -> None:
    host = "Allocating 40.00 GB host memory for hierarchical KV cache."
    draft = "Allocating 1.00 GB host memory for hierarchical KV cache."
    facts = told(
        f"] {KV}", f"] {KV}", "] Memory pool end. avail mem=1 GB", *(f"] {text}" for text in (host, host, draft))
    )
    assert [(p.kind, p.gb, p.ranks) for p in facts.pools] == [("KV", 1.5, 2), ("KV", 40.0, 2), ("draft", 1.0, 1)]


def test_replay_buffers_of_a_mamba_model() -> None:
    facts = told("] GDN ReplaySSM ring buffers allocated (L=64): d=0.25GB, k=0.50GB, g=0.01GB ")
    assert [(p.kind, p.gb, dict(p.parts)) for p in facts.pools] == [
        ("Mamba replay", 0.76, {"d": 0.25, "k": 0.5, "g": 0.01})
    ]


def test_the_size_after_the_captures_replaces_an_upper_bound() -> None:
    facts = told(
        "] KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 900, K size: 90.00 GB, V size: 90.00 GB",
        "] Memory pool end. avail mem=1 GB",
        "] Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 77, KV size: 4.25 GB, avail",
        "] Post-capture KV sizing: draft KV cache allocated. dtype: torch.bfloat16, #tokens: 77, KV size: 0.25 GB",
    )
    assert [(p.kind, p.gb, p.tokens) for p in facts.pools] == [("KV", 4.25, 77), ("draft", 0.25, 77)]
    assert facts.max_total_num_tokens == 77


def test_ranks_of_unlike_sizes_stand_apart() -> None:
    facts = told(f" PP0] {KV}", f" PP1] {KV}", f" PP2] {KV.replace('1.50', '1.75')}")
    assert [(p.gb, p.ranks) for p in facts.pools] == [(1.5, 2), (1.75, 1)]


def test_numbers_and_caps() -> None:
    summary = (
        "max_total_num_tokens={}, chunked_prefill_size=-1, max_prefill_tokens=16384, max_running_requests=9, "
        "context_len=65536, available_gpu_mem=5.47 GB"
    )
    facts = told(
        " TP0] max_running_requests is capped to 8 by the mamba state cache (max_mamba_cache_size=24, 3 slots",
        " DP0 TP0] " + summary.format(100),
        " DP1 TP1] " + summary.format(99),
    )
    assert (facts.max_total_num_tokens, facts.max_running_requests, facts.context_len) == (100, 9, 65536)
    assert facts.warnings[0].startswith("max_running_requests is capped to 8")
    assert told("] Max running requests is reset to 48 for speculative decoding.").max_running_requests == 48
    assert told("] Creating storage backend 'mooncake' (a.B)").storage == "mooncake"
