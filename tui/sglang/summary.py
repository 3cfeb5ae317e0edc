"""All that a parser holds, as one frozen ``LogFacts``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tui.sglang import diagnosis
from tui.sglang.args import is_worker_node
from tui.sglang.logfacts import LogFacts
from tui.sglang.mask import mask_text
from tui.sglang.model import Failure, Progress
from tui.sglang.release import release
from tui.sglang.safe import safe
from tui.sglang.stages import bar
from tui.sglang.trace import EMPTY

if TYPE_CHECKING:
    from tui.sglang.parser import LogParser

LAST_LINE = 500  # characters


def summary(parser: LogParser) -> LogFacts:
    """What has been read so far."""
    stages, numbers, batches = parser.stages, parser.numbers, parser.batches
    bare = LogFacts(
        lines=parser.lines,
        size=parser.size,
        version=release(parser.args) or numbers.version,
        model=parser.args.get("served_model_name") or parser.args.get("model_path"),
        args=parser.args,
        stage=stages.stage,
        stages=stages.spans(),
        missing_ranks=stages.missing,
        progress=_progress(parser),
        pools=parser.pools.all(),
        free_before_gib=parser.trace.before_gib,
        free_after_gib=parser.trace.after_gib,
        max_total_num_tokens=numbers.max_total_num_tokens,
        max_running_requests=numbers.max_running_requests,
        context_len=numbers.context_len,
        ready=parser.ready,
        ready_local=parser.ready_local,
        shutting_down=parser.stopping,
        latest=batches.latest(),
        series=batches.series(),
        speculative=_algorithm(parser.args),
        warnings=(*numbers.warnings, *batches.warnings()),
        last_line=_last_line(parser),
        last_local=parser.last_local,
        last_generate=batches.last_printed(),
        life=parser.size - parser.probes - (0 if b"\r" in parser.head else len(parser.tail)),
        retracted=numbers.retracted,
        storage=numbers.storage,
        heartbeat=parser.trace.heartbeat or None,
        heartbeat_stands=parser.trace.heartbeat_stands,
        unhealthy=parser.unhealthy,
        worker_node=is_worker_node(parser.args),
        staged=stages.told,
        recognized=parser.recognized,
    )
    return _judged(parser, bare)


def _judged(parser: LogParser, bare: LogFacts) -> LogFacts:
    """``bare`` with the failure, which is worked out anew only when something that it hangs on has changed."""
    if parser.trace is EMPTY:
        return bare
    key = (parser.trace, bare.ready, bare.stage, len(bare.pools), len(bare.args))
    if key != parser.judged:
        parser.judged, parser.failure = key, _masked(diagnosis.cause(parser.trace, bare))
    fatal = diagnosis.fatal(parser.trace)
    return replace(bare, failure=parser.failure, fatal=fatal) if parser.failure or fatal else bare


def _masked(failure: Failure | None) -> Failure | None:
    return failure and replace(failure, line=mask_text(failure.line))


def _progress(parser: LogParser) -> Progress | None:
    """The newest bar, which stands unfinished at the end of the log until the next one overwrites it."""
    if b"%" in parser.tail and b"|" in parser.tail:
        unfinished = bar(parser.tail[:400].decode("utf-8", "replace"))
        if unfinished is not None:
            return unfinished
    return parser.stages.progress


def _last_line(parser: LogParser) -> str:
    """The newest line that is no probe's; of a bar, what it shows now."""
    last = parser.tail if b"\r" in parser.head and parser.tail.strip() else parser.last_raw
    text = safe(last.rsplit(b"\r", 1)[-1].decode("utf-8", "replace")).strip()
    return mask_text(text)[:LAST_LINE]


def _algorithm(args: Mapping[str, str]) -> str | None:
    name = args.get("speculative_algorithm")
    return None if name in (None, "None", "") else name
