"""A failure in a few words, for one row of a board."""

from __future__ import annotations

import re

from tui.sglang.memory import RESERVE_GB
from tui.sglang.model import Failure, FailureKind
from tui.sglang.safe import safe

WIDTH = 110  # characters that a row has room for

_LABELS = {
    FailureKind.OOM_GPU_STATIC: "GPU memory",
    FailureKind.OOM_GPU_RUNTIME: "GPU memory while serving",
    FailureKind.OOM_CUDA_GRAPH: "GPU memory for CUDA graphs",
    FailureKind.OOM_HOST_HICACHE: "host memory",
    FailureKind.OS_OOM_KILLED: "killed for want of host memory",
    FailureKind.BAD_ARGUMENT: "command line",
    FailureKind.BAD_FLAG_COMBINATION: "flags",
    FailureKind.MODEL_NOT_FOUND: "model not found",
    FailureKind.PORT_IN_USE: "port taken",
    FailureKind.IMPORT_ERROR: "import",
    FailureKind.NCCL: "NCCL",
    FailureKind.WATCHDOG: "watchdog",
    FailureKind.ILLEGAL_MEMORY_ACCESS: "illegal GPU memory access",
    FailureKind.SCHEDULER_EXCEPTION: "scheduler",
    FailureKind.CHILD_DIED: "process died",
    FailureKind.MULTI_NODE: "other node",
    FailureKind.KERNEL_COMPILE: "kernel compile",
    FailureKind.OTHER: "failed",
}
_HOST = re.compile(r"Requesting (?P<asked>[\d.]+) GB but only have (?P<free>-?[\d.]+) GB free")
_ROOM = re.compile(r"(?P<free>-?[\d.]+) GB (?P<how>left after|free less) SGLang's")
_REMEDIES = (
    re.compile(r"(--hicache-size \d+ or less)"),
    re.compile(r"lower (--mem-fraction-static) from [\d.]+ to (?P<to>[\d.]+)"),
    re.compile(r"(--mem-fraction-static) must be above [\d.]+; (?P<to>[\d.]+)"),
    re.compile(r"(--mem-fraction-static above [\d.]+)"),
    re.compile(r"(--(?:cuda-graph-max-bs|max-running-requests)[\w-]*) from \d+ to (?P<to>\d+)"),
    re.compile(r"(kill \d+)"),
    re.compile(r"→ (--[\w-]+)"),
    re.compile(r"(--watchdog-timeout \d+)"),
    re.compile(r"(?:Set|Use|Try another) (--[\w-]+(?: \w+)?)"),
)
_NAMED = {
    FailureKind.PORT_IN_USE: re.compile(r"(?:holds port|^Port) (\d{1,5})"),
    FailureKind.MODEL_NOT_FOUND: re.compile(r"(?:^On the host, look at (\S{1,80}):|^(\S{1,80}) )"),
}
_MESSAGE = re.compile(
    r"^(?:.{0,300}?\b)??(?:[A-Za-z_][\w.]*\.)?(?:[A-Z]?\w*(?:Error|Exception)|error|ERROR): +(?P<text>\S.*)$", re.DOTALL
)
_MUTE = re.compile(r"The server ended (?:by|with) (?P<how>(?:status )?\S{1,20}) and its log gives no reason")
_STAMP = re.compile(r"\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[^\]]{0,40}\] ?")
_PREFIX = re.compile(r"^.{0,200}?\[\d{4}-\d\d-\d\d [^\]]{8,60}\] ")


def short(failure: Failure) -> str:
    """``host memory: wants 150.10 GB, 48.2 GB free → --hicache-size 98 or less``: what it is, and what to do."""
    first = failure.advice[0] if failure.advice else ""
    remedy = _remedy(first)
    mute = _MUTE.match(failure.explanation) if not failure.line.strip() else None
    how = f" without a word ({mute['how']})" if mute else f": {_gist(failure, first)}"
    said = _LABELS[failure.kind] + how
    room = WIDTH - (len(remedy) + 3 if remedy else 0)
    said = said if len(said) <= room else said[: room - 1].rstrip() + "…"
    return f"{said} → {remedy}" if remedy else said


def _gist(failure: Failure, advice: str) -> str:
    if failure.kind is FailureKind.OOM_HOST_HICACHE and (found := _HOST.search(failure.line)):
        room = _ROOM.search(advice)
        if room and room["how"] == "free less":  # the line tells of all that is free, and stands beside this
            return f"wants {found['asked']} GB, {found['free']} GB free, {RESERVE_GB:.1f} of it reserved"
        return f"wants {found['asked']} GB, {room['free'] if room else found['free']} GB free"
    named = _NAMED.get(failure.kind)
    if named is not None and (what := named.search(advice)):
        return what[1] or what[what.lastindex or 1]
    if failure.line_number == 0 or not failure.line.strip():
        return failure.explanation
    line = _PREFIX.sub("", seen(failure.line[:2_000]))
    message = _MESSAGE.match(line)
    said = untimed(message["text"] if message else line)
    return said.removesuffix(")") if said.count(")") > said.count("(") else said  # it stood in brackets


def seen(line: str) -> str:
    """What is to be seen of a line: no escapes, and nothing in place of what has no shape."""
    return safe(line).replace("\ufffd", "")


def untimed(line: str) -> str:
    """A line in one row, without time stamps."""
    return " ".join(_STAMP.sub("", seen(line)).split())


def _remedy(advice: str) -> str:
    for pattern in _REMEDIES:
        found = pattern.search(advice)
        if found is not None:
            to = found.groupdict().get("to")
            return f"{found[1]} {to}" if to else found[1]
    return ""
