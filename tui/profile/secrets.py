"""Where ``!secret NAME`` gets its value: this side's environment, at launch."""

from __future__ import annotations

import os
from collections.abc import Iterable

from tui.profile.model import SENSITIVE, Server


class SecretMissing(LookupError):
    """A secret that the environment does not have."""


def from_environment(name: str) -> str:
    """The value of the secret ``name``; raises ``SecretMissing`` with what to do."""
    value = os.environ.get(name)
    if value is None:
        raise SecretMissing(f"the profile needs the secret {name}, and it is not set here: export {name}=…")
    return value


def known_values(servers: Iterable[Server]) -> set[str]:
    """Every secret of these servers that this side knows: ``!secret`` from the environment, where it is set, and what
    the profile has in plain text under the name of a key or password."""
    found: set[str] = set()
    for server in servers:
        found.update(os.environ[name] for name in server.secret_names() if os.environ.get(name))
        for name, value in [*server.flags.items(), *server.env.items()]:
            if isinstance(value, str) and SENSITIVE.search(name):
                found.add(value)
    return found
