"""Why a server failed, by its log: the one line that explains it, in plain words, with advice.

``observe(trace, line) -> Trace`` collects, ``cause(trace, facts) -> Failure | None`` concludes, and
``fatal(trace)`` says whether the failure stands even though the process may still live. All are pure and total.
Only what reads logs imports this: its tables of messages take long to load.
"""

from __future__ import annotations

import re

from tui.sglang.advice import advise
from tui.sglang.clue import Clue
from tui.sglang.failure_row import SYMPTOM, match
from tui.sglang.failure_table import EXCEPTIONS, GRAPH_OUT_OF_MEMORY, UNEXPLAINED, UNEXPLAINED_MAIN
from tui.sglang.logfacts import LogFacts
from tui.sglang.model import Failure, FailureKind, Stage
from tui.sglang.trace import EMPTY, Trace, clue, is_fatal, observe

__all__ = ["EMPTY", "Trace", "cause", "fatal", "observe"]

_CAPTURE = re.compile(r"Capture .{0,40}graph failed: (?P<why>.*)", re.IGNORECASE | re.DOTALL)
_ATTENTION_BACKEND = re.compile(r"^attention/(?P<backend>\w+?)_(?:attention_)?backend\w*\.py$")
_UNSUITED = re.compile(r"^(?:AttributeError: 'NoneType'|NotImplementedError|AssertionError|UnboundLocalError)")
_NAMES_A_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9]+(?:-[a-z0-9]+)+")
_FLAG_FILES = re.compile(r"(?:^|/)server_args\w*\.py$|^(?:arg_groups|model_overrides|fields)/\w+\.py$")


def fatal(trace: Trace) -> bool:
    """Whether the failure stands even if the server's process still lives."""
    found = clue(trace)
    return is_fatal(trace) and not (trace.stopping and (found is None or found.weight <= SYMPTOM))


def cause(trace: Trace, facts: LogFacts) -> Failure | None:
    """What the log says about why the server failed; ``None`` when it says nothing of the kind."""
    found = clue(trace)
    if (
        found is None
        or (found.weight <= SYMPTOM and trace.stopping)
        or ((found.bare or found.weight < SYMPTOM) and not is_fatal(trace))
    ):
        return None
    kind, explanation = _judge(found, facts)
    return Failure(kind, found.line, found.number, explanation, advise(kind, found.line, facts))


def _judge(found: Clue, facts: LogFacts) -> tuple[FailureKind, str]:
    """Kind and explanation of a clue, with what else is known of the server."""
    capture = _CAPTURE.search(found.text)
    if capture is not None:
        return _capture(capture["why"])
    if found.explanation is None:
        return _unexplained(found, facts)
    if found.kind is None:
        return _out_of_memory(found, facts)
    if "JSONDecodeError" in found.text and _FLAG_FILES.search(found.frame):
        return FailureKind.BAD_ARGUMENT, "A flag wants JSON, and its value is none."
    if found.kind is FailureKind.CHILD_DIED and "exit code -9" in found.text and _big_host_cache(facts):
        return (
            FailureKind.OS_OOM_KILLED,
            "A process was ended by SIGKILL, most often by the kernel's OOM killer; a host cache of this "
            "size makes that likely.",
        )
    if found.kind is FailureKind.OOM_HOST_HICACHE and not _mentions_cache(found) and not _hicache(facts):
        return FailureKind.OTHER, found.explanation
    return found.kind, found.explanation


def _capture(why: str) -> tuple[FailureKind, str]:
    """``Capture cuda graph failed: X`` is judged by X; the four hints that SGLang prints are about memory only."""
    row = match(why, EXCEPTIONS) or match(f"Exception: {why}", EXCEPTIONS)
    if row is None:
        return FailureKind.SCHEDULER_EXCEPTION, "The capture of CUDA graphs failed, and not for lack of memory."
    if row.kind in (None, FailureKind.OOM_GPU_STATIC, FailureKind.OOM_GPU_RUNTIME):
        return FailureKind.OOM_CUDA_GRAPH, GRAPH_OUT_OF_MEMORY
    assert row.kind is not None
    return row.kind, f"{row.explanation} (It happened while CUDA graphs were captured.)"


def _out_of_memory(found: Clue, facts: LogFacts) -> tuple[FailureKind, str]:
    if found.where == "host" and "Tried to allocate" not in found.text:
        return FailureKind.OOM_HOST_HICACHE, "The host memory for HiCache could not be allocated or pinned."
    if found.where == "graph":
        return FailureKind.OOM_CUDA_GRAPH, GRAPH_OUT_OF_MEMORY
    if facts.ready or found.where == "run" or facts.stage in (Stage.READY, Stage.WARMUP):
        return FailureKind.OOM_GPU_RUNTIME, "A GPU ran out of memory while the server worked on requests."
    if facts.stage is Stage.CUDA_GRAPH and found.where != "load":
        return FailureKind.OOM_CUDA_GRAPH, GRAPH_OUT_OF_MEMORY
    return FailureKind.OOM_GPU_STATIC, "A GPU ran out of memory while the model and its caches were set up."


def _unexplained(found: Clue, facts: LogFacts) -> tuple[FailureKind, str]:
    """An exception that the table does not know: its place and the flags may tell."""
    if _FLAG_FILES.search(found.frame):
        return FailureKind.BAD_FLAG_COMBINATION, "SGLang refuses these flags, or this combination of them."
    backend = _ATTENTION_BACKEND.match(found.frame)
    if backend is not None and _UNSUITED.match(found.text):
        return FailureKind.BAD_FLAG_COMBINATION, _unsuited(backend["backend"], facts)
    if _NAMES_A_FLAG.search(found.text) and not facts.ready and facts.stage not in (Stage.READY, Stage.WARMUP):
        return FailureKind.BAD_FLAG_COMBINATION, "SGLang refuses the value of a flag, or a combination of flags."
    if found.weight <= SYMPTOM:
        return FailureKind.CHILD_DIED, "A process of the server died; this line is only its echo."
    if found.kind is not None and not found.where and "scheduler" not in found.frame:
        return found.kind, UNEXPLAINED_MAIN
    return FailureKind.SCHEDULER_EXCEPTION, UNEXPLAINED


def _unsuited(backend: str, facts: LogFacts) -> str:
    algorithm = facts.speculative or facts.args.get("speculative_algorithm", "None")
    mode = f"speculative decoding ({algorithm})" if algorithm not in ("None", "", "null") else "this model or mode"
    return f"The attention backend {backend} lacks something that {mode} needs: they do not go together."


def _mentions_cache(found: Clue) -> bool:
    return "host memory" in found.text or "Host" in found.text


def _hicache(facts: LogFacts) -> bool:
    return facts.args.get("enable_hierarchical_cache") == "True" or any(pool.place == "host" for pool in facts.pools)


def _big_host_cache(facts: LogFacts) -> bool:
    return _hicache(facts)
