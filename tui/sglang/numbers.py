"""Single numbers and remarks of a start-up: the summary line, caps, retractions, warnings worth showing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tui.sglang.mask import mask_text

MOST_WARNINGS = 20
_SUMMARY = re.compile(
    r"max_total_num_tokens=(?P<tokens>-?\d{1,15}), (?P<rest>(?:chunked_p|max_p|max_r|context_l|\.\.\.).{0,1000})"
)
_FIELD = re.compile(r"(max_running_requests|context_len)=(\d{1,15})")
_CAP = re.compile(
    r"max_running_requests is capped to (?P<capped>\d{1,9})|Max running requests is reset to (?P<reset>\d{1,9})|"
    r"max_running_requests was reduced from the requested \S{1,20} to (?P<reduced>\d{1,9})|"
    r"Post-capture KV sizing: max_running_requests \d{1,9} -> (?P<resized>\d{1,9})"
)
_RESIZED = re.compile(
    r"Post-capture KV sizing: (?:max_total_num_tokens=|KV cache allocated\..{0,80}#tokens: )(?P<tokens>\d{1,15})"
)
_RETRACT = re.compile(
    r"(?:KV cache pool is full|Decode out of memory happened).{0,60}#retracted_reqs: (?P<count>\d{1,9})"
)
_STORAGE = re.compile(r"(?:Creating (?:dynamic )?|Attaching HiCache )storage backend:? '?(?P<name>\w{1,40})")
_VERSION = re.compile(
    r"(?:sglang(?:==| version[:= ]+| v)|SGLang (?:version[:= ]+|v))(?P<version>\d+\.\d+\.\d+[\w.+]{0,20})"
)
_WARNINGS = re.compile(
    r"max_running_requests (?:is capped|was reduced)|Max running requests is reset|max_total_tokens=\S+ is larger than|"
    r"KV pool holds \d+ tokens, fewer|HiCache host (?:KV )?pool \(|HiCache \w{1,20} host pool \(|"
    r"KV cache pool is full|"
    r"Decode out of memory happened|retract_decode: aborted|Health check failed\. Server|"
    r"The memory capacity is unbalanced|Disaggregation warmup failed|Scheduler watchdog timeout .{0,60}soft=True|"
    r"write_back: KV .{0,80}dropped|Page first layout is not supported|Disabling radix cache since"
)
_TRIGGER = re.compile(
    r"ax_|ax running|torage backend|etract|pool|ealth check|sglang|SGLang|unbalanced|failed|soft=True|KV|layout|adix"
)


@dataclass(slots=True)
class Numbers:
    """What single lines told. The first summary line counts: further ones are of other DP ranks."""

    max_total_num_tokens: int | None = None
    max_running_requests: int | None = None
    context_len: int | None = None
    retracted: int = 0
    storage: str | None = None
    version: str | None = None
    warnings: list[str] = field(default_factory=list)
    summarized: bool = False

    def copy(self) -> Numbers:
        return Numbers(
            self.max_total_num_tokens,
            self.max_running_requests,
            self.context_len,
            self.retracted,
            self.storage,
            self.version,
            self.warnings[:],
            self.summarized,
        )

    def take(self, message: str) -> bool:
        """Read one message; whether it was the summary line, which says nothing else."""
        if _TRIGGER.search(message, 0, 400) is None:
            return False
        summary = _SUMMARY.match(message)
        if summary:
            self._summary(summary)
            return True
        if _WARNINGS.match(message):
            self._warn(message)
        self._caps(message)
        retract = _RETRACT.match(message)
        if retract:
            self.retracted += int(retract["count"])
        storage = _STORAGE.match(message)
        if storage:
            self.storage = storage["name"]
        if self.version is None and not message.startswith("server_args="):
            version = _VERSION.search(message, 0, 400)
            self.version = version["version"] if version else None
        return False

    def _summary(self, summary: re.Match[str]) -> None:
        if self.summarized and self.max_total_num_tokens != int(summary["tokens"]):
            return  # of another DP rank; the same once more is a broken line that goes on
        found = dict(_FIELD.findall(summary["rest"]))
        self.summarized = True
        self.max_total_num_tokens = int(summary["tokens"])
        if "max_running_requests" in found:
            self.max_running_requests = int(found["max_running_requests"])
        if "context_len" in found:
            self.context_len = int(found["context_len"])

    def _caps(self, message: str) -> None:
        resized = _RESIZED.match(message)
        if resized:
            self.max_total_num_tokens = int(resized["tokens"])
        cap = _CAP.match(message)
        if cap and (not self.summarized or cap["resized"]):
            self.max_running_requests = int(next(value for value in cap.groups() if value is not None))

    def another(self, args: Mapping[str, str], more: Mapping[str, str]) -> None:
        """A second ``server_args`` dump, of a server that has not taken the first one's place."""
        ports = [each.get("port") for each in (args, more)]
        if None not in ports and ports[0] != ports[1]:
            self._warn(
                f"two servers wrote into this log (ports {ports[0]} and {ports[1]}): figures may be of either, "
                "and stage times span both"
            )

    def _warn(self, message: str) -> None:
        text = mask_text(message)[:400]
        head = text[:40]
        for index, known in enumerate(self.warnings):
            if known[:40] == head:  # the newest of its kind
                self.warnings[index] = text
                return
        if len(self.warnings) < MOST_WARNINGS:
            self.warnings.append(text)
