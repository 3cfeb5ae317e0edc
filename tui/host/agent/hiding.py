"""Keys off the command line, which every user of a host can read: SGLang takes flags from a YAML file as well.

``--config FILE``, from 0.5.6 on: what the file holds counts as if it stood before the other flags, each value as one
string. The file lies in the run's folder (0700), mode 0600, and its keeper removes it when the server has ended; it
stays until then for whoever starts the same command line again.
"""

from __future__ import annotations

import os
import re

from .files import write_file
from .masking import is_secret_flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

NAME = "flags.yaml"
FIRST = (0, 5, 6)  # before it, a file's values were read otherwise, or not at all


def exposed(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The flags (``--name``) and values that should not stand on a command line."""
    argv, secrets = spec["argv"], [str(value) for value in spec.get("secrets") or () if value]
    found = []
    for flag, values in flags(argv):
        if len(values) == 1 and (is_secret_flag(flag) or any(secret in values[0] for secret in secrets)):
            found.append((flag, values[0]))
    return found


def movable(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Those that SGLang would read from a file: a value that looks like a flag it takes by ``--name=value`` alone."""
    return [(flag, value) for flag, value in exposed(spec) if not value.startswith("-")]


def flags(argv: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Each flag with the words that follow it; ``--name=value`` too."""
    found: list[tuple[str, list[str]]] = []
    for word in argv:
        name, equals, value = word.partition("=")
        if word.startswith("--"):
            found.append((name, [value] if equals else []))
        elif found:
            found[-1][1].append(word)
    return found


def reads_files(argv: Sequence[str], version: str | None) -> bool:
    """Whether this is SGLang itself, known to read a file, and given none by the user."""
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", version or "")
    return (
        list(argv[1:3]) == ["-m", "sglang.launch_server"]
        and numbers is not None
        and tuple(map(int, numbers.groups())) >= FIRST
        and not any(flag == "--config" for flag, _ in flags(argv))
    )


def without(argv: Sequence[str], hidden: Sequence[tuple[str, str]]) -> list[str]:
    """The command line without those flags and their values."""
    out: list[str] = []
    at = 0
    while at < len(argv):
        name, equals, value = argv[at].partition("=")
        following = value if equals else "".join(argv[at + 1 : at + 2])
        if argv[at].startswith("--") and (name, following) in hidden:
            at += 1 if equals else 2
            continue
        out.append(argv[at])
        at += 1
    return out


def hide(spec: Mapping[str, Any], folder: str, version: str | None) -> list[str]:
    """The command line to run; what must not stand there is in the file by then. Raises ``OSError``."""
    argv = list(spec["argv"])
    hidden = movable(spec) if reads_files(argv, version) else []
    if not hidden:
        return argv
    path = os.path.join(folder, NAME)
    write_file(path, "".join("%s: %s\n" % (quoted(flag[2:]), quoted(value)) for flag, value in hidden).encode("ascii"))
    return [*without(argv, hidden), "--config", path]


def quoted(text: str) -> str:
    """A double-quoted YAML string, in ASCII."""
    return '"%s"' % "".join(c if " " <= c <= "~" and c not in '"\\' else escaped(ord(c)) for c in text)


def escaped(code: int) -> str:
    return "\\x%02x" % code if code < 0x100 else "\\u%04x" % code if code < 0x10000 else "\\U%08x" % code
