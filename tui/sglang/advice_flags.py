"""Advice on the command line: the nearest valid flag, and combinations that do not work."""

from __future__ import annotations

import difflib
import re

from tui.sglang.flag_names import BY_ITSELF, FLAG_NAMES, RENAMED
from tui.sglang.logfacts import LogFacts

_UNRECOGNIZED = re.compile(r"unrecognized arguments: (?P<rest>.{1,2000})", re.DOTALL)
_ARGUMENT = re.compile(r"argument (?P<flag>--?[\w-]+)\S*: (?P<why>.{1,400})", re.DOTALL)
_CHOICE = re.compile(r"invalid choice: '?(?P<value>[^' ]{1,80})'?.{0,10}\(choose from (?P<choices>.{1,3000}?)(?:\)|$)")
_AMBIGUOUS = re.compile(r"ambiguous option: (?P<flag>\S+) could match (?P<flags>.{1,500})")
_CHOICES = 12  # of a flag, that are listed
_SILENT = re.compile(r"(?:AttributeError|NotImplementedError|AssertionError|UnboundLocalError|TypeError)\b")
_REQUIRED = re.compile(r"the following arguments are required: (?P<flags>.{1,300})")


def nearest_flag(flag: str) -> str | None:
    """The valid flag that ``flag`` most likely means, with its dashes."""
    name = flag.lstrip("-").split("=")[0].replace("_", "-").lower()
    if name in FLAG_NAMES and f"--{name}" != flag.split("=")[0]:
        return f"--{name}"
    if name in BY_ITSELF:
        return None
    if name in RENAMED:
        return f"--{RENAMED[name]}"
    close = difflib.get_close_matches(name, FLAG_NAMES, n=1, cutoff=0.7)
    return f"--{close[0]}" if close else None


def argument(line: str, facts: LogFacts) -> tuple[str, ...]:
    found = _UNRECOGNIZED.search(line)
    if found is not None:
        unknown = [word for word in found["rest"].split() if word.startswith("--")][:5]
        hints = [
            f"{flag} → {nearest}" for flag in unknown if (nearest := nearest_flag(flag)) is not None and nearest != flag
        ]
        rest = [flag for flag in unknown if not any(hint.startswith(f"{flag} ") for hint in hints)]
        said = [f"Did you mean {', '.join(hints)}?"] if hints else []
        needless = [flag for flag in rest if flag.lstrip("-").split("=")[0] in BY_ITSELF]
        rest = [flag for flag in rest if flag not in needless]
        if needless:
            said.append(f"Remove {', '.join(needless)}: SGLang does that without a flag.")
        if rest:
            said.append(f"This SGLang has no {', '.join(rest)}: remove it, or look it up for the installed version.")
        return tuple(said) or (f"These words belong to no flag: {found['rest'][:80].strip()}.",)
    return _other_argument(line)


def _other_argument(line: str) -> tuple[str, ...]:
    ambiguous = _AMBIGUOUS.search(line)
    if ambiguous is not None:
        return (f"Write the flag in full: {ambiguous['flags'].strip()}.",)
    required = _REQUIRED.search(line)
    if required is not None:
        return (f"Add {required['flags'].strip()}.",)
    argument = _ARGUMENT.search(line)
    if argument is None:
        return ("See `python -m sglang.launch_server --help` of the installed version.",)
    choice = _CHOICE.search(line)
    if choice is not None:
        return (_choose(argument["flag"], choice["value"], re.findall(r"[\w.+/-]+", choice["choices"])),)
    whole = " It takes whole numbers." if "invalid int" in line else ""
    return (f"Correct {argument['flag']}: {argument['why'].strip()[:160]}.{whole}",)


def _choose(flag: str, value: str, choices: list[str]) -> str:
    begun = [name for name in choices if name.startswith(value)]
    close = begun or difflib.get_close_matches(value, choices, n=1, cutoff=0.6)
    nearest = f" Nearest: {close[0]}." if close else ""
    more = f" and {len(choices) - _CHOICES} more" if len(choices) > _CHOICES else ""
    return f"{flag} does not take {value}.{nearest} It takes: {', '.join(choices[:_CHOICES])}{more}."


def combination(line: str, facts: LogFacts) -> tuple[str, ...]:
    algorithm = facts.speculative or facts.args.get("speculative_algorithm", "None")
    for words, advice in _COMBINATIONS:
        if words in line:
            return (advice,)
    if "stream is capturing" in line:
        return ("Drop --enable-torch-compile or the feature that the traceback names, or use --disable-cuda-graph.",)
    flags = re.findall(r"--[a-z][a-z0-9-]{2,60}", line)
    if flags:
        return (f"Change or drop {', '.join(dict.fromkeys(flags))}.",)
    if algorithm not in ("None", "", "null"):
        backend = facts.args.get("attention_backend", "None")
        other = f" with the attention backend {backend}" if backend != "None" else ""
        return (f"Try it without speculative decoding ({algorithm}){other}, or with another --attention-backend.",)
    if _SILENT.match(line):
        return ("Try another --attention-backend, or leave the special modes out one by one: the line names none.",)
    return ("The line names what does not go together: drop one of the two.",)


_COMBINATIONS = (
    (
        "host memory should be larger than the device memory",
        "Set --hicache-ratio above 1, or --hicache-size larger than the device pool; 0.5.15 and later only warn.",
    ),
    ("page_first_direct", "Set --hicache-mem-layout page_first_direct --hicache-io-backend direct."),
    ("io_backend='direct'", "Set --hicache-mem-layout page_first_direct --hicache-io-backend direct."),
    ("HiRadixCache only supports", "HiCache with Mamba or sliding windows needs SGLang 0.5.10 or later."),
    ("mutually exclusive", "Keep one of the two flags that the line names."),
    ("divisible by page_size", "Make --chunked-prefill-size a multiple of --page-size."),
    ("does not support --hicache-size", "Use --hicache-ratio instead of --hicache-size for this model."),
)
