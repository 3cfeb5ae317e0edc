"""The agent as bytes to send, and the command line that receives them.

The command is one string for whatever login shell the user has: inside the outer quotes stands none of ``' \\ !`` and
no newline, inside the inner ones none of ``$ ` " \\``, so bash, dash, zsh, fish and tcsh read it alike. The only
variable parts are the mark (hex) and the candidates for Python (checked).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from tui.host.api import HostError, HostErrorKind

NO_PYTHON = "NOPYTHON"
CANDIDATES = ("python3", "/usr/bin/python3", "/usr/local/bin/python3")
_SAFE_PATH = re.compile(r"[A-Za-z0-9_./+-]+")
_BOOTSTRAP = (
    "import sys;m=sys.argv[1].encode();sys.stdout.buffer.write(m);MARK=m;"
    "b=sys.stdin.buffer;exec(b.read(int(b.readline())))"
)


@cache
def sources() -> Mapping[str, str]:
    """The agent's modules by name."""
    folder = files("tui.host.agent")
    return {
        entry.name.removesuffix(".py"): entry.read_text(encoding="utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".py")
    }


def blob(config: Mapping[str, object]) -> bytes:
    """Length line and program text, as the bootstrap reads them; then a line of what that program reads itself, since
    the memory that it takes to compile a text is never given back."""
    text = sources()["boot"].encode()
    return b"%d\n%s%s\n" % (len(text), text, json.dumps([dict(sources()), dict(config)]).encode("ascii"))


def candidates(python: str | None) -> tuple[str, ...]:
    """Interpreters to try, the user's first. Raises ``HostError`` for a path that a shell could read otherwise."""
    if python is None or python in CANDIDATES:
        return CANDIDATES
    if not _SAFE_PATH.fullmatch(python):
        raise HostError(
            HostErrorKind.CONFIG,
            f"`python` of the host holds characters that are not allowed there: {python!r}.",
            "Use a path of letters, digits and ._/+- (a symlink helps).",
        )
    return (python,)


def command(mark: str, python: str | None = None) -> str:
    """The exec request: find Python, say the mark, run what comes."""
    names = " ".join(candidates(python))
    return (
        f"exec /bin/sh -c 'for p in {names}; do command -v $p >/dev/null 2>&1 && "
        f'exec $p -ISBu -c "{_BOOTSTRAP}" {mark}; done; echo {NO_PYTHON} {names} >&2; exit 127\''
    )
