"""How fast logs are read. Run it from the root of a checkout: ``python -m tests.bench.parse [--gigabyte]``.

Prints lines per second of CPU time, the median of five runs, for logs of every shape that serving has: of the live path
(64 KiB chunks, the facts after each) and of reading it whole. With ``--gigabyte`` also the time and the peak of
anonymous memory that reading a 1 GB log takes.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tui.sglang.facts import read
from tui.sglang.parser import LogParser

CHUNK = 64 * 1024
START = b"[2026-07-30 13:35:11] The server is fired up and ready to roll!\n"


def stamp(second: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(1_780_000_000 + second))


Maker = Callable[[int, str, random.Random], str]


def decode(second: int, rank: str, dice: random.Random, state: str = "", drafts: str = "") -> str:
    return (
        f"[{stamp(second)}{rank}] Decode batch, #running-req: {dice.randrange(1, 48)}, "
        f"#token: {dice.randrange(100_000)}, token usage: {dice.random():.2f}, {state}{drafts}cuda graph: True, "
        f"gen throughput (token/s): {100 + 900 * dice.random():.2f}, #queue-req: {dice.randrange(12)}\n"
    )


def speculative(second: int, rank: str, dice: random.Random) -> str:
    drafts = f"accept len: {1 + 2 * dice.random():.2f}, accept rate: {dice.random():.2f}, "
    return decode(second, rank, dice, drafts=drafts)


def hybrid(second: int, rank: str, dice: random.Random) -> str:
    return decode(second, rank, dice, f"mamba num: {dice.randrange(48)}, mamba usage: {dice.random():.2f}, ")


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


@dataclass(frozen=True)
class Shape:
    """A kind of serving log."""

    name: str
    per_second: int
    ranks: tuple[str, ...] = (" TP0",)
    makers: tuple[Maker, ...] = (decode,)  # in equal shares
    wrap: Callable[[str], str] = str


def data_parallel(size: int) -> tuple[str, ...]:
    return tuple(f" DP{n} TP{n} EP{n}" for n in range(size))


def milliseconds(line: str) -> str:
    return f"{line[:20]}.{len(line) * 37 % 1000:03d}{line[20:]}"


SHAPES = (
    Shape("decode, 50 a second", 50),
    Shape("decode, 1 a second", 1),
    Shape("decode, no rank", 20, ("",)),
    Shape("speculative", 20, makers=(speculative,)),
    Shape("Mamba", 20, makers=(hybrid,)),
    Shape("prefill", 20, makers=(prefill,)),
    Shape("decode and prefill", 20, makers=(decode, decode, decode, prefill)),
    Shape("decode, prefill and access", 20, makers=(decode,) * 3 + (prefill, access)),
    Shape("4 DP ranks", 20, data_parallel(4)),
    Shape("8 DP ranks", 40, data_parallel(8)),
    Shape("8 DP ranks, one line each a second", 8, data_parallel(8)),
    Shape("milliseconds", 20, wrap=milliseconds),
    Shape("docker compose", 20, wrap=lambda line: f"sglang-server-1  | {line}"),
    Shape("Kubernetes (CRI)", 20, wrap=lambda line: f"2026-07-30T13:35:11.977090836Z stdout F {line}"),
)


def log(lines: int, shape: Shape, block: int = 0) -> bytes:
    """A serving log. ``block``: how many such came before."""
    dice = random.Random(block)
    makers = dice.choices(shape.makers, k=lines)
    return "".join(
        shape.wrap(make((block * lines + n) // shape.per_second, dice.choice(shape.ranks), dice))
        for n, make in enumerate(makers)
    ).encode()


def live(data: bytes) -> None:
    """Read ``data`` in chunks with the facts after each, as the fleet does."""
    parser = LogParser()
    parser.feed(START)
    for start in range(0, len(data), CHUNK):
        parser.feed(data[start : start + CHUNK])
        parser.facts()


def whole(data: bytes) -> None:
    """Read ``data`` as ``parse`` does."""
    read(data[start : start + CHUNK] for start in range(0, len(data), CHUNK))


def seconds(work: Callable[[bytes], None], data: bytes) -> float:
    """The median of five runs, in seconds of CPU."""
    times = []
    for _ in range(5):
        begun = time.process_time()
        work(data)
        times.append(time.process_time() - begun)
    return median(times)


def table() -> None:
    print(f"{'log':<36} {'bytes/line':>10} {'live, lines/s':>14} {'whole, lines/s':>15}")
    for shape in SHAPES:
        data = log(100_000, shape)
        lines = data.count(b"\n")
        told = f"{lines / seconds(live, data):>14,.0f} {lines / seconds(whole, START + data):>15,.0f}"
        print(f"{shape.name:<36} {len(data) / lines:>10.0f} {told}", flush=True)


_CHILD = """
import re, sys, time
from pathlib import Path
from tui.sglang.facts import read
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
        block = log(200_000, Shape("", 20, makers=(speculative,) * 8 + (prefill, access)), number)
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
