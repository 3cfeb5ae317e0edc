"""Strict host-key checking: which files count, and why a key was not accepted."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from tui.host.api import HostError, HostErrorKind
from tui.host.login import Client
from tui.host.question import UnknownHostKey
from tui.host.target import ssh_words

# what `ssh` shows first, so that a fingerprint compares with the one that people have
PREFERRED_ALGORITHMS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256")


def read_files(paths: Iterable[str]) -> bytes:
    """The entries of the known_hosts files that can be read, without lines that are none. Never empty: to asyncssh,
    empty means something else."""
    parts = [b"# known hosts\n"]
    for path in paths:
        try:
            parts.append(Path(path).expanduser().read_bytes() + b"\n")
        except (OSError, RuntimeError):
            continue
    text = b"".join(parts).decode("utf-8", "replace")
    if not _is_sound(text):
        text = "".join(line for line in text.splitlines(keepends=True) if _is_sound(line))
    return text.encode()


def _is_sound(text: str) -> bool:
    """Whether asyncssh can read these lines: one that it cannot would keep it from reading any."""
    try:
        asyncssh.import_known_hosts(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Known:
    """What the known_hosts ``files``, read into ``entries``, say of a host by its name there."""

    entries: bytes
    files: Sequence[str]
    host: str
    port: int

    @property
    def has_entry(self) -> bool:
        """Whether any key or authority is on file for the host's name."""
        return any(_match(self.entries, self.host, "", self.port)[:2])

    @property
    def has_authority(self) -> bool:
        """Whether certificates of some authority count for the host."""
        return bool(_match(self.entries, self.host, "", self.port)[1])


def _match(known: bytes, host: str, address: str, port: int) -> tuple[list[asyncssh.SSHKey], ...]:
    found = asyncssh.match_known_hosts(known, host, address, port if port != 22 else None)
    return list(found[0]), list(found[1]), list(found[2])


def verdict(known: Known, witness: Client, policy: str = "", certificate: str = "") -> HostError:
    """Unknown, changed or revoked: asyncssh says the same of all three. ``policy``: StrictHostKeyChecking, if set;
    ``certificate``: why the host's does not do."""
    host, port = known.host, known.port
    trusted, _, revoked = _match(known.entries, host, witness.address, port)
    where = ", ".join(known.files)
    key = witness.key
    print_ = f"{key.get_algorithm().removeprefix('ssh-').upper()} {key.get_fingerprint('sha256')}" if key else ""
    entry = host if port == 22 else f"[{host}]:{port}"
    if (revoked and (key is None or key in revoked)) or (key is not None and _is_revoked(known.entries, key)):
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
    unsigned = f" Its certificate does not do: {certificate}." if certificate else ""
    return HostError(
        HostErrorKind.HOST_KEY_UNKNOWN,
        f"The host key of {host} is not known: {print_} (looked in {where}).{unsigned}",
        f"Compare the fingerprint with the host's. {_POLICIES.get(policy, _ADD).format(words=ssh_words(host, port))}",
        question=_question(host, entry, key, print_, known.files[0]) if key and policy not in ("yes", "true") else None,
    )


_ADD = "Then answer yes when you are asked on a terminal or in the dashboard, or run `ssh {words}` once."
_LAX = "StrictHostKeyChecking of ~/.ssh/config does not count here: a new key is added only on request. "
_STRICT = "StrictHostKeyChecking is yes: only you can add the key to that file."
_POLICIES = {"yes": _STRICT, "true": _STRICT} | dict.fromkeys(("no", "off", "false", "accept-new"), _LAX + _ADD)


def _is_revoked(known: bytes, key: asyncssh.SSHKey) -> bool:
    """A lone ``@revoked`` line for a host with a port is lost by the lookup; the key itself is not."""
    blob = key.export_public_key("openssh").split()[1]
    return any(line.startswith(b"@revoked") and blob in line for line in known.splitlines())


def _question(host: str, entry: str, key: asyncssh.SSHKey, fingerprint: str, file: str) -> UnknownHostKey:
    line = key.export_public_key("openssh").decode().split()
    return UnknownHostKey(host, entry, f"{line[0]} {line[1]}", fingerprint, str(Path(file).expanduser()))


def add(offer: UnknownHostKey) -> None:
    """Append the key to its known_hosts file: in one write, the file for its owner only if it is new, the name hashed
    if the file's are. Raises ``HostError``, also where the name has another key by now: that is never written over."""
    path = Path(offer.file)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "r+b", buffering=0) as file:
            before = file.readall()
            host, _, port = offer.entry.lstrip("[").partition("]:")
            if _match(b"#\n" + before, host, "", int(port or 22))[0]:
                raise HostError(
                    HostErrorKind.HOST_KEY_CHANGED, f"{path} has a key of {offer.entry} by now: nothing was added."
                )
            name = _hashed(offer.entry) if b"|1|" in before else offer.entry
            gap = "" if before.endswith(b"\n") or not before else "\n"
            file.write(f"{gap}{name} {offer.key}\n".encode())
    except OSError as error:
        raise HostError(
            HostErrorKind.CONFIG, f"The host key cannot be added to {path}: {(error.strerror or str(error)).lower()}."
        ) from error


def _hashed(name: str) -> str:
    """A host's name as OpenSSH hides it."""
    salt = os.urandom(20)
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
