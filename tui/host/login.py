"""Our side of a login: which keys are offered, in which order, and what it took note of when it failed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh

from tui.host import keyring

_DEFAULTS = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk")


@dataclass(frozen=True)
class Keys:
    """Private key files that may be offered, and certificates that may belong to them.

    The profile's ``identity`` stands alone: an SSH agent full of keys would use up the server's patience. The agent is
    still asked for this one, where its public half lies beside it. Files of ~/.ssh/config that are not there are left
    out, as `ssh` does.
    """

    files: Sequence[str]
    certificates: Sequence[str]
    identity: str | None
    asyncssh_way: bool  # asyncssh reads the settings itself, and well

    @classmethod
    def of(cls, settings: asyncssh.config.SSHConfig, identity: str | None) -> Keys:
        names, certificates = _list(settings.get("IdentityFile")), _list(settings.get("CertificateFile"))
        files = key_files(names, identity)
        found = [path for path in map(_path, certificates) if Path(path).exists()]
        whole = not identity and len(found) == len(certificates) and (not names or len(files) == len(names))
        return cls(files, found, identity, whole and not any(map(_is_hardware, files)))

    def arguments(self) -> dict[str, Any]:
        """What asyncssh is told of keys; empty where its own way is right."""
        if self.asyncssh_way:
            return {}
        usable = [path for path in self.files if not _is_hardware(path)]
        told: dict[str, Any] = {"client_certs": list(self.certificates), "ignore_encrypted": True}
        if usable or self.identity:
            told["client_keys"] = usable or self.files
        if self.identity:
            public = self.files[0] + ".pub"
            told |= {"agent_identities": [public]} if Path(public).exists() else {"agent_path": None}
        return told


def _list(configured: object) -> list[str]:
    return [str(name) for name in configured] if isinstance(configured, list | tuple) else []


def _path(name: str) -> str:
    return str(Path(name).expanduser())


class Client(asyncssh.SSHClient):
    """Is asked what only we can answer, and remembers what it was asked. Says no to keys that are not on file, and to
    whoever wants a password: only keys log in here."""

    def __init__(self, keys: Keys) -> None:
        self.key: asyncssh.SSHKey | None = None
        self.address = ""
        self.locked: list[str] = []  # encrypted keys that could have been tried
        self.wants_password = False
        self.unusable: list[str] = []  # keys whose secret is in hardware
        self._keys = list(keys.files)
        self._certificates = keys.certificates
        self._connection: asyncssh.SSHClientConnection | None = None

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self._connection = conn

    @property
    def hung_up(self) -> bool:
        """Whether the server closed the connection before it said anything, as sshd does beyond MaxStartups."""
        return self._connection is not None and not self._connection.get_extra_info("server_version")

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.key, self.address = key, addr
        return False

    async def public_key_auth_requested(self) -> Any:
        """The next encrypted key that the user has opened; asked for when all keys without a passphrase were tried."""
        while self._keys:
            path = self._keys.pop(0)
            if found := keyring.opened(path, self._certificates):
                return found
            if await asyncio.to_thread(keyring.is_encrypted, path):
                self.locked.append(path)
            elif _is_hardware(path):
                self.unusable.append(path)
        return None

    def password_auth_requested(self) -> None:
        self.wants_password = True

    def kbdint_auth_requested(self) -> None:
        self.wants_password = True


def key_files(configured: Sequence[str], identity: str | None) -> list[str]:
    """The private keys that may be offered: the profile's alone, else ~/.ssh/config's that exist, else the usual."""
    if identity:
        return [_path(identity)]
    paths = configured or [f"~/.ssh/{name}" for name in _DEFAULTS]
    return [path for path in map(_path, paths) if Path(path).exists()]


def _is_hardware(path: str) -> bool:
    """Whether the secret of this key is on a security key."""
    try:
        return keyring.algorithm(path).startswith("sk-")
    except OSError:
        return False
