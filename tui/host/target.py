"""Where a host is: ``user@host:port`` taken apart, and what this package reads of a host in a profile."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from tui.host.api import HostError, HostErrorKind

_FORM = re.compile(r"(?:ssh://)?(?:(?P<user>[^@\s]+)@)?(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\s@/]+))(?::(?P<port>\d+))?/?")


class HostConfig(Protocol):
    """A host as the user declared it (``tui.profile.model.Host``)."""

    @property
    def name(self) -> str: ...
    @property
    def ssh(self) -> str: ...
    @property
    def identity(self) -> str | None: ...
    @property
    def known_hosts(self) -> str | None: ...
    @property
    def jump(self) -> str | None: ...
    @property
    def python(self) -> str | None: ...
    @property
    def state_dir(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Target:
    """An alias or address; what is ``None`` comes from ~/.ssh/config."""

    host: str
    user: str | None = None
    port: int | None = None


def ssh_words(host: str, port: int) -> str:
    """What to type behind ``ssh`` to get there: advice without the port would lead to another server."""
    return host if port == 22 else f"-p {port} {host}"


def parse_target(text: str) -> Target:
    """``alias``, ``user@host``, ``host:port``, ``[v6]:port``, ``ssh://…``. Raises ``HostError``."""
    found = _FORM.fullmatch(text.strip())
    port = int(found["port"]) if found and found["port"] else None
    if found is None or text.startswith("-") or (port is not None and not 0 < port < 65536):
        raise HostError(
            HostErrorKind.CONFIG, f"{text!r} is no SSH address.", "Write an alias of ~/.ssh/config, or user@host:port."
        )
    return Target(found["v6"] or found["host"], found["user"], port)
