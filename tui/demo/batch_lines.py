"""The batch lines of a scheduler, field by field: a table of (template, since, until, for which servers)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui.demo.lines import Dialect, Rows

_HEAD: Rows = (("0.3.6", "{kind} batch. "), ("0.5.4", "{kind} batch [{forward}], "), ("0.5.4.post3", "{kind} batch, "))
_TAIL: Rows = (("0.3.6", ""), ("0.4.4", ", "), ("0.4.6.post5", ""), ("0.4.9.post6", ", "), ("0.5.9", ""))


@dataclass(frozen=True, slots=True)
class _Field:
    template: str
    since: str = "0.3.6"
    until: str = ""  # exclusive
    only: str = ""  # "hybrid" | "dense" | "speculative"


_PREFILL = (
    _Field("#new-seq: {new_requests}"),
    _Field("#new-token: {new_tokens}"),
    _Field("#cached-token: {cached_tokens}"),
    _Field("token usage: {kv:.2f}", only="dense"),
    _Field("full token usage: {kv:.2f}", only="hybrid"),
    _Field("mamba usage: {mamba:.2f}", only="hybrid"),
    _Field("#running-req: {running}"),
    _Field("#queue-req: {queued}"),
    _Field("#pending-token: {pending}", since="0.5.11"),
    _Field("input throughput (token/s): {rate:.2f}", since="0.5.9", until="0.5.10"),
    _Field("cuda graph: False", since="0.5.9"),
    _Field("input throughput (token/s): {rate:.2f}", since="0.5.10"),
)
_DECODE = (
    _Field("#running-req: {running}"),
    _Field("#token: {tokens}", only="dense"),
    _Field("token usage: {kv:.2f}", only="dense"),
    _Field("#full token: {tokens}", only="hybrid"),
    _Field("full token usage: {kv:.2f}", only="hybrid"),
    _Field("mamba num: {states}", only="hybrid"),
    _Field("mamba usage: {mamba:.2f}", only="hybrid"),
    _Field("accept len: {accept_len:.2f}", since="0.4.3", only="speculative"),
    _Field("accept rate: {accept_share:.2f}", since="0.5.4", until="0.5.11", only="speculative"),
    _Field("accept rate: {accept_rate:.2f}", since="0.5.11", only="speculative"),
    _Field("cuda graph: True", since="0.4.6.post5"),
    _Field("gen throughput (token/s): {rate:.2f}"),
    _Field("#queue-req: {queued}"),
)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one prefill or decode report says. ``rate`` is tokens per second; usages are ratios 0 to 1."""

    forward: int
    running: int
    queued: int
    tokens: int
    kv: float
    states: int
    mamba: float
    rate: float
    new_requests: int = 0
    new_tokens: int = 0
    cached_tokens: int = 0
    pending: int = 0
    accept_len: float = 0.0
    accept_rate: float = 0.0  # accepted drafts of those proposed
    accept_share: float = 0.0  # accepted tokens, the bonus token included, of those drafted


def prefill_line(dialect: Dialect, batch: Batch) -> str:
    """``Prefill batch, …`` as the release prints it."""
    return _line(dialect, "Prefill", _PREFILL, batch)


def decode_line(dialect: Dialect, batch: Batch) -> str:
    """``Decode batch, …`` as the release prints it."""
    return _line(dialect, "Decode", _DECODE, batch)


def _line(dialect: Dialect, kind: str, fields: Sequence[_Field], batch: Batch) -> str:
    traits = {"hybrid" if dialect.since("0.5.4") else "dense"}  # older releases print plain usage for every model
    if batch.accept_len:
        traits.add("speculative")
    values = {name: getattr(batch, name) for name in Batch.__slots__}
    said = [
        field.template.format(**values)
        for field in fields
        if dialect.since(field.since)
        and not (field.until and dialect.since(field.until))
        and (not field.only or field.only in traits)
    ]
    head = (dialect.pick(_HEAD) or "").format(kind=kind, forward=batch.forward)
    return head + ", ".join(said) + (dialect.pick(_TAIL) or "")
