"""The real program as a child process, and the processes of the servers it launched, seen from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

HCS_TUI = Path(sys.executable).parent / "hcs-tui"
PATIENCE = 900.0  # seconds for one start of the server on two cores that others use as well


@dataclass(frozen=True)
class Answer:
    """How a command ended. ``out`` is what scripts read, ``err`` what people read."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        """One object per line of standard output."""
        return [json.loads(line) for line in self.out.splitlines()]

    def __str__(self) -> str:
        return f"exit {self.code}\n{self.out[-4000:]}\n{self.err[-4000:]}"


def hcs_tui(*arguments: str) -> Answer:
    """Run ``hcs-tui`` to its end."""
    command = [str(HCS_TUI), *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE + 60, check=False)
    return Answer(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def complete(url: str, tokens: int) -> dict[str, Any]:
    """Ask the server for exactly ``tokens`` tokens."""
    body = {"model": "tiny", "prompt": "The quick brown", "max_tokens": tokens, "temperature": 0, "ignore_eos": True}
    request = Request(f"{url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=300) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def get(url: str, path: str) -> bytes:
    """The body of an answer with status 200."""
    with urlopen(url + path, timeout=60) as response:
        body: bytes = response.read()
    return body


def working_in(folder: Path) -> set[int]:
    """The processes whose working folder is ``folder``. SGLang renames its processes; it never moves them."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink() == folder:
                found.add(int(entry.name))
        except OSError:
            continue  # it ended meanwhile
    return found


def end_all(folder: Path) -> None:
    """After a failed test: leave nothing behind."""
    for pid in working_in(folder):
        os.kill(pid, signal.SIGKILL)
