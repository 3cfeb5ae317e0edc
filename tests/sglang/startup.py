"""Whole logs from a few words: the start-up lines of an SGLang release, and the frames of its tracebacks.

A line ``%start VERSION RANKS UNTIL [flag=value …]`` of a case becomes the lines that this release prints until it has
reached the step ``UNTIL``; ``%tb STACK+STACK [^]`` becomes the frames of a traceback (``^``: with the marks of newer
Pythons). What is printed is data: ``tests/data/startup.txt``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

FILE = Path(__file__).parent.parent / "data" / "startup.txt"
_PACKAGES = "/opt/venv/lib/python3.12/site-packages/"


@dataclass(frozen=True)
class Row:
    """One line that SGLang prints in a step of its start, and in which releases."""

    step: str
    first: tuple[int, ...]
    last: tuple[int, ...]
    who: str
    text: str


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3])


def _read() -> tuple[list[Row], dict[str, list[list[str]]]]:
    rows: list[Row] = []
    stacks: dict[str, list[list[str]]] = {}
    frames: list[list[str]] | None = None
    for line in FILE.read_text().splitlines():
        if line.startswith("%stack "):
            frames = stacks.setdefault(line.split()[1], [])
        elif frames is not None:
            frames.append(line.split(" | ", 3))
        elif not line.startswith("#"):
            step, first, last, who, text = line.split(" | ", 4)
            rows.append(Row(step, version(first), version(last), who, text.replace("\\r", "\r")))
    return rows, stacks


ROWS, STACKS = _read()
STEPS = tuple(dict.fromkeys(row.step for row in ROWS))


def stack(names: str, marks: bool = False) -> Iterator[str]:
    """The frames of some named stacks, joined by ``+``, outermost first."""
    for path, line, function, source in (frame for name in names.split("+") for frame in STACKS[name]):
        place = _PACKAGES + (path[3:] if path.startswith("///") else "sglang/srt/" + path)
        if path.startswith("//") and not path.startswith("///"):
            place = "/usr/lib/python3.12/" + path[2:]
        yield f'  File "{place}", line {line}, in {function}'
        yield f"    {source}"
        if marks:
            yield "    " + "^" * len(source)


def startup(release: str, ranks: str, until: str, flags: dict[str, str]) -> Iterator[str]:
    """The lines of a start, as this release prints them, up to and with the step ``until``; ranks: ``TP0,TP1`` or -."""
    known, names = version(release), [] if ranks == "-" else ranks.split(",")
    args = {
        "model_path": "/models/Qwen3-32B",
        "mem_fraction_static": "0.85",
        "tp_size": str(max(1, len(names))),
    } | flags
    values = {key: value if value[0].isdigit() or value == "True" else f"'{value}'" for key, value in args.items()}
    listed = ", ".join(f"'{k}': {v}" if known >= (0, 5, 19) else f"{k}={v}" for k, v in values.items())
    clock = count()
    for row in ROWS[: max(n for n, row in enumerate(ROWS, 1) if row.step == until)]:
        if (
            not row.first <= known
            or known > row.last
            or (row.step == "host" and "enable_hierarchical_cache" not in args)
        ):
            continue
        text = row.text.format(args=listed, size=args.get("hicache_size", "60")) if "{" in row.text else row.text
        heads = {"each": names or [""], "first": [names[0] if names else ""], "main": [""]}.get(row.who)
        if heads is None:
            yield text
        for rank in heads or ():
            minutes, seconds = divmod(next(clock), 60)
            yield f"[2026-03-01 10:{minutes:02d}:{seconds:02d}{' ' + rank if rank else ''}] {text}"


def expand(text: str) -> str:
    """``text`` with its ``%start`` and ``%tb`` lines written out."""
    out: list[str] = []
    for line in text.split("\n"):
        words = line.split()
        if line.startswith("%start "):
            out += startup(words[1], words[2], words[3], dict(word.split("=", 1) for word in words[4:]))
        elif line.startswith("%tb "):
            out += stack(words[1], "^" in words[2:])
        else:
            out.append(line)
    return "\n".join(out)
