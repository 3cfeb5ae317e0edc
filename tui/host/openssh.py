"""~/.ssh/config as OpenSSH's own client reads it, where asyncssh skips something silently, or reads it too late."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from ipaddress import ip_address
from pathlib import Path

import asyncssh
from asyncssh.pattern import WildcardPatternList

from tui.host.target import Target

_SECONDS = 5.0
_USER_FILES = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
_GLOBAL_FILES = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
_TOKEN = re.compile(r"%(.)|\$\{(\w+)\}")


async def second_pass(settings: asyncssh.SSHClientConnectionOptions, host: str) -> None:
    """Read ~/.ssh/config again, by the host's canonical name (``CanonicalizeHostname``) and for ``Match final``, where
    it asks for that. asyncssh does so by itself, but only once it was told which keys and known hosts count."""
    name = await _canonical_name(settings, host)
    final = settings.config.has_match_final()
    if name or final:
        await asyncio.to_thread(settings.update, host=name or host, reload=True, canonical=bool(name), final=final)


async def _canonical_name(settings: asyncssh.SSHClientConnectionOptions, host: str) -> str | None:
    """The name under which the first of ``CanonicalDomains`` has the host; ``None`` where its own stands."""
    if not settings.canonicalize_hostname or host.count(".") > settings.canonicalize_max_dots or _is_address(host):
        return None
    for domain in settings.canonical_domains:
        name = f"{host}.{domain}"
        try:
            found = await asyncio.get_running_loop().getaddrinfo(name, 0, flags=socket.AI_CANONNAME)
        except socket.gaierror:
            continue
        alias = found[0][3]
        for ours, theirs in settings.canonicalize_permitted_cnames:
            if alias and WildcardPatternList(ours).matches(name) and WildcardPatternList(theirs).matches(alias):
                return alias
        return name
    return None


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def known_hosts_files(settings: asyncssh.SSHClientConnectionOptions) -> list[str]:
    """The user's files and the machine's. No setting switches the check off: for no file the usual count."""
    user = _files(settings, "UserKnownHostsFile") or list(_USER_FILES)
    config = settings.config.get("GlobalKnownHostsFile")
    return [*user, *(_GLOBAL_FILES if config is None else _files(settings, "GlobalKnownHostsFile"))]


def _files(settings: asyncssh.SSHClientConnectionOptions, name: str) -> list[str]:
    configured = settings.config.get(name)
    paths = configured if isinstance(configured, list) else []
    return [_expanded(str(path), settings) for path in paths if path not in ("none", os.devnull)]


def _expanded(text: str, settings: asyncssh.SSHClientConnectionOptions) -> str:
    """Tokens and variables that asyncssh leaves as they are; what is not known stays."""
    values = {
        "%": "%", "d": str(Path.home()), "h": settings.host, "n": settings.orig_host, "p": str(settings.port),
        "k": settings.host_key_alias or settings.orig_host, "r": settings.username, "i": str(os.getuid()),
        "u": os.environ.get("USER", ""), "l": socket.gethostname(), "L": socket.gethostname().partition(".")[0],
    }  # fmt: skip

    def value(found: re.Match[str]) -> str:
        known = values.get(found[1]) if found[1] else os.environ.get(found[2])
        return found[0] if known is None else known

    return _TOKEN.sub(value, text)


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
