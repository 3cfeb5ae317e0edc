"""Where ``!secret NAME`` gets its value: this side's environment, at launch."""

from __future__ import annotations

import os


class SecretMissing(LookupError):
    """A secret that the environment does not have."""


def from_environment(name: str) -> str:
    """The value of the secret ``name``; raises ``SecretMissing`` with what to do."""
    value = os.environ.get(name)
    if value is None:
        raise SecretMissing(f"the profile needs the secret {name}, and it is not set here: export {name}=…")
    return value
