"""The ``nvidia-smi`` of a simulated host: ``python -m tui.demo.nvidia_smi FOLDER QUERY --format=csv,noheader,nounits``.

It answers ``--query-gpu=…`` and ``--query-compute-apps=…`` in the form of NVIDIA's tool.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tui.demo.machine import Machine, OnGpu
from tui.demo.sizes import CARD_MIB

_NAME = "Simulated 96 GB GPU"
_LIMIT, _IDLE, _BUSY = 600, 68, 482  # watts
_COOL, _WARMER = 34, 33  # °C of an idle GPU, and how much warmer a busy one is


def _uuid(gpu: int) -> str:
    return f"GPU-51a7ed00-0000-4000-8000-{gpu:012d}"


def gpus(machine: Machine) -> list[dict[str, str]]:
    """A row for each GPU."""
    held = list(machine.on_gpus().values())
    return [_gpu(index, [one for one in held if one.gpu == index]) for index in range(machine.hardware.gpus)]


def _gpu(index: int, held: list[OnGpu]) -> dict[str, str]:
    busy = min(100, sum(one.busy for one in held))
    return {
        "index": str(index),
        "uuid": _uuid(index),
        "name": _NAME,
        "memory.total": str(CARD_MIB),
        "memory.used": str(min(CARD_MIB, sum(one.mib for one in held))),
        "utilization.gpu": str(busy),
        "power.draw": f"{_IDLE + (_BUSY - _IDLE) * busy / 100:.2f}",
        "power.limit": f"{_LIMIT:.2f}",
        "temperature.gpu": str(_COOL + _WARMER * busy // 100),
    }


def apps(machine: Machine) -> list[dict[str, str]]:
    """A row for each process on a GPU."""
    return [
        {"gpu_uuid": _uuid(one.gpu), "pid": str(pid), "used_memory": str(one.mib)}
        for pid, one in sorted(machine.on_gpus().items())
    ]


_QUERIES = {"--query-gpu": gpus, "--query-compute-apps": apps}


def main(argv: list[str]) -> int:
    """Print the columns that were asked for; the status is 2 for anything else."""
    folder, *words = argv
    kind, _, columns = words[0].partition("=") if words else ("", "", "")
    if kind not in _QUERIES or words[1:] != ["--format=csv,noheader,nounits"]:
        print("The demo's nvidia-smi answers --query-gpu and --query-compute-apps as CSV only.", file=sys.stderr)
        return 2
    for row in _QUERIES[kind](Machine(Path(folder))):
        try:
            print(", ".join(row[column] for column in columns.split(",")))
        except KeyError as error:
            print(f'Field "{error.args[0]}" is not a valid field to query.')
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
