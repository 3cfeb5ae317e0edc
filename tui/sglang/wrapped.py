"""A record that a terminal or a pager broke into several lines, whole again.

Only those whose end matters: the arguments, the pools and the summary. A break stands anywhere, also in a word, and a
blank that was there may be gone: so a broken record has several readings, and the one that tells most is right.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

from tui.sglang.lines import Line
from tui.sglang.pools import pool_of

BREAK = "\x1f"  # stands where a record was broken
LONGEST = 32 * 1024  # characters of a record that are put together
_MOST_BREAKS = 6  # in a record that is read with and without a blank at each of them
_HEADS = ("server_args=", "max_total_num_tokens=", "Mamba Cache ", "KV Cache ", "Full KV ", "SWA KV ", "Allocating ")
_POOL = re.compile(
    r"(?:[\w.\- ]{1,60} )?KV Cache is allocated\. |Mamba Cache is allocated\. |"
    r"Allocating (?:[\d.]{1,12} GB |\S{1,40} hierarchical )"
)
_STATES = re.compile(r"Mamba Cache is allocated\. (?!.{0,300}intermediate_conv_window_cache size: [\d.]{1,12} ?GB)")
_SUMMARY_ENDS = re.compile(r"context_len=\d+, available_\w{3}_mem=[\d.]+ GB$")  # without the memory up to 0.4.6
_SUMMARY_GOES_ON = re.compile(r"(?!\s?\d{1,9}$)\s?(?:\d{0,9}, ?)?[a-z_]{0,20}=?[\d.]{0,9} ?G?B?$")


def mended(line: Line, held: Line | None) -> tuple[Line, Line | None]:
    """A line, whole if it goes on with the one held, and what is to be held for the next."""
    if held is not None and not line.prefixed:
        record = continued(held.message, line.message)
        line = line if record is None else replace(held, message=record)
    rest = line if line.prefixed and unfinished(line.message) else None
    return (replace(line, message=plain(line.message)) if BREAK in line.message else line), rest


def unfinished(record: str) -> bool:
    """Whether the end of a record is missing, or may be: a Mamba pool's states of a speculation come last."""
    return len(record) <= LONGEST and record.startswith(_HEADS) and all(_cut(text) for text in _readings(record))


def continued(record: str, more: str) -> str | None:
    """An unfinished record with the line behind it; ``None`` if that line does not go on with it."""
    indented = more.startswith(("  ", "\t"))  # by hand, and so broken between words
    joined = f"{record.rstrip()} {more.strip()}" if indented else f"{record.rstrip()}{BREAK}{more.rstrip()}"
    if record.startswith("max_total_num_tokens=") and "context_len=" in plain(record):
        return joined if _SUMMARY_GOES_ON.match(more.rstrip()) else None
    if pool_of(plain(record)) is None or joined.count("intermediate_") > record.count("intermediate_"):
        return joined
    return joined if _told(plain(joined)) > _told(plain(record)) else None


def plain(record: str) -> str:
    """A record without its breaks, as the reading that tells most has it."""
    return max(_readings(record), key=lambda text: (not _cut(text), _told(text)))


def _readings(record: str) -> list[str]:
    pieces = record.split(BREAK)
    if len(pieces) > _MOST_BREAKS or record.startswith("server_args="):
        return ["".join(pieces)]
    glue = product(("", " "), repeat=len(pieces) - 1)
    return [pieces[0] + "".join(map("".join, zip(blanks, pieces[1:], strict=True))) for blanks in glue]


def _cut(text: str) -> bool:
    text = text.rstrip()
    if text.startswith("server_args="):
        return text[-1] not in ")}"
    if text.startswith("max_total_num_tokens="):
        return _SUMMARY_ENDS.search(text) is None
    return _POOL.match(text) is not None and (pool_of(text) is None or _STATES.match(text) is not None)


def _told(text: str) -> int:
    pool = pool_of(text)
    return 0 if pool is None else len(pool.parts) + sum(x is not None for x in (pool.tokens, pool.slots, pool.layout))
