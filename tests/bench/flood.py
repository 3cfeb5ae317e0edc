"""The dashboard under a flood of log lines: CPU, key to paint, memory, and whether a byte is lost.

    python -m tests.bench.flood [--runs 1] [--seconds 12] [--nice 10] [wall merged pane board million …]

The real program on a real pty; files on the host grow, and their bytes come through an agent over a real sshd on
loopback. Keys are pressed at uneven times; a key is answered when the terminal gets what it changes. CPU is that of
the program alone, in per cent of one core. Prints one row per run and the medians.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench._program import Program, percentile
from tests.bench._rig import Rig, load, prefer, ready_servers
from tests.bench._tidy import tidy
from tests.bench._writer import END

_SGR = rb"(?:\x1b\[[0-9;]*m)*"


@dataclass(frozen=True)
class Scenario:
    """So many servers, each with so many lines a second, and the keys that open the view and are pressed then."""

    servers: int
    rate: float
    opening: bytes
    keys: Callable[[int], Iterator[tuple[bytes, re.Pattern[bytes]]]]
    pauses: tuple[float, float] = (0.1, 0.3)  # between two keys, least and most


def walk(servers: int) -> Iterator[tuple[bytes, re.Pattern[bytes]]]:
    """Down through the servers and up again; the chosen one is marked."""
    at, step = 0, 1
    while True:
        step = -1 if at == servers - 1 else 1 if at == 0 else step
        at += step
        glyph, name = rb"[^\x1b]{1,6}", b"gpu%02d" % at
        yield b"j" if step > 0 else b"k", re.compile(b"\xe2\x96\x8c" + _SGR + glyph + _SGR + glyph + _SGR + name
            + b"|\xe2\x96\x8c" + _SGR + glyph + _SGR + name)  # fmt: skip


def stop_and_go(servers: int) -> Iterator[tuple[bytes, re.Pattern[bytes]]]:
    """Up in the log, which then stands still, and back to its end."""
    while True:
        yield b"k", re.compile(b"End follows")
        yield b"G", re.compile(b"following")


SCENARIOS = {
    "wall": Scenario(16, 1000, b"w", walk),
    "merged": Scenario(16, 1000, b"m", stop_and_go),
    "pane": Scenario(1, 50_000, b"z", stop_and_go),
    "board": Scenario(64, 2, b"", walk, (1.0, 2.0)),
    "million": Scenario(1, 50_000, b"z", stop_and_go),
    "wall4": Scenario(4, 1000, b"w", walk),
}


@dataclass(frozen=True)
class Result:
    """Shares are of one core, times milliseconds, sizes MB."""

    cpu: float
    drawing: float
    waited: float  # the drawing thread, ready to run but without a CPU: the neighbours' doing
    keys: list[float]
    output: float  # MB/s to the terminal
    idle: float
    full: float
    drained: float  # seconds until the last byte was spooled and the last line painted
    whole: bool


def measure(scenario: Scenario, rig: Rig, seconds: float, home: Path) -> Result:
    program = Program([str(rig.profile)], rig.folder)
    try:
        return _measured(scenario, rig, seconds, program)
    finally:
        program.close()


def _measured(scenario: Scenario, rig: Rig, seconds: float, program: Program) -> Result:
    program.until(b"%d ready" % scenario.servers)
    program.send(scenario.opening)
    program.drain(10.0)  # what was announced at the start has gone
    idle = program.memory()
    writer = rig.write(scenario.rate, seconds, list(rig.logs))
    program.drain(1.5)  # the flood is there
    keys = scenario.keys(scenario.servers)
    chance = random.Random(5)
    before, began, written = program.cpu(), time.perf_counter(), program.written
    answers = []
    while time.perf_counter() - began < seconds - 3:
        answers.append(1000 * program.press(*next(keys)))
        program.drain(chance.uniform(*scenario.pauses))
    spent, lasted = program.cpu() - before, time.perf_counter() - began
    output = (program.written - written) / lasted / 1e6
    if len(answers) % 2 and scenario.keys is stop_and_go:
        program.press(*next(keys))
    drained = _drained(program, rig, lambda: writer.poll() is not None)
    return Result(
        spent.all / lasted * 100, spent.drawing / lasted * 100, spent.waited / lasted * 100, answers, output,
        idle, program.memory(), drained, all(rig.same(server) for server in rig.logs),
    )  # fmt: skip


def _drained(program: Program, rig: Rig, over: Callable[[], bool]) -> float:
    """Seconds from the end of the writing until everything is spooled."""
    program.drain(60, over)
    began = time.perf_counter()

    def spooled() -> bool:
        return all(rig.spool(server).stat().st_size == log.stat().st_size for server, log in rig.logs.items())

    if not program.drain(60, lambda: spooled() and END in program.output):
        raise RuntimeError("the end of the flood did not come")
    return time.perf_counter() - began


def row(name: str, results: list[Result]) -> str:
    """Medians over ``results``; key times over all their keys."""
    keys = [key for result in results for key in result.keys]
    middle = statistics.median
    return (
        f"{name:<12}{middle(r.cpu for r in results):7.1f}{middle(r.drawing for r in results):9.1f}"
        f"{middle(r.waited for r in results):8.1f}{middle(keys):10.1f}{percentile(keys, 0.95):7.1f}{max(keys):7.1f}"
        f"{len(keys):6}{middle(r.output for r in results):8.2f}{middle(r.full - r.idle for r in results):9.1f}"
        f"{middle(r.drained for r in results):9.2f}   {'yes' if all(r.whole for r in results) else 'NO'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", default=["wall", "pane", "board"])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--nice", type=int, default=0, help="go before the neighbours by so many levels")
    options = parser.parse_args()
    prefer(options.nice)
    print(
        f"{'':12}{'cpu %':>7}{'drawing':>9}{'waited':>8}{'key ms':>10}{'p95':>7}{'most':>7}{'keys':>6}{'MB/s':>8}"
        f"{'+MB':>9}{'drained':>9}   whole     ({load()})"
    )
    for name in options.scenarios:
        scenario = SCENARIOS[name]
        seconds = 1e6 / scenario.rate + 1 if name == "million" else options.seconds
        results = []
        for _ in range(options.runs):
            with tempfile.TemporaryDirectory() as folder, ready_servers(Path(folder), scenario.servers) as rig:
                results.append(measure(scenario, rig, seconds, Path(folder)))
            if options.runs > 1:
                print(row(f"  {name}", results[-1:]), flush=True)
        print(row(name, results), f"  ({load()})", flush=True)


if __name__ == "__main__":
    with tidy():
        main()
