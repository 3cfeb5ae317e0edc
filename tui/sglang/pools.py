"""Which message tells which cache pool. A table: the next SGLang's wording is a row.

Device pools are printed as GB and mean GiB; HiCache host pools are decimal GB. Both are per rank.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tui.sglang.lines import natural
from tui.sglang.model import Pool

MOST = 64  # pools kept per rank
_N = r"-?\d{1,12}(?:\.\d{1,9})?"


def _parts(**sizes: str | None) -> MappingProxyType[str, float]:
    return MappingProxyType({name: float(size) for name, size in sizes.items() if size is not None})


def _sum(parts: MappingProxyType[str, float]) -> float:
    return round(sum(parts.values()), 6)


def _whole(value: str | None) -> int | None:
    return None if value is None else int(value)


def _device_kv(m: re.Match[str]) -> Pool:
    parts = _parts(k=m["k"], v=m["v"])
    gb = _sum(parts) if parts else float(m["kv"])
    return Pool("device", _label(m["label"] or ""), gb, "GiB", parts, tokens=_whole(m["tokens"]))


def _label(label: str) -> str:
    """The kind of a labelled KV pool: ``Full`` is the ordinary one; an index belongs to a sparse attention."""
    word = label.strip().lower().removeprefix("jax").strip()
    if word in ("", "full", "kv", "mla", "fused") or " main" in word:
        return "KV"
    if "swa" in word or "sliding" in word:
        return "draft SWA" if "draft" in word else "SWA"
    if "index" in word:
        return "indexer"
    return "draft" if "draft" in word else label.strip()


def _device_mamba(m: re.Match[str]) -> Pool:
    parts = _parts(conv=m["conv"], ssm=m["ssm"], intermediate_ssm=m["issm"], intermediate_conv=m["iconv"])
    return Pool("device", "Mamba", _sum(parts), "GiB", parts, slots=_whole(m["slots"]))


def _host_kv(m: re.Match[str]) -> Pool:
    return Pool("host", "KV", float(m["gb"]), "GB")


def _host_labelled(m: re.Match[str]) -> Pool:
    return Pool("host", _label(m["label"].replace("_", " ")), float(m["gb"]), "GB", tokens=int(m["tokens"]))


def _host_other(m: re.Match[str]) -> Pool:
    what, attributes = m["what"], m["attributes"] or ""
    slots = re.search(r"(\d{1,12}) state slots", attributes)
    layout = re.search(r"layout=(\w{1,40})", attributes)
    return Pool(
        "host",
        _host_kind(what),
        float(m["gb"]),
        "GB",
        slots=int(slots[1]) if slots else None,
        layout=layout[1] if layout else None,
    )


def _host_kind(what: str) -> str:
    if "Mamba" in what:
        return "Mamba"
    if "index" in what.lower():
        return "indexer"
    quoted = re.search(r"'([^']{1,40})'", what)
    if what.startswith("V4"):
        family = "V4 state" if "state" in what else "V4"
        return f"{family} {quoted[1]}" if quoted else family
    return "KV" if "KV cache" in what else what[:40]


def _sized_later(m: re.Match[str]) -> Pool:
    kind = "draft" if m["draft"] else "KV"
    parts = _parts(k=m["k"], v=m["v"])
    gb = _sum(parts) if parts else float(m["kv"])
    return Pool("device", kind, gb, "GiB", parts, tokens=int(m["tokens"]))


def _checkpoints(m: re.Match[str]) -> Pool:
    return Pool("device", "Mamba checkpoint", float(m["gb"]), "GiB", slots=int(m["slots"]))


def _unified(m: re.Match[str]) -> Pool:
    return Pool("device", "unified", float(m["gb"]), "GiB")


def _replay(m: re.Match[str]) -> Pool:
    sizes = re.findall(rf"(\w{{1,20}})=({_N}) ?GB", m["sizes"])
    parts = _parts(**dict(sizes))
    return Pool("device", "Mamba replay", _sum(parts), "GiB", parts)


_SIZES = rf"(?:K (?:size: )?(?P<k>{_N}) GB, V (?:size: )?(?P<v>{_N}) GB|(?:Fused )?KV size: (?P<kv>{_N}) GB)"
_TOKENS = r"(?P<tokens>\d{1,15})"
_DTYPE = r"(?:dtype: [\w.]{1,40}, )?"
ROWS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Pool]], ...] = tuple(
    (re.compile(pattern), make)
    for pattern, make in (
        (
            rf"(?P<label>[\w.\- ]{{0,60}}?)\s?KV Cache (?:is )?allocated\. {_DTYPE}(?:#tokens: {_TOKENS}, )?{_SIZES}",
            _device_kv,
        ),
        (
            rf"Mamba Cache is allocated\. (?:max_mamba_cache_size: (?P<slots>\d{{1,12}}), )?"
            rf"conv_state size: (?P<conv>{_N}) ?GB, ssm_state size: (?P<ssm>{_N}) ?GB"
            rf"(?:,? ?intermediate_ssm_state_cache size: (?P<issm>{_N}) ?GB)?"
            rf"(?:,? ?intermediate_conv_window_cache size: (?P<iconv>{_N}) ?GB)?",
            _device_mamba,
        ),
        (
            rf"Post-capture KV sizing: (?P<draft>draft )?KV cache allocated\. {_DTYPE}#tokens: {_TOKENS}, {_SIZES}",
            _sized_later,
        ),
        (rf"GDN ReplaySSM ring buffers allocated \([^)]{{0,80}}\): (?P<sizes>\w{{1,20}}={_N} ?GB.{{0,200}})", _replay),
        (rf"int8 mamba checkpoint pool: (?P<slots>\d{{1,12}}) slots, (?P<gb>{_N}) ?GB", _checkpoints),
        (rf"\[unified-memory-pool\] UnifiedKVPool allocated: total_bytes=(?P<gb>{_N}) ?GB", _unified),
        (rf"Allocating (?P<gb>{_N}) GB host memory for hierarchical KV cache", _host_kv),
        (
            rf"Allocating (?P<label>\S{{1,40}}) hierarchical KV host pool: {_TOKENS} tokens, (?P<gb>{_N}) GB",
            _host_labelled,
        ),
        (
            rf"Allocating (?P<gb>{_N}) GB host memory for (?P<what>.{{1,80}}?)(?: \((?P<attributes>[^)]{{0,200}})\))?"
            r"(?:\.$|, packed)",
            _host_other,
        ),
    )
)


def pool_of(message: str) -> Pool | None:
    """The pool that a message tells, of one rank."""
    for pattern, make in ROWS:
        found = pattern.match(message)
        if found:
            return make(found)
    return None


# Full attention and sliding windows side by side. Until 0.5.16 both pools are told without a label, the windows first.
_WINDOWS = re.compile(r"Use sliding window memory pool\. full_layer_tokens=\d{1,15}, swa_layer_tokens=(\d{1,15})", re.I)


@dataclass(slots=True)
class RankPools:
    """The pools that one rank has told, in its order, and what stands around them."""

    pools: list[Pool] = field(default_factory=list)
    pool_ends: int = 0  # "Memory pool end": what follows on the device belongs to the draft model
    windows: int | None = None  # tokens of the sliding-window pool that is to come without a label
    sliding: bool = False

    def copy(self) -> RankPools:
        return RankPools(self.pools[:], self.pool_ends, self.windows, self.sliding)

    def add(self, pool: Pool, *, labelled: bool = True, alone: bool = True) -> None:
        """Take a pool. Not ``alone``: it may be the same pool of another rank, where ranks have no names."""
        last = self.pools[-1] if self.pools else pool
        if last.kind == pool.kind == "Mamba" and last.place == pool.place and last.parts.items() < pool.parts.items():
            self.pools[-1:] = [replace(pool, ranks=last.ranks)]  # the line was broken, and this is the whole of it
            return
        if not labelled and self.windows is not None and pool.tokens in (None, self.windows):
            pool, self.windows = replace(pool, kind="SWA"), None
        elif not alone:
            for index, known in enumerate(self.pools):
                if replace(known, kind=pool.kind, ranks=1) == pool:
                    self.pools[index] = replace(known, ranks=known.ranks + 1)
                    return
        if len(self.pools) < MOST:
            self.pools.append(self._named(pool))

    def _named(self, pool: Pool) -> Pool:
        told = {known.kind for known in self.pools if known.place == pool.place}
        if pool.place == "device":
            drafts = {"KV": "draft", "SWA": "draft SWA"} if self.pool_ends and told else {}
            return replace(pool, kind=drafts.get(pool.kind, pool.kind))
        if pool.kind != "KV" or "KV" not in told:
            return pool
        return replace(pool, kind="SWA" if self.sliding and "SWA" not in told else "draft")

    def resize(self, pool: Pool) -> None:
        """The real size of a pool of which only an upper bound was known."""
        for index, known in enumerate(self.pools):
            if known.place == "device" and known.kind == pool.kind == "KV":
                self.pools[index] = pool
                return
        if len(self.pools) < MOST:
            self.pools.append(pool)


@dataclass(slots=True)
class Pools:
    """The pools of all ranks. Keyed by rank: ``""`` where no rank is printed."""

    ranks: dict[str, RankPools] = field(default_factory=dict)

    def copy(self) -> Pools:
        return Pools({rank: pools.copy() for rank, pools in self.ranks.items()})

    def take(self, rank: str, message: str) -> bool:
        """Read one message of a rank; whether it told a pool."""
        mine = self.ranks.get(rank)
        if mine is None:
            if len(self.ranks) >= 4096:
                return False
            mine = self.ranks[rank] = RankPools()
        if message.startswith("Memory pool end"):
            mine.pool_ends += 1
        elif "liding window memory pool" in message[:40]:
            windows = _WINDOWS.match(message)
            mine.sliding, mine.windows = windows is not None, int(windows[1]) if windows else None
        elif message.startswith("Post-capture KV sizing"):
            pool = pool_of(message)
            if pool:
                mine.resize(pool)
        else:
            pool = pool_of(message)
            if pool is None:
                return False
            mine.add(pool, labelled=not message.startswith("KV Cache is"), alone=bool(rank))
        return True

    def all(self) -> tuple[Pool, ...]:
        """The pools; those that several ranks printed alike are one, with their number."""
        counted: dict[object, tuple[Pool, int]] = {}
        for rank in sorted(self.ranks, key=natural):
            ordinals: dict[tuple[str, str], int] = {}
            for pool in self.ranks[rank].pools:
                name = (pool.place, pool.kind)
                ordinals[name] = ordinals.get(name, 0) + 1
                key = (name, ordinals[name], pool.gb, tuple(pool.parts.items()), pool.tokens, pool.slots, pool.layout)
                counted[key] = (pool, counted[key][1] + pool.ranks if key in counted else pool.ranks)
        return tuple(replace(pool, ranks=ranks) for pool, ranks in counted.values())
