"""The ``server_args=`` dump → flags, secrets masked; and the ranks that they imply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from tui.sglang.mask import MASK, is_secret_name, mask_text

_MOST = 2000
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


def number(args: Mapping[str, str], name: str, default: int = 1) -> int:
    """A whole number among the flags."""
    value = args.get(name, "")
    return int(value) if re.fullmatch(r"\d{1,6}", value) else default


def is_worker_node(args: Mapping[str, str]) -> bool:
    """Whether this is a node of a multi-node server that serves no requests itself."""
    return number(args, "nnodes") > 1 and number(args, "node_rank", 0) > 0


def implied_ranks(args: Mapping[str, str], like: str) -> tuple[str, ...]:
    """The ranks that should print on this host, named like ``like`` (``TP0``, ``DP0 TP0 EP0``); ``()`` if unsure."""
    tp, pp, dp = number(args, "tp_size"), number(args, "pp_size"), number(args, "dp_size")
    nodes, node = number(args, "nnodes"), number(args, "node_rank", 0)
    if not re.fullmatch(r"TP\d+", like) or pp != 1 or dp != 1 or not 1 < tp <= 1024 or tp % nodes:
        return ()
    here = tp // nodes
    return tuple(f"TP{rank}" for rank in range(node * here, (node + 1) * here))
