"""Which SGLang an interpreter would run, read from the names of its installed packages: no Python is started."""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

_NAME = re.compile(r"sglang-(\d[\w.+!]{0,60})\.(?:dist-info|egg-info)$")


def sglang_version(program: str) -> str | None:
    """The version beside an interpreter (or a script of its ``bin``); ``None`` where none or several are found.

    An environment is looked at by itself; an interpreter outside of one also by where its links lead.
    """
    prefix = os.path.dirname(os.path.dirname(program))
    prefixes = [prefix]
    if not os.path.exists(os.path.join(prefix, "pyvenv.cfg")):
        real = os.path.dirname(os.path.dirname(os.path.realpath(program)))
        prefixes += [real, os.path.join(real, "local")]
    for each in prefixes:
        found = {match.group(1) for name in _packages(each) for match in [_NAME.match(name)] if match}
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def _packages(prefix: str) -> Iterator[str]:
    """The names of all that is installed below ``prefix``."""
    for library in ("lib", "lib64"):
        for version in _names(os.path.join(prefix, library)):
            if version.startswith("python3"):
                for folder in ("site-packages", "dist-packages"):
                    yield from _names(os.path.join(prefix, library, version, folder))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
