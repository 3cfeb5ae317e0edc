"""Cache allocations in a log: every wording of a device or host pool, counted over ranks. A table that grows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tui.sglang.model import Pool

_KV = re.compile(
    r"(?P<label>[\w.\- ]*?) ?KV [Cc]ache (?:is )?allocated\. (?:dtype: [\w.]+, )?(?:#tokens: (?P<tokens>\d+), )?"
    r"(?:K size: (?P<k>[\d.]+) ?GB, V size: (?P<v>[\d.]+) ?GB|KV size: (?P<kv>[\d.]+) ?GB)"
)
_MAMBA = re.compile(
    r"Mamba Cache is allocated\. (?:max_mamba_cache_size: (?P<slots>\d+), )?conv_state size: (?P<conv>[\d.]+) ?GB, "
    r"ssm_state size: (?P<ssm>[\d.]+) ?GB(?: intermediate_ssm_state_cache size: (?P<issm>[\d.]+) ?GB "
    r"intermediate_conv_window_cache size: (?P<iconv>[\d.]+) ?GB)?"
)
_HOST = re.compile(r"Allocating (?P<gb>[\d.]+) ?GB host memory for (?P<what>.+)")
_HOST_POOL = re.compile(
    r"Allocating (?P<label>\S+) hierarchical KV host pool: (?P<tokens>\d+) tokens, (?P<gb>[\d.]+) ?GB host memory"
)
_LAYOUT = re.compile(r"layout=(\w+)")
_SLOTS = re.compile(r"(\d+) state slots")
_SLIDING = re.compile(r"[Uu]se [Ss]liding window memory pool|SWAKVPool")

# (pattern in what the host memory is for, kind of pool)
_HOST_KINDS = (
    (re.compile(r"hierarchical KV"), "KV"),
    (re.compile(r"[Mm]amba"), "Mamba"),
    (re.compile(r"(?:NSA|DSA) indexer|index-?K|index cache"), "indexer"),
    (re.compile(r"V4 paged pool '?([\w.-]+)"), "V4 "),
    (re.compile(r"V4 state pool '?([\w.-]+)"), "V4 state "),
)
_LABELS = {"kv": "KV", "full": "KV", "swa": "SWA", "draft": "draft", "draft_swa": "draft SWA"}


@dataclass
class Pools:
    """The pools seen so far. Ranks that print the same allocation count as one pool on several ranks."""

    sliding: bool = False
    _pools: dict[tuple[str, str], Pool] = field(default_factory=dict)
    _ranks: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    _kv_seen: dict[tuple[str, str], int] = field(default_factory=dict)  # (place, rank) → unlabelled KV lines so far

    def read(self, message: str, rank: str) -> bool:
        """Take a message; whether it tells of a pool."""
        if "KV " in message or "Mamba" in message or "host" in message or "liding" in message or "SWA" in message:
            pool = self._device(message, rank) or self._host(message, rank)
            if pool is not None:
                self._add(pool, rank)
                return True
            self.sliding = self.sliding or _SLIDING.match(message) is not None
        return False

    def all(self) -> tuple[Pool, ...]:
        """Device pools first, in the order in which they were allocated."""
        pools = [replace(pool, ranks=len(self._ranks[key])) for key, pool in self._pools.items()]
        return tuple(sorted(pools, key=lambda pool: pool.place != "device"))

    def _add(self, pool: Pool, rank: str) -> None:
        key = (pool.place, pool.kind)
        if rank:
            self._ranks.get(key, set()).discard("")
        self._ranks.setdefault(key, set()).add(rank)
        if key not in self._pools or rank == min(self._ranks[key]):
            self._pools[key] = pool

    def _device(self, message: str, rank: str) -> Pool | None:
        found = _MAMBA.match(message)
        if found:
            names = ("conv", "ssm", "intermediate_ssm", "intermediate_conv")
            sizes = (found["conv"], found["ssm"], found["issm"], found["iconv"])
            parts = {name: float(size) for name, size in zip(names, sizes, strict=True) if size is not None}
            slots = int(found["slots"]) if found["slots"] else None
            return _pool("device", "Mamba", parts, "GiB", slots=slots)
        found = _KV.search(message)
        if found is None:
            return None
        tokens = int(found["tokens"]) if found["tokens"] else None
        kind = self._device_kind(found["label"].strip(), rank, sizing="sizing" in message)
        if found["kv"] is not None:
            return Pool("device", kind, float(found["kv"]), "GiB", tokens=tokens)
        return _pool("device", kind, {"k": float(found["k"]), "v": float(found["v"])}, "GiB", tokens=tokens)

    def _device_kind(self, label: str, rank: str, *, sizing: bool) -> str:
        if sizing:  # the real size after the graphs, of a pool announced before
            return "draft" if "draft" in label else "KV"
        if label:
            words = label.split()
            return {"Full": "KV", "SWA": "SWA"}.get(label, "indexer" if "index" in words else label)
        seen = self._kv_seen[("device", rank)] = self._kv_seen.get(("device", rank), 0) + 1
        order = ["KV", *(["SWA"] if self.sliding else []), "draft"]
        return order[seen - 1] if seen <= len(order) else f"draft {seen}"

    def _host(self, message: str, rank: str) -> Pool | None:
        found = _HOST_POOL.match(message)
        if found:
            kind = _LABELS.get(found["label"], found["label"])
            return Pool("host", kind, float(found["gb"]), "GB", tokens=int(found["tokens"]))
        found = _HOST.match(message)
        if found is None:
            return None
        what = found["what"]
        kind = next((_named(pattern, name, what) for pattern, name in _HOST_KINDS if pattern.search(what)), "other")
        if kind == "KV":
            seen = self._kv_seen[("host", rank)] = self._kv_seen.get(("host", rank), 0) + 1
            kind = {1: "KV", 2: "SWA" if self.sliding else "draft"}.get(seen, f"KV {seen}")
        layout, slots = _LAYOUT.search(what), _SLOTS.search(what)
        return Pool(
            "host",
            kind,
            float(found["gb"]),
            "GB",
            slots=int(slots[1]) if slots else None,
            layout=layout[1] if layout else None,
        )


def _named(pattern: re.Pattern[str], name: str, text: str) -> str:
    found = pattern.search(text)
    return name + found[1] if found and pattern.groups else name


def _pool(
    place: str, kind: str, parts: Mapping[str, float], unit: str, tokens: int | None = None, slots: int | None = None
) -> Pool:
    return Pool(place, kind, round(sum(parts.values()), 4), unit, MappingProxyType(dict(parts)), tokens, slots)
