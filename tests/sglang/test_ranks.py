"""The ranks that should print on one host, for every grid of SGLang's parallelisms."""

from __future__ import annotations

import pytest

from tui.sglang.args import implied_ranks


def flags(**sizes: object) -> dict[str, str]:
    return {name: str(value) for name, value in sizes.items()}


@pytest.mark.parametrize(
    ("args", "like", "ranks"),
    [
        (flags(tp_size=2), "TP0", ["TP0", "TP1"]),
        (flags(tp_size=2, nnodes=1, node_rank=None), "TP1", ["TP0", "TP1"]),
        (flags(tp_size=4, nnodes=2, node_rank=1), "TP2", ["TP2", "TP3"]),
        (flags(tp_size=1, dp_size=2), "DP1", ["DP0", "DP1"]),
        (flags(tp_size=1, dp_size=2), "DP0 TP0", ["DP0 TP0", "DP1 TP0"]),
        (flags(tp_size=2, dp_size=2), "DP0 TP1", ["DP0 TP0", "DP0 TP1", "DP1 TP0", "DP1 TP1"]),
        (
            flags(tp_size=4, dp_size=2, enable_dp_attention=True),
            "DP0 TP0",
            ["DP0 TP0", "DP0 TP1", "DP1 TP2", "DP1 TP3"],
        ),
        (
            flags(tp_size=4, dp_size=4, ep_size=4, enable_dp_attention=True, nnodes=2, node_rank=1),
            "DP3 TP3 EP3",
            ["DP2 TP2 EP2", "DP3 TP3 EP3"],
        ),
        (flags(tp_size=2, pp_size=2), "TP0 PP1", ["TP0 PP0", "TP1 PP0", "TP0 PP1", "TP1 PP1"]),
        (flags(tp_size=1, pp_size=4, nnodes=2, node_rank=1), "PP2", ["PP2", "PP3"]),
        (flags(tp_size=4, pp_size=2, nnodes=4, node_rank=2), "PP1 TP0", ["PP1 TP0", "PP1 TP1"]),
        (
            flags(tp_size=4, attn_cp_size=2),
            "ATTN_CP1 TP2",
            ["ATTN_CP0 TP0", "ATTN_CP0 TP1", "ATTN_CP1 TP2", "ATTN_CP1 TP3"],
        ),
        (
            flags(tp_size=4, dp_size=2, attn_cp_size=2, enable_dp_attention=True),
            "DP0 ATTN_CP0 TP0",
            ["DP0 ATTN_CP0 TP0", "DP0 ATTN_CP1 TP1", "DP1 ATTN_CP0 TP2", "DP1 ATTN_CP1 TP3"],
        ),
        (
            flags(tp_size=4, moe_dp_size=2, ep_size=2),
            "MOE_DP0 TP0 EP0",
            ["MOE_DP0 TP0 EP0", "MOE_DP0 TP1 EP1", "MOE_DP1 TP2 EP0", "MOE_DP1 TP3 EP1"],
        ),
        (flags(tp_size=4, ep_size=2), "TP3 EP1", ["TP0 EP0", "TP1 EP0", "TP2 EP1", "TP3 EP1"]),
        (flags(tp_size=2, ep_size=1), "TP1 EP1", ["TP0 EP0", "TP1 EP1"]),
        # Unsure: one rank, numbers that do not go together, replicas over several nodes, a replica started by hand
        (flags(tp_size=1), "TP0", []),
        (flags(tp_size=3, ep_size=2), "TP0 EP0", []),
        (flags(tp_size=4, nnodes=3), "TP0", []),
        (flags(tp_size=2, dp_size=2, nnodes=2, node_rank=0), "DP0 TP0", []),
        (flags(tp_size=2, dp_size=1), "DP3 TP0", []),
        (flags(tp_size=2), "TP7", []),
        (flags(tp_size=999999, pp_size=999999), "TP0", []),
        ({}, "TP0", []),
    ],
)
def test_ranks(args: dict[str, str], like: str, ranks: list[str]) -> None:
    assert list(implied_ranks(args, like)) == ranks
