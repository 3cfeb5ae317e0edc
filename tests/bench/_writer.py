"""Writes serving logs of many servers from one process, at a steady rate.

    python -m tests.bench._writer LINES_PER_SECOND SECONDS FILE...

Each file gets its lines in batches, twenty a second or one by one where that is less; the files take turns. The lines
are those of a busy SGLang server, about 195 bytes on average. The last line of each file is ``END OF FLOOD``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

BATCHES = 20  # a second
END = b"END OF FLOOD"

_STAMP = b"[2026-11-30 00:00:00"
_DECODE = (
    "{stamp} TP0] Decode batch, #running-req: {n}, #full token: {k}, full token usage: 0.{u:02}, mamba num: {n}, "
    "mamba usage: 0.{m:02}, accept len: 2.{u:02}, cuda graph: True, gen throughput (token/s): {k}.{m:02}, "
    "#queue-req: 12"
)
_PREFILL = (
    "{stamp} TP0] Prefill batch, #new-seq: 1, #new-token: {k}, #cached-token: {n}, full token usage: 0.{u:02}, "
    "mamba usage: 0.{m:02}, #running-req: {n}, #queue-req: 3, cuda graph: False, input throughput (token/s): {k}.{u:02}"
)
_ACCESS = '{stamp}] INFO:     10.0.0.{n}:4{k:04} - "POST /v1/chat/completions HTTP/1.1" 200 OK'


def lines(count: int) -> list[bytes]:
    """``count`` different lines, of ten eight of decodes, one of a prefill and one of an access."""
    kinds = [_DECODE] * 8 + [_PREFILL, _ACCESS]
    return [
        kinds[i % 10].format(stamp=_STAMP.decode(), n=i % 64, k=i * 37 % 9999, u=i % 100, m=i * 7 % 100).encode()
        for i in range(count)
    ]


def flood(paths: Sequence[str], rate: float, seconds: float) -> None:
    """Append to every file; it is where its server would write."""
    files = [os.open(path, os.O_WRONLY | os.O_APPEND) for path in paths]
    batch = max(1, round(rate / BATCHES))
    interval = batch / rate
    pool = lines(max(1000, batch))
    pieces = [b"\n".join(pool[at : at + batch]) + b"\n" for at in range(0, len(pool) - batch + 1, batch)]
    began = time.monotonic()
    for turn in range(int(seconds / interval)):
        stamp = time.strftime("[%Y-%m-%d %H:%M:%S").encode()
        data = pieces[turn % len(pieces)].replace(_STAMP, stamp)
        for place, file in enumerate(files):
            due = began + (turn + place / len(files)) * interval
            if (wait := due - time.monotonic()) > 0:
                time.sleep(wait)
            os.write(file, data)
    for file in files:
        os.write(file, END + b"\n")


if __name__ == "__main__":
    flood(sys.argv[3:], float(sys.argv[1]), float(sys.argv[2]))
