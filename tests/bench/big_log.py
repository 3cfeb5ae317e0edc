"""A term at the far end of a large log: how soon the log is shown, and how soon the term is found.

    python -m tests.bench.big_log [--runs 3] [--megabytes 250] [--nice 10]

The real program on a real pty over a running server's log that came through its agent. The term stands in the last
line and is searched for from the log's first line on, and in the first line and is searched for from the end upwards,
with capitals (case matters) and without. While it is searched for, a key is pressed every 50 ms: ``echo`` is the
longest time without output then, which is the longest frozen frame. Prints medians.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from pathlib import Path

from tests.bench._program import Program
from tests.bench._rig import Rig, load, prefer, ready_servers
from tests.bench._tidy import tidy
from tests.bench._writer import lines

FIRST = b"[2026-11-30 00:00:00] FirstThing: nothing before\n"
LAST = b"[2026-11-30 00:10:00] LastThing: nothing behind\n"
SEARCHES = (
    ("down, case matters", b"g", b"LastThing", b"LastThing: nothing behind"),
    ("down, any case", b"g", b"lastthing", b"LastThing: nothing behind"),
    ("up, case matters", b"G", b"FirstThing", b"FirstThing: nothing before"),
    ("up, any case", b"G", b"firstthing", b"FirstThing: nothing before"),
)
_SGR = rb"(?:\x1b\[[0-9;]*m)*"


def fill(log: Path, megabytes: int) -> None:
    """The server's log: it became ready, then served for long."""
    block = b"\n".join(lines(100_000)) + b"\n"
    with log.open("ab") as file:
        file.write(FIRST)
        while file.tell() < megabytes * 1_000_000:
            file.write(block)
        file.write(LAST)


def opened(rig: Rig) -> tuple[Program, float, float]:
    """The program; seconds to the log's last line on the screen, and until all of it is on this side."""
    program = Program([str(rig.profile)], rig.folder)
    program.until(b"LastThing")
    shown = time.perf_counter() - program.began
    size = rig.logs["gpu00"].stat().st_size
    assert program.drain(600, lambda: rig.spool("gpu00").stat().st_size == size)
    whole = time.perf_counter() - program.began
    program.drain(5)
    program.send(b"z")
    program.drain(1)
    return program, shown, whole


def searched(program: Program, place: bytes, term: bytes, line: bytes) -> tuple[float, float, float]:
    """Milliseconds until the line is shown, the longest gap between frames meanwhile, and CPU milliseconds."""
    for keys in (place, b"/", term):
        program.send(keys)
        program.drain(0.4)
    head, rest = line[: len(term)], line[len(term) :]
    mark = re.compile(re.escape(head) + _SGR + re.escape(rest))
    program.output.clear()
    before, began = program.cpu(), time.perf_counter()
    program.send(b"\r")
    pressed = 0
    while not program.drain(0.05, lambda: mark.search(program.output) is not None):
        assert time.perf_counter() - began < 60, f"{term!r} was not found"
        program.send(b"W")  # wraps, and wraps no more
        pressed += 1
    found = program.frames[-1] - began
    gap = program.longest_gap(began, began + found)
    spent = program.cpu() - before
    if pressed % 2:
        program.send(b"W")
    program.drain(1.0)
    return 1000 * found, 1000 * gap, 1000 * spent.drawing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=250)
    parser.add_argument("--nice", type=int, default=0, help="go before the neighbours by so many levels")
    options = parser.parse_args()
    prefer(options.nice)
    with tempfile.TemporaryDirectory() as folder, ready_servers(Path(folder), 1) as rig:
        fill(rig.logs["gpu00"], options.megabytes)
        program, shown, whole = opened(rig)
        try:
            print(
                f"{options.megabytes} MB: its end is shown {shown:.2f} s after the start, all is here at {whole:.1f} s"
            )
            print(f"{'':22}{'found ms':>9}{'most':>7}{'gap ms':>8}{'most':>7}{'cpu ms':>8}   ({load()})")
            for name, *search in SEARCHES:
                rows = [searched(program, *search) for _ in range(options.runs)]
                found, gap, cpu = ([row[n] for row in rows] for n in range(3))
                middle = statistics.median
                print(
                    f"{name:22}{middle(found):9.0f}{max(found):7.0f}{middle(gap):8.0f}{max(gap):7.0f}{middle(cpu):8.0f}",
                    flush=True,
                )
        finally:
            program.close()


if __name__ == "__main__":
    with tidy():
        main()
