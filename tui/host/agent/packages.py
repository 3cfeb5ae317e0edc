"""Which SGLang an interpreter would run, read from the names of its installed packages: no Python is started."""

from __future__ import annotations

import os
import re
from glob import escape, glob

_FOLDERS = (
    "lib/python3*/site-packages",
    "lib64/python3*/site-packages",
    "lib/python3*/dist-packages",
    "lib/python3/dist-packages",
)
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
        found = {
            match.group(1)
            for folder in _FOLDERS
            for path in glob(os.path.join(escape(each), folder, "sglang-*"))
            for match in [_NAME.search(path)]
            if match
        }
        if found:
            return found.pop() if len(found) == 1 else None
    return None
