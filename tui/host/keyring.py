"""Encrypted keys that the user has opened. Like an SSH agent, this process holds the decrypted keys in memory until it
ends; a passphrase is forgotten as soon as it has opened its key."""

from __future__ import annotations

import binascii
import contextlib
import re
from collections.abc import Sequence
from pathlib import Path

import asyncssh

from tui.host.api import HostError, HostErrorKind

_opened: dict[str, asyncssh.SSHKey] = {}


def unlock(path: str, passphrase: str) -> None:
    """Open the key for all later logins. Takes a third of a second of CPU. Raises ``HostError``."""
    try:
        _opened[path] = asyncssh.read_private_key(path, passphrase)
    except asyncssh.KeyEncryptionError as error:
        raise HostError(HostErrorKind.KEY_LOCKED, f"The passphrase does not open {path}.") from error
    except (OSError, ValueError) as error:
        raise HostError(HostErrorKind.CONFIG, f"The key {path} cannot be read: {error}.") from error


def opened(path: str, certificates: Sequence[str] = ()) -> list[asyncssh.SSHKey | tuple[asyncssh.SSHKey, str]]:
    """The key as asyncssh takes it, with its certificate where one lies beside it or is among ``certificates``; empty
    for one that is not open."""
    key = _opened.get(path)
    if key is None:
        return []
    for certificate in (path + "-cert.pub", *certificates):
        with contextlib.suppress(OSError, ValueError):
            if asyncssh.read_certificate(certificate).key.public_data == key.public_data:
                return [(key, certificate)]
    return [key]


def algorithm(path: str) -> str:
    """The kind of a private key in OpenSSH's format, as it stands before all that may be encrypted; empty for others.
    Raises ``OSError``."""
    body = b"".join(Path(path).read_bytes().partition(b"BEGIN OPENSSH PRIVATE KEY-----")[2].splitlines()[:8])
    with contextlib.suppress(ValueError):
        data = binascii.a2b_base64(body[: len(body) // 4 * 4])
        found = re.search(rb"\0\0\0.((?:sk-)?(?:ssh|ecdsa)-[\w@.-]+)", data)
        return found[1].decode() if found else ""
    return ""


def forget() -> None:
    """Close all keys again."""
    _opened.clear()


def is_encrypted(path: str) -> bool:
    """Whether there is a key that nobody can use without its passphrase."""
    try:
        asyncssh.read_private_key(path)
    except asyncssh.KeyImportError as error:
        return "assphrase" in str(error)
    except (OSError, ValueError):
        pass
    return False
