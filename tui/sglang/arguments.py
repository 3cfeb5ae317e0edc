"""The ``server_args`` dump of a log: flags and values as text, secrets masked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from tui.sglang.mask import is_secret_name

_VALUE = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\[[^\]]*\]|\{[^}]*\}|\([^)]*\)|[^,(){}\[\]]+)"
_PAIR = re.compile(rf"(?:\b(\w+)=|'(\w+)': )({_VALUE})")
_DUMP = re.compile(r"server_args=(?:ServerArgs\(|\{)")


def server_args(message: str) -> Mapping[str, str] | None:
    """The flags of a dump, values unquoted; ``None`` for another message."""
    found = _DUMP.match(message)
    if found is None:
        return None
    args: dict[str, str] = {}
    for pair in _PAIR.finditer(message, found.end()):
        name = pair[1] or pair[2]
        value = pair[3].strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        args[name] = "****" if is_secret_name(name) and value != "None" else value[:2000]
    return MappingProxyType(args)


def expected_ranks(args: Mapping[str, str]) -> tuple[str, ...]:
    """The ranks that must report on a single node with tensor parallelism only; empty where it is not that simple."""
    sizes = [args.get(name, "1") for name in ("dp_size", "pp_size", "nnodes")]
    tp = args.get("tp_size", "1")
    if any(size not in ("1", "None") for size in sizes) or not tp.isdecimal() or not 1 < int(tp) <= 64:
        return ()
    return tuple(f"TP{rank}" for rank in range(int(tp)))
