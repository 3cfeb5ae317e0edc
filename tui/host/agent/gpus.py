"""Who holds GPU memory, as the driver's own tool tells it."""

from __future__ import annotations

import os
import select
import signal

from .jobs import memory_file, spawn
from .loop import monotonic
from .tuples import NamedTuple

QUERY = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
PATIENCE = 10.0  # seconds: without persistence mode the driver is loaded anew
NO_TOOL = 127


class Holders(NamedTuple):
    """``mebibytes`` by pid (``None`` where the driver does not say); ``trouble`` says why that could not be asked."""

    mebibytes: dict[int, int | None]
    trouble: str = ""


def holders() -> Holders:
    """Blocks for at most ``PATIENCE`` seconds: for processes that do nothing else."""
    status, output = run(QUERY)
    if status == NO_TOOL:
        return Holders({}, "no GPU tool (nvidia-smi) on this host")
    if status is None:
        return Holders({}, "nvidia-smi gave no answer within %.0f s" % PATIENCE)
    if status:
        return Holders({}, "nvidia-smi failed: %s" % (output.strip().splitlines() or ["status %d" % status])[-1][:120])
    return Holders(parse(output))


def parse(text: str) -> dict[int, int | None]:
    """``1234, 18432`` a line; several lines of one pid are several GPUs. Other lines are remarks."""
    found: dict[int, int | None] = {}
    for line in text.splitlines():
        pid, _, used = (word.strip() for word in line.partition(","))
        if pid.isdigit():
            mebibytes = int(used) if used.isdigit() else None
            before = found.get(int(pid))
            found[int(pid)] = mebibytes if before is None else before + (mebibytes or 0)
    return found


def run(argv: list[str]) -> tuple[int | None, str]:
    """(status, output) of a command; ``None`` when it did not end in time, and then it is killed, not waited for: the
    driver may hold it."""
    read, write = os.pipe()
    source = memory_file("hcs-gpus", b"")
    pid = spawn(argv, (source, write, write))
    os.close(source)
    os.close(write)
    output, until = b"", monotonic() + PATIENCE
    while select.select([read], [], [], max(0.0, until - monotonic()))[0]:
        data = os.read(read, 65536)
        if not data:
            word = os.waitpid(pid, 0)[1]
            status = os.WEXITSTATUS(word) if os.WIFEXITED(word) else -os.WTERMSIG(word)
            return status, output.decode("utf-8", "replace")
        output += data
    os.kill(pid, signal.SIGKILL)
    return None, output.decode("utf-8", "replace")
