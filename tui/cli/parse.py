"""``hcs-tui parse``: what a saved log says."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from tui.cli.errors import fail
from tui.cli.exits import Exit
from tui.cli.options import json_option, narrate, print_json, print_text
from tui.profile.files import not_a_file
from tui.sglang import verdict
from tui.sglang.events import LogRead
from tui.sglang.facts import read
from tui.sglang.model import Phase, ServerInfo
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

STEP = 64 * 1024
HEAD = 4 << 20  # bytes in which a log shows whose it is
OTHER_ENGINES = {
    "vLLM": re.compile(
        rb"vLLM API server|vllm serve|\(EngineCore|LLM engine \(v|\(APIServer pid=|Avg prompt throughput:|"
        rb"/vllm/(?:v1|engine|entrypoints)/|[Ee]ngine core initialization failed"
    ),
    "TGI": re.compile(rb"text_generation_(launcher|router)"),
    "llama.cpp": re.compile(rb"llama_model_loader|llama_context|srv  "),
    "TensorRT-LLM": re.compile(rb"\[TRT-LLM\]|\[TensorRT-LLM\]"),
}
# What packed files and other encodings begin with, and how they are read.
PACKED = (
    (b"\x1f\x8b", "is compressed", "zcat {name}"),
    (b"\x28\xb5\x2f\xfd", "is compressed", "zstdcat {name}"),
    (b"\xfd7zXZ", "is compressed", "xzcat {name}"),
    (b"BZh", "is compressed", "bzcat {name}"),
    (b"\xff\xfe", "is in UTF-16", "iconv -f UTF-16 -t UTF-8 {name}"),
    (b"\xfe\xff", "is in UTF-16", "iconv -f UTF-16 -t UTF-8 {name}"),
)
BINARY = re.compile(rb"[\x00-\x06\x0e-\x1a\x7f]")
CODES = {Phase.READY: Exit.OK, Phase.STOPPED: Exit.OK, Phase.FAILED: Exit.FAILED}


@click.command("parse")
@click.argument("log", metavar="LOG|-")
@json_option
def command(log: str, as_json: bool) -> Exit:
    """Read any SGLang log: stage, caches, throughput, failure and advice."""
    if log == "-":
        if sys.stdin is None:
            fail("-: standard input is closed")
        state, at = read_state(sys.stdin.buffer, "stdin", None), time.time()
    else:
        path = _file(log)
        with path.open("rb") as stream:
            state, at = read_state(stream, path.stem or path.name, log), path.stat().st_mtime
    told = state.log.recognized or state.log.stage or state.log.failure
    if as_json:
        from tui.report.json import report

        print_json(report(state, at))
    elif told:
        from tui.report.server import server_text

        print_text(server_text(state, at))
    if not told:
        narrate(f"{log}: nothing in it is told by SGLang")
    return CODES.get(verdict.phase(state), Exit.UNDECIDED)


def read_state(stream: BinaryIO, name: str, log: str | None) -> ServerState:
    """The state at the end of a log, read in steps. Ends the command where it is no log of SGLang."""
    facts = read(_chunks(stream, log or name))
    return reduce(ServerState(ServerInfo(name, log=log)), LogRead(time.time(), facts))


def _file(log: str) -> Path:
    path = Path(log)
    if not path.exists():
        fail(f"{log}: no such file")
    if wrong := not_a_file(path):
        fail(f"{log}: {wrong}; name a log file, or pipe it into `hcs-tui parse -`")
    return path


def _chunks(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """The log in steps; its first megabytes are looked at before anything is believed of them."""
    head = stream.read(HEAD)
    if problem := foreign(head, name):
        fail(f"{name}: {problem}", Exit.UNDECIDED)
    for start in range(0, len(head), STEP):
        yield head[start : start + STEP]
    while chunk := stream.read(STEP):
        yield chunk


def foreign(head: bytes, name: str) -> str:
    """Why the first bytes of the file ``name`` are no log of SGLang, in one line; empty where they may be one."""
    if not head.strip():
        return "is empty: no server has written to it"
    for start, problem, reader in PACKED:
        if head.startswith(start):
            return f"{problem}; read it by `{reader.format(name=shlex.quote(name))} | hcs-tui parse -`"
    if b"sglang" in head.lower():
        return ""
    sample = head[:STEP]
    if len(BINARY.findall(sample)) > len(sample) / 50:
        return "is binary, not a log"
    for engine, mark in OTHER_ENGINES.items():
        if mark.search(head):
            return f"is a log of {engine}; only SGLang's are understood"
    return ""
