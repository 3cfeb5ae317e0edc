"""Strict host-key checking: which files count, and why a key was not accepted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import asyncssh

from tui.host.api import HostError, HostErrorKind

DEFAULT_FILES = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
# what `ssh` shows first, so that a fingerprint compares with the one that people have
PREFERRED_ALGORITHMS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256")


def read_files(paths: Iterable[str]) -> bytes:
    """The content of the known_hosts files that can be read. Never empty: to asyncssh, empty means something else."""
    parts = [b"# known hosts\n"]
    for path in paths:
        try:
            parts.append(Path(path).expanduser().read_bytes() + b"\n")
        except (OSError, RuntimeError):
            continue
    return b"".join(parts).decode("utf-8", "replace").encode()


def has_entry(known: bytes, host: str, port: int) -> bool:
    """Whether any key or authority is on file for the host's name."""
    trusted, authorities = _match(known, host, "", port)[:2]
    return bool(trusted or authorities)


def _match(known: bytes, host: str, address: str, port: int) -> tuple[list[asyncssh.SSHKey], ...]:
    found = asyncssh.match_known_hosts(known, host, address, port if port != 22 else None)
    return list(found[0]), list(found[1]), list(found[2])


class KeyWitness(asyncssh.SSHClient):
    """Is asked about keys that are not on file; says no, and remembers what it saw."""

    def __init__(self) -> None:
        self.key: asyncssh.SSHKey | None = None
        self.address = ""

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.key, self.address = key, addr
        return False


def verdict(known: bytes, witness: KeyWitness, host: str, port: int, files: Iterable[str]) -> HostError:
    """Unknown, changed or revoked: asyncssh says the same of all three."""
    trusted, _, revoked = _match(known, host, witness.address, port)
    where = ", ".join(files)
    key = witness.key
    print_ = f"{key.get_algorithm().removeprefix('ssh-').upper()} {key.get_fingerprint('sha256')}" if key else ""
    entry = host if port == 22 else f"[{host}]:{port}"
    if (revoked and (key is None or key in revoked)) or (key is not None and _is_revoked(known, key)):
        return HostError(
            HostErrorKind.HOST_KEY_REVOKED,
            f"The host key of {host} is marked @revoked ({where}). {print_}".rstrip() + " Not connecting.",
            "Somebody may hold a stolen key: ask who runs the host.",
        )
    if trusted:
        return HostError(
            HostErrorKind.HOST_KEY_CHANGED,
            f"The host key of {host} CHANGED: it now shows {print_}, which is not the one in {where}. Not connecting.",
            f"Somebody may be in between, or the host was reinstalled. If expected: ssh-keygen -R '{entry}'",
        )
    return HostError(
        HostErrorKind.HOST_KEY_UNKNOWN,
        f"The host key of {host} is not known: {print_} (looked in {where}).",
        f"Compare the fingerprint with the host's, then run `ssh {host}` once to accept it.",
    )


def _is_revoked(known: bytes, key: asyncssh.SSHKey) -> bool:
    """A lone ``@revoked`` line for a host with a port is lost by the lookup; the key itself is not."""
    blob = key.export_public_key("openssh").split()[1]
    return any(line.startswith(b"@revoked") and blob in line for line in known.splitlines())
