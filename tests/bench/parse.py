"""How fast logs are read. Run it from the root of a checkout: ``python -m tests.bench.parse [--gigabyte]``.

Prints lines per second of the live path (64 KiB chunks, the facts after each) for several kinds of serving logs, and
with ``--gigabyte`` the time and the peak of anonymous memory that reading a 1 GB log takes.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tui.sglang.parser import LogParser, read

CHUNK = 64 * 1024
START = b"[2026-07-30 13:35:11] The server is fired up and ready to roll!\n"


def stamp(second: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(1_780_000_000 + second))


def decode(second: int, rank: str, dice: random.Random) -> str:
    return (
        f"[{stamp(second)}{rank}] Decode batch, #running-req: {dice.randrange(1, 48)}, "
        f"#full token: {dice.randrange(100_000)}, full token usage: {dice.random():.2f}, "
        f"mamba num: {dice.randrange(48)}, mamba usage: {dice.random():.2f}, accept len: {1 + 2 * dice.random():.2f}, "
        f"gen throughput (token/s): {900 * dice.random():.2f}, #queue-req: {dice.randrange(12)}\n"
    )


def prefill(second: int, rank: str, dice: random.Random) -> str:
    return (
        f"[{stamp(second)}{rank}] Prefill batch, #new-seq: {dice.randrange(1, 9)}, "
        f"#new-token: {dice.randrange(2, 8192)}, #cached-token: {dice.randrange(9000)}, "
        f"token usage: {dice.random():.2f}, #running-req: {dice.randrange(48)}, #queue-req: {dice.randrange(12)}, "
        f"cuda graph: False, input throughput (token/s): {9000 * dice.random():.2f}\n"
    )


def access(second: int, rank: str, dice: random.Random) -> str:
    client = f"10.0.0.{dice.randrange(255)}:{dice.randrange(30000, 60000)}"
    return f'[{stamp(second)}] INFO:     {client} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'


def log(lines: int, per_second: int, ranks: tuple[str, ...], shares: tuple[int, int, int], block: int = 0) -> bytes:
    """A serving log: decode, prefill and access lines in the given shares. ``block``: how many such came before."""
    dice = random.Random(block)
    makers = dice.choices((decode, prefill, access), weights=shares, k=lines)
    return "".join(
        make((block * lines + n) // per_second, dice.choice(ranks), dice) for n, make in enumerate(makers)
    ).encode()


CASES: tuple[tuple[str, int, tuple[str, ...], tuple[int, int, int]], ...] = (
    ("decode lines, 50 a second", 50, (" TP0",), (1, 0, 0)),
    ("decode lines, 4 DP ranks, 20 a second", 20, (" DP0 TP0", " DP1 TP1", " DP2 TP2", " DP3 TP3"), (1, 0, 0)),
    ("decode and prefill lines, 20 a second", 20, ("",), (3, 1, 0)),
    ("all kinds, 20 a second", 20, (" TP0",), (6, 2, 2)),
    ("prefill lines, 20 a second", 20, (" TP0",), (0, 1, 0)),
    ("decode lines, 1 a second", 1, (" TP0",), (1, 0, 0)),
)


def live(data: bytes) -> float:
    """Seconds to read ``data`` in chunks with the facts after each."""
    parser = LogParser()
    parser.feed(START)
    begun = time.perf_counter()
    for start in range(0, len(data), CHUNK):
        parser.feed(data[start : start + CHUNK])
        parser.facts()
    return time.perf_counter() - begun


def whole(data: bytes) -> float:
    """Seconds to read ``data`` as ``parse`` does."""
    begun = time.perf_counter()
    read(data[start : start + CHUNK] for start in range(0, len(data), CHUNK))
    return time.perf_counter() - begun


def table() -> None:
    print(f"{'log':<40} {'bytes/line':>10} {'live, lines/s':>14} {'parse, lines/s':>15}")
    for name, per_second, ranks, shares in CASES:
        data = log(200_000, per_second, ranks, shares)
        lines = data.count(b"\n")
        best = min(live(data) for _ in range(3))
        parse = min(whole(START + data) for _ in range(3))
        print(f"{name:<40} {len(data) / lines:>10.0f} {lines / best:>14,.0f} {lines / parse:>15,.0f}")


_CHILD = """
import re, sys, time
from pathlib import Path
from tui.sglang.parser import read
def anonymous():
    return int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
peak = 0.0
def chunks(path):
    global peak
    with open(path, "rb") as stream:
        while chunk := stream.read(65536):
            yield chunk
            if stream.tell() % (64 * 65536) == 0:
                peak = max(peak, anonymous())
begun = time.perf_counter()
facts = read(chunks(sys.argv[1]))
took, work = time.perf_counter() - begun, time.process_time()
gb = facts.size / 1e9
print(f"{gb:.2f} GB, {facts.lines:,} lines: {took:.1f} s ({work:.1f} of CPU), peak {peak:.0f} MB anonymous")
"""


def pieces(total: int) -> Iterator[bytes]:
    size, number = 0, 0
    while size < total:
        block = log(200_000, 20, (" TP0",), (8, 1, 1), number)
        yield block
        size, number = size + len(block), number + 1


def gigabyte() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        with path.open("wb") as stream:
            stream.write(START)
            for block in pieces(1_000_000_000):
                stream.write(block)
        subprocess.run([sys.executable, "-c", _CHILD, str(path)], check=True)


if __name__ == "__main__":
    table()
    if "--gigabyte" in sys.argv:
        gigabyte()
