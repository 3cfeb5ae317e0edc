"""What OpenSSH's own client reads in the settings: asked for what asyncssh skips without a word."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tui.host.target import Target

_SECONDS = 5.0


async def host_key_policy(target: Target) -> str:
    """StrictHostKeyChecking for ``target``: yes, ask, accept-new, no, …; empty where there is no `ssh` to ask."""
    return (await _settings(target)).get("stricthostkeychecking", "")


def _words(target: Target) -> list[str]:
    """The command line. The settings are named, since `ssh` itself would go by the password file's home."""
    own = Path("~/.ssh/config").expanduser()
    words = ["ssh", "-G", *(["-F", str(own)] if own.exists() else [])]
    if target.user:
        words += ["-l", target.user]
    if target.port:
        words += ["-p", str(target.port)]
    return [*words, "--", target.host]


async def _settings(target: Target) -> dict[str, str]:
    """What `ssh -G` prints; it connects to nothing. Empty on any trouble."""
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(*_words(target), stdin=null, stdout=pipe, stderr=null)
    except OSError:
        return {}
    try:
        async with asyncio.timeout(_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return {}
    pairs = (line.partition(" ") for line in output.decode("utf-8", "replace").splitlines())
    return {name: value for name, _, value in pairs}
