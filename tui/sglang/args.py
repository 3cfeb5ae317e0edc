"""The ``server_args=`` dump → flags, secrets masked; and the ranks that they imply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from tui.sglang.mask import MASK, is_secret_name, mask_text

_MOST = 2000
_MOST_RANKS = 4096
_SHOWN = re.compile(r"([A-Z_]+)(\d+)")
_VALUE = (
    r"(?P<value>'(?:[^'\\]|\\.){0,4096}'|\"(?:[^\"\\]|\\.){0,4096}\"|\[[^\]]{0,2048}\]|\{[^}]{0,4096}\}|"
    r"\([^)]{0,512}\)|<[^>]{0,200}>|[^,\s)}]{0,400})"
)
_DATACLASS = re.compile(r"(?P<name>\b[a-z_][a-z0-9_]{0,80})=" + _VALUE + r"(?=[,)]|$)")
_DICT = re.compile(r"'(?P<name>[a-z_][a-z0-9_]{0,80})': " + _VALUE + r"(?=[,}]|$)")


def parse_args(message: str) -> Mapping[str, str]:
    """``server_args=ServerArgs(a='b', …)`` and ``server_args={'a': 'b', …}`` as ``{"a": "b"}``; quotes are gone."""
    pattern = _DICT if message.startswith("server_args={") else _DATACLASS
    found: dict[str, str] = {}
    for match in pattern.finditer(message, len("server_args=")):
        name, value = match["name"], match["value"]
        if len(found) >= _MOST:
            break
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        if is_secret_name(name) and value not in ("None", ""):
            value = MASK.decode()
        found.setdefault(name, mask_text(value))
    return MappingProxyType(found)


_OF_ONE = ("model_path", "host", "port", "node_rank", "base_gpu_id", "disaggregation_mode")


def same_server(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    """Whether two dumps are of one server that was started twice, not of two that write into one log."""
    return bool(first) and all(first.get(name) == second.get(name) for name in _OF_ONE)


def number(args: Mapping[str, str], name: str, default: int = 1) -> int:
    """A whole number among the flags."""
    value = args.get(name, "")
    return int(value) if re.fullmatch(r"\d{1,6}", value) else default


def is_worker_node(args: Mapping[str, str]) -> bool:
    """Whether this is a node of a multi-node server that serves no requests itself."""
    return number(args, "nnodes") > 1 and number(args, "node_rank", 0) > 0


def implied_ranks(args: Mapping[str, str], like: str) -> tuple[str, ...]:
    """The ranks that should print on this host, named like ``like`` (``TP0``, ``DP0 TP0 EP0``); ``()`` if unsure.

    Every rank is one of the grid PP x TP, and of every replica of it. With DP attention the replicas share the TP
    ranks. Which numbers a prefix shows, and in which order, depends on the version: ``like`` tells.
    """
    shown = dict(_SHOWN.findall(like))
    grid = _grid(args, moe_copies="EP" in shown)
    if grid is None:
        return ()
    ranks = []
    for numbers in grid:
        if any(name not in numbers for name in shown):
            return ()
        ranks.append(" ".join(f"{name}{numbers[name]}" for name in shown))
    return tuple(ranks) if len(set(ranks)) == len(ranks) > 1 and like in ranks else ()


def _grid(args: Mapping[str, str], *, moe_copies: bool) -> list[dict[str, int]] | None:
    """The numbers of each rank of this host, by what SGLang calls them; ``None`` for sizes that do not go together."""
    tp, pp, dp, ep = (number(args, f"{name}_size") for name in ("tp", "pp", "dp", "ep"))
    cp, moe_dp = number(args, "attn_cp_size"), number(args, "moe_dp_size")
    nodes, node = number(args, "nnodes"), number(args, "node_rank", 0)
    shared = args.get("enable_dp_attention") == "True"
    if ep == 1 and moe_copies:
        ep = tp // max(1, moe_dp)  # resolved after the arguments were printed
    if min(tp, pp, dp, ep, cp, moe_dp, nodes) < 1 or tp * pp * dp > _MOST_RANKS or node >= nodes:
        return None
    if nodes > 1 and dp > 1 and not shared:
        return None
    nodes_per_stage, stages_per_node = max(1, nodes // pp), max(1, pp // nodes)
    attention, experts = (dp if shared else 1) * cp, moe_dp * ep
    if tp % nodes_per_stage or tp % attention or tp % experts:
        return None
    tp_here, first_tp, first_pp = tp // nodes_per_stage, node % nodes_per_stage, node // nodes_per_stage
    return [
        {
            "DP": t // (tp // dp) if shared else copy,
            "PP": p,
            "ATTN_CP": t // (tp // attention) % cp,
            "MOE_DP": t // (tp // moe_dp),
            "TP": t,
            "EP": t % (tp // moe_dp) // (tp // experts),
        }
        for copy in range(1 if shared else dp)
        for p in range(first_pp * stages_per_node, (first_pp + 1) * stages_per_node)
        for t in range(first_tp * tp_here, (first_tp + 1) * tp_here)
    ]
