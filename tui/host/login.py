"""Our side of a login: which keys are offered, in which order, and what it took note of when it failed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import asyncssh

from tui.host import keyring

_DEFAULTS = ("id_ed25519", "id_ecdsa", "id_rsa")


class Client(asyncssh.SSHClient):
    """Is asked what only we can answer, and remembers what it was asked. Says no to keys that are not on file, and to
    whoever wants a password: only keys log in here."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self.key: asyncssh.SSHKey | None = None
        self.address = ""
        self.locked: list[str] = []  # encrypted keys that could have been tried
        self.wants_password = False
        self._keys = list(keys)
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
            if found := keyring.opened(path):
                return found
            if await asyncio.to_thread(keyring.is_encrypted, path):
                self.locked.append(path)
        return None

    def password_auth_requested(self) -> None:
        self.wants_password = True

    def kbdint_auth_requested(self) -> None:
        self.wants_password = True


def key_files(configured: object, identity: str | None) -> list[str]:
    """The private keys that may be offered: the profile's alone, else ~/.ssh/config's that exist, else the usual."""
    if identity:
        return [str(Path(identity).expanduser())]
    if isinstance(configured, Sequence) and not isinstance(configured, str) and configured:
        paths = [Path(str(name)).expanduser() for name in configured]
    else:
        paths = [Path("~/.ssh", name).expanduser() for name in _DEFAULTS]
    return [str(path) for path in paths if path.exists()]


def key_arguments(configured: object, identity: str | None) -> dict[str, Any]:
    """What asyncssh is told of keys; empty where its own way is right.

    The profile's ``identity`` stands alone: an SSH agent full of keys would use up the server's patience. The agent is
    still asked for this one, where its public half lies beside it. Files of ~/.ssh/config that are not there are left
    out, as `ssh` does.
    """
    files = key_files(configured, identity)
    if identity:
        public = files[0] + ".pub"
        agent = {"agent_identities": [public]} if Path(public).exists() else {"agent_path": None}
        return {"client_keys": files, "ignore_encrypted": True, **agent}
    if isinstance(configured, Sequence) and files and len(files) < len(configured):
        return {"client_keys": files, "ignore_encrypted": True}
    return {}
