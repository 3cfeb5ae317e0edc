"""How soon a person sees the dashboard: from the start of ``hcs-tui PROFILE`` to its first paint, and to the servers.

The first paint is the frame with the profile's name; the profile is read behind it, and its servers are painted then.

On a real pty, as a terminal would run it; nothing is injected. The host of the profile is a port of this machine where
nobody listens: no paint waits for a host. Prints medians of several runs.

    python -m tests.bench.first_paint [--runs 9] [--nice 10]
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from tests.bench._rig import load, prefer
from tests.bench._tidy import tidy

HCS_TUI = Path(sys.executable).parent / "hcs-tui"
PROFILE = """\
name: paint
hosts:
  box: {{ssh: "someone@127.0.0.1:{port}"}}
servers:
  first-seen: {{host: box, port: 30000, args: {{model-path: /models/m}}}}
  second: {{host: box, port: 30001, args: {{model-path: /models/m}}}}
  third: {{host: box, port: 30002, args: {{model-path: /models/m}}}}
  fourth: {{host: box, port: 30003, args: {{model-path: /models/m}}}}
"""
FRAME, SEEN = b"SERVERS", b"first-seen"
ROWS, COLUMNS = 36, 120
DEADLINE = 30.0  # seconds; a run that takes longer is an error, not a measurement


def start(command: list[str], env: dict[str, str]) -> tuple[subprocess.Popen[bytes], int, float]:
    """Run ``command`` on a new pty: the process, our end of the pty, and the moment before the start."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True)
    os.close(theirs)
    return process, ours, began


def seconds_to(mark: bytes, command: list[str], env: dict[str, str]) -> float:
    """Seconds until ``mark`` has been written to the terminal. The process is ended then."""
    process, terminal, began = start(command, env)
    seen = bytearray()
    try:
        while mark not in seen:
            ready, _, _ = select.select([terminal], [], [], DEADLINE)
            try:
                data = os.read(terminal, 65536) if ready else b""
            except OSError:  # the other end is closed: the process has ended
                data = b""
            if not data:
                raise RuntimeError(f"{' '.join(command)} showed no {mark!r}:\n{seen[-2000:].decode(errors='replace')}")
            seen += data
        return time.perf_counter() - began
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(terminal)


def closed_port() -> int:
    """A port of the loopback address where nobody listened a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def row(name: str, samples: list[float]) -> str:
    """One line of the table, in milliseconds."""
    figures = (statistics.median(samples), min(samples), max(samples))
    return f"{name:<44}" + "".join(f"{1000 * figure:>9.0f}" for figure in figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--nice", type=int, default=0, help="go before the neighbours by so many levels")
    options = parser.parse_args()
    runs = options.runs
    prefer(options.nice)
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "HOME": home, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        profile = Path(home, "paint.yaml")
        profile.write_text(PROFILE.format(port=closed_port()))
        measured = {
            "python starts and prints": (b"up", [sys.executable, "-c", "print('up', flush=True)"]),
            "hcs-tui --version": (b"hcs-tui", [str(HCS_TUI), "--version"]),
            "hcs-tui PROFILE, first paint": (FRAME, [str(HCS_TUI), str(profile)]),
            "hcs-tui PROFILE, first paint of a server": (SEEN, [str(HCS_TUI), str(profile)]),
        }
        print(f"{runs} runs each, {load()}\n")
        print(f"{'ms from the start of the process':<44}{'median':>9}{'least':>9}{'most':>9}")
        for name, (mark, command) in measured.items():
            seconds_to(mark, command, env)  # files into the page cache
            print(row(name, [seconds_to(mark, command, env) for _ in range(runs)]), flush=True)


if __name__ == "__main__":
    with tidy():
        main()
