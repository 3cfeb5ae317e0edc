"""What only the user can answer before a host can be used: an unknown host key, an encrypted key. Imports nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnknownHostKey:
    """The key that a host showed and that no known_hosts file has; ``yes`` adds it to ``file``."""

    host: str
    entry: str  # as known_hosts names it: host, or [host]:port
    key: str  # "ssh-ed25519 AAAA…"
    fingerprint: str  # "ED25519 SHA256:…", as `ssh` shows it
    file: str


@dataclass(frozen=True, slots=True)
class LockedKey:
    """The private key ``path`` is encrypted; its passphrase opens it."""

    path: str


Question = UnknownHostKey | LockedKey
