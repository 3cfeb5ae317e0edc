"""Files that a person named: what else stands under the name is said at once, and nothing is waited for."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def not_a_file(path: Path, *, pipes: bool = True) -> str:
    """What ``path`` is that cannot be read as a file, in words that follow its name; empty for a file.

    ``pipes``: whether a shell's ``<(command)`` will do, which can be read once. A pipe with a name of its own would be
    waited for until somebody writes to it. Raises ``OSError`` where nothing is known of it.
    """
    mode = path.stat().st_mode
    if stat.S_ISREG(mode):
        return ""
    if stat.S_ISDIR(mode):
        return "is a directory"
    if stat.S_ISFIFO(mode):
        return "" if pipes and os.path.realpath(path).rpartition("/")[2].startswith("pipe:[") else "is a pipe"
    return "is a socket" if stat.S_ISSOCK(mode) else "is a device"
