"""Failures: an expert's answers for the corpus, SGLang's wordings under every wrapper, and no false alarms."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sglang.failure_cases import Case, cases
from tui.sglang import verdict
from tui.sglang.diagnosis import EMPTY, Trace, cause, fatal, observe
from tui.sglang.events import Exited, Watched
from tui.sglang.failures import from_exit, short, weigh
from tui.sglang.lines import parse
from tui.sglang.logfacts import LogFacts
from tui.sglang.model import Exit, Failure, FailureKind, RunInfo, ServerInfo, Stage
from tui.sglang.reduce import reduce
from tui.sglang.state import ServerState

DATA = Path(__file__).parent.parent / "data"
CORPUS = sorted((DATA / "corpus").glob("*.json"))
_BATCH = re.compile(r"(?:Decode|Prefill) batch[.,\[ ]")


def follow(log: bytes) -> Trace:
    """The trace of a whole log, as the reader of lines builds it."""
    trace = EMPTY
    lines = log.split(b"\n")
    for number, raw in enumerate(lines[:-1] if not lines[-1] else lines, 1):
        raw = raw.removesuffix(b"\r")
        for line in (line for segment in raw.split(b"\r") for line in parse(number, raw, segment)):
            if not _BATCH.match(line.message):
                trace = observe(trace, line)
    return trace


def facts_of(log: str) -> LogFacts:
    """As much of the facts as failures need."""
    args = dict(re.findall(r"(\w+)='?([^,']*)'?", (re.search(r"server_args=.*", log) or [""])[0]))
    stage = Stage.CUDA_GRAPH if re.search(r"Capture .*begin", log) else None
    return LogFacts(args=args, stage=stage, ready="ready to roll" in log, lines=log.count("\n"), last_line="the end")


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_corpus(path: Path) -> None:
    expected = json.loads(path.read_text())["expected"]
    log = path.with_suffix(".log").read_bytes()
    trace = follow(log)
    found = cause(trace, facts_of(log.decode("utf-8", "replace")))
    assert fatal(trace) == (expected["outcome"] == "failed")
    assert (found.kind if found else None) == expected["failure_kind"]
    if found is not None and expected["outcome"] == "failed":
        assert found.line == expected["cause_line"]
        assert log.split(b"\n")[found.line_number - 1].decode("utf-8", "replace") == found.line
        assert found.explanation and found.advice and short(found)


def test_a_cache_whose_tokens_are_pinned_is_not_said_to_be_full() -> None:
    log = (DATA / "corpus" / "059-failed-kimi-k3-mamba-prefill-oom.log").read_bytes()  # 7,956,480 of them "evictable"
    found = cause(follow(log), facts_of(log.decode()))
    assert found is not None and "found no free tokens" in found.explanation and "still in use" in found.explanation


REAL = {
    "0.5.23_end_kill_detokenizer": (FailureKind.CHILD_DIED, "Subprocess detokenizer (pid="),
    "0.5.23_end_scheduler_killed_during_start": (FailureKind.OS_OOM_KILLED, "Rank 0 scheduler died"),
    "0.5.23_fail_bad_flag": (FailureKind.BAD_ARGUMENT, "--no-such-flag 3"),
    "0.5.23_fail_bad_value": (FailureKind.BAD_ARGUMENT, "argument --attention-backend: invalid choice"),
    "0.5.23_fail_corrupt_weights": (FailureKind.OTHER, "SafetensorError"),
    "0.5.23_fail_hicache_no_cuda": (FailureKind.OTHER, "Torch not compiled with CUDA enabled"),
    "0.5.23_fail_missing_model": (FailureKind.MODEL_NOT_FOUND, "OSError: Repo id must be in the form"),
    "0.5.23_fail_no_device_flag": (FailureKind.OTHER, "No accelerator (CUDA"),
    "0.5.23_fail_port_busy": (FailureKind.PORT_IN_USE, "[Errno 98]"),
    "0.5.23_fail_port_busy_http": (FailureKind.PORT_IN_USE, "[Errno 98]"),
    "0.5.23_fail_scheduler_exception_at_warmup": (FailureKind.SCHEDULER_EXCEPTION, "0 active drivers"),
    "0.5.23_fail_unknown_arch": (FailureKind.OTHER, "Cannot find model module"),
}


@pytest.mark.parametrize("path", sorted((DATA / "real").glob("*.log")), ids=lambda path: path.stem)
def test_real_logs(path: Path) -> None:
    log = path.read_bytes()
    trace = follow(log)
    found = cause(trace, facts_of(log.decode("utf-8", "replace")))
    if path.stem in REAL:
        kind, words = REAL[path.stem]
        assert found is not None and fatal(trace)
        assert found.kind is kind and words in found.line
    else:
        assert found is None and not fatal(trace)


def _lost_indent(log: str) -> str:
    return re.sub(r"(?m)^ +", "", log)


def _each(prefix: str) -> Callable[[str], str]:
    return lambda log: re.sub(r"(?m)^(>>)?(?=.)", lambda found: (found[1] or "") + prefix, log)


WRAPPERS: dict[str, Callable[[str], str]] = {
    "plain": lambda log: log,
    "compose": _each("qwen-sglang  | "),
    "cri": _each("2026-06-25T16:38:03.120000000+02:00 stderr F "),
    "kubectl": _each("2026-09-23T08:24:51.977090836Z "),
    "ray": _each("(SGLangEngine pid=2882, ip=10.0.0.25) "),
    "ci": _each("[2025-11-07T01:08:28.503Z] "),
    "torch": _each("[rank0]: "),
    "vllm": _each("ERROR 02-10 15:43:26 scheduler.py:112] "),
    "crlf": lambda log: log.replace("\n", "\r\n"),
    "no indent": _lost_indent,
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_wordings(case: Case, wrapper: str) -> None:
    marked = WRAPPERS[wrapper](case.log)
    lines = marked.split("\n")
    expected = next((line[2:].rstrip("\r") for line in lines if line.startswith(">>")), None)
    trace = follow(re.sub(r"(?m)^>>", "", marked).encode())
    args = {"enable_hierarchical_cache": str("hicache" in case.flags)}
    found = cause(trace, LogFacts(stage=case.stage, ready="ready" in case.flags, args=args))
    assert (found.kind if found else None) is case.kind
    assert (found.line.rstrip("\r") if found else None) == expected
    assert fatal(trace) is ("alive" not in case.flags)


def test_a_log_that_ends_silently() -> None:
    facts = LogFacts(lines=12, last_line="my-server: cannot open its database")
    killed = from_exit(Exit(signal="SIGKILL", oom_killed=True), facts)
    assert (killed.kind, killed.line, killed.line_number) == (FailureKind.OS_OOM_KILLED, facts.last_line, 12)
    assert short(from_exit(Exit(status=1), facts)) == "failed: my-server: cannot open its database"
    unproven = from_exit(Exit(signal="SIGKILL", oom_killed=False), facts)
    assert unproven.kind is FailureKind.CHILD_DIED and "No OOM kill was counted" in unproven.explanation
    assert from_exit(Exit(signal="SIGSEGV"), facts).kind is FailureKind.CHILD_DIED
    assert from_exit(Exit(status=2), facts).kind is FailureKind.BAD_ARGUMENT
    assert from_exit(Exit(status=1), facts).kind is FailureKind.OTHER
    assert from_exit(Exit(), facts).explanation


def test_the_kernel_knows_better_than_an_exit_code() -> None:
    log = b"[2026-03-01 10:00:00] Rank 0 scheduler is dead. Please check if there are relevant logs.\n"
    guess = cause(follow(log + b"[2026-03-01 10:00:00] Exit code: -9\n"), LogFacts())
    assert guess is not None and guess.kind is FailureKind.OS_OOM_KILLED
    facts = LogFacts()
    assert weigh(guess, Exit(oom_killed=True), facts) == guess == weigh(guess, Exit(), facts)
    assert weigh(guess, Exit(oom_killed=False), facts).kind is FailureKind.CHILD_DIED
    died = cause(follow(log), LogFacts())
    assert died is not None and died.kind is FailureKind.CHILD_DIED
    killed = weigh(died, Exit(oom_killed=True), facts)
    assert (killed.kind, killed.line) == (FailureKind.OS_OOM_KILLED, died.line)
    assert any("memory" in advice for advice in killed.advice)


def test_an_exception_that_the_process_survives_is_no_end() -> None:
    start = b'Traceback (most recent call last):\n  File "/x.py", line 1, in f\n    g()\nValueError: odd\n'
    assert fatal(follow(start))
    later = start + b"[2026-03-01 10:00:00 TP0] Load weight begin. avail mem=3.00 GB\n" * 5
    assert not fatal(follow(later))
    assert cause(follow(later), LogFacts()) is None


_WORDS = st.sampled_from(
    [
        "[2026-03-01 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):",
        "Traceback (most recent call last):",
        '  File "/a/b.py", line 1, in f',
        "During handling of the above exception, another exception occurred:",
        "RuntimeError: CUDA out of memory",
        "Exception: Capture cuda graph failed: ",
        "[2026-03-01 10:00:00] SIGQUIT received. signum=None",
        "Killed",
        "\x1b[31m",
        "\r",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(_WORDS, st.text(max_size=60)), max_size=30), st.sampled_from(list(Stage)))
def test_any_log_gives_an_answer(lines: list[str], stage: Stage) -> None:
    trace = follow("\n".join(lines).encode("utf-8", "surrogatepass"))
    found = cause(trace, LogFacts(stage=stage))
    fatal(trace)
    if found is not None:
        assert short(found)
        assert len(found.line) <= 16_384


def test_a_trace_stays_small() -> None:
    huge = b"RuntimeError: CUDA out of memory " + b"x" * 2_000_000
    trace = follow(b"\n".join([b"Traceback (most recent call last):", huge] * 50))
    assert len(repr(trace)) < 120_000


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[2026-03-01 10:00:00] Decode batch, #running-req: 3, #token: 900, token usage: 0.01, gen throughput: 91.2, ",
        "[2026-03-01 10:00:00 TP0] Prefill batch, #new-seq: 1, #new-token: 64, #cached-token: 0, #running-req: 1, ",
        '[2026-03-01 10:00:00] INFO:     10.0.0.7:5000 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        '[2026-03-01 10:00:00] INFO:     127.0.0.1:5000 - "GET /health HTTP/1.1" 200 OK',
        "[2026-03-01 10:00:00] The server is fired up and ready to roll!",
        "[2026-03-01 10:00:00 TP0] Load weight begin. avail mem=3.00 GB",
    ],
)
def test_a_line_of_a_healthy_server_is_no_reason(line: str) -> None:
    facts = LogFacts(lines=12, last_line=line)
    killed = from_exit(Exit(signal="SIGKILL", oom_killed=False), facts)
    assert (killed.line, killed.line_number) == ("", 0)
    assert short(killed) == "process died without a word (SIGKILL)"
    ended = from_exit(Exit(status=1), facts)
    assert short(ended) == "failed without a word (status 1)"
    assert "traceback" not in ended.advice[0] and "df -h" in ended.advice[0]


def test_a_disk_that_was_full_at_the_end_is_told_after_it() -> None:
    full = "no space left on the file system of /runs: the log loses lines"
    state = ServerState(ServerInfo("gpu0"), RunInfo("r1", 7, 100.0, ("sglang",), "/log"))
    before = reduce(state, Watched(1.0, warnings=(full,)))
    failure = verdict.failure(reduce(before, Exited(2.0, Exit(status=1))))
    assert failure is not None and full in failure.explanation and failure.advice[0].startswith("Free space there")


def test_brackets_around_a_reason_are_left_out_whole() -> None:
    line = "python3: Error finding spec for 'sglang.x' (ModuleNotFoundError: No module named 'sglang')"
    assert short(Failure(FailureKind.IMPORT_ERROR, line, 1, "")) == "import: No module named 'sglang'"
    whole = "ValueError: no such backend (one of: a, b)"
    assert short(Failure(FailureKind.BAD_ARGUMENT, whole, 1, "")) == "command line: no such backend (one of: a, b)"
