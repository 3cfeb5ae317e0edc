"""One prefill or decode line: its fields as numbers, whatever their order and version."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

BODY_CAP = 1000  # bytes of a batch line behind its head that are read

_NUMBER = re.compile(rb" {0,2}(-?\d{1,30}(?:\.\d{1,30})?)%?(?![\w.])")
_TOKENS = re.compile(rb"#new-token: (\d{1,12}), #cached-token: (\d{1,12}),")
_TOKENS_EACH = re.compile(rb"#new-token: (\d{1,12}), #cached-token: (\d{1,12}),[^\n]*+\n")  # one a line

# the key as printed → the name here; of several that a line may hold, the last found counts
_FIELDS: Mapping[bytes, str] = {
    b"#running-req": "running",
    b"#queue-req": "queued",
    b"token usage": "kv",
    b"full token usage": "kv",
    b"gpu token usage": "kv",
    b"mamba usage": "mamba",
    b"swa token usage": "swa",
    b"accept len": "accept_len",
    b"accept rate": "accept_rate",
    b"gen throughput (token/s)": "generate",
    b"input throughput (token/s)": "prefill",
    b"#new-seq": "new_seq",
    b"#new-token": "new_token",
    b"#cached-token": "cached_token",
}


@lru_cache(maxsize=256)
def fields(body: bytes) -> Mapping[str, float]:
    """The known fields, by our names; what no server can mean (nan, less than 0, more than 10^15) is left out."""
    found: dict[str, float] = {}
    for pair in body[:BODY_CAP].split(b", "):
        key, _, value = pair.partition(b":")
        name = _FIELDS.get(key.lstrip(b" ,."))
        number = _NUMBER.match(value) if name is not None else None
        if name is not None and number is not None and 0 <= (told := float(number[1])) < 1e15:
            found[name] = abs(told)  # no -0.0
    return MappingProxyType(found)


def tokens(body: bytes) -> tuple[int, int]:
    """New and cached tokens of a prefill line."""
    found = _TOKENS.search(body, 0, 200)
    if found is not None:
        return int(found[1]), int(found[2])
    told = fields(body)
    return int(told.get("new_token", 0)), int(told.get("cached_token", 0))


def tokens_of(bodies: Sequence[bytes]) -> tuple[list[int], list[int]]:
    """New and cached tokens of many prefill lines."""
    found = _TOKENS_EACH.findall(b"\n".join([*bodies, b""]))
    if len(found) < len(bodies):
        found = [tokens(body) for body in bodies]
    return [int(new) for new, _ in found], [int(cached) for _, cached in found]


def is_warmup(values: Mapping[str, float]) -> bool:
    """Whether a prefill looks like the server's own first request: one short prompt (per DP rank) on an idle server."""
    return (
        values.get("new_token", 0.0) <= 32
        and values.get("cached_token", 0.0) == 0
        and values.get("running", 0.0) == 0
        and values.get("queued", 0.0) == 0
    )


HEALTH_CHECK = b"#new-seq: 1, #new-token: 1, #cached-token: 0,"


def is_health_check(body: bytes, page: int = 1) -> bool:
    """Whether a prefill is a ``/health`` request: one token, nothing cached.

    Up to 0.5.19 tokens are printed in whole pages (of ``page`` tokens). A request of others that fits into one page and
    comes while nothing runs looks the same; what it generates is still told by decode lines.
    """
    return HEALTH_CHECK in body or (
        page > 1
        and b"#new-seq: 1, #new-token: %d, #cached-token: 0," % page in body
        and b"#running-req: 0, #queue-req: 0" in body
    )
