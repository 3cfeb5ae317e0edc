"""What went wrong with a connection, in the user's words: one table."""

from __future__ import annotations

import socket

from tui.host.api import HostError, HostErrorKind

FINAL = frozenset(  # trying again changes nothing, and may lock the user out
    {
        HostErrorKind.HOST_KEY_UNKNOWN,
        HostErrorKind.HOST_KEY_CHANGED,
        HostErrorKind.HOST_KEY_REVOKED,
        HostErrorKind.LOGIN_REFUSED,
        HostErrorKind.CONFIG,
        HostErrorKind.NO_PYTHON,
    }
)

LOGIN_SECONDS = 20
CONNECT_SECONDS = 15

# (exception's class name, part of its text) → kind, message, remedy; {host} {user} {port} {text} are filled in
_TABLE: tuple[tuple[str, str, HostErrorKind, str, str], ...] = (
    (
        "PermissionDenied",
        "",
        HostErrorKind.LOGIN_REFUSED,
        "{host} refused all keys for {user}.",
        "Try `ssh {host}`. Encrypted keys without a passphrase were skipped: add them with ssh-add.",
    ),
    (
        "",
        "Too many authentication failures",
        HostErrorKind.LOGIN_REFUSED,
        "{host} refused the login for {user}: the SSH agent offered too many keys.",
        "Set `identity` of the host, or IdentityFile and IdentitiesOnly in ~/.ssh/config.",
    ),
    (
        "ConnectionLost",
        "Login timeout",
        HostErrorKind.UNREACHABLE,
        f"{{host}} was connected, but there was no login within {LOGIN_SECONDS} s.",
        "A hung SSH agent, a firewall, or something that is not SSH on port {port}.",
    ),
    (
        "ConnectionLost",
        "",
        HostErrorKind.UNREACHABLE,
        "{host} closed the connection before the login.",
        "Too many connections at once (MaxStartups), a penalty after failed logins, or no host key type in common.",
    ),
    (
        "gaierror",
        "",
        HostErrorKind.UNREACHABLE,
        "The name {host} is not known here.",
        "Check `ssh` of the host in the profile, or the alias in ~/.ssh/config.",
    ),
    (
        "ConnectionRefusedError",
        "",
        HostErrorKind.UNREACHABLE,
        "{host} has no SSH server on port {port}.",
        "Check the port, and that sshd runs there.",
    ),
    (
        "TimeoutError",
        "",
        HostErrorKind.UNREACHABLE,
        f"{{host}} did not answer within {CONNECT_SECONDS} s.",
        "Check the network, the VPN and the firewall.",
    ),
    (
        "ConfigParseError",
        "",
        HostErrorKind.CONFIG,
        "~/.ssh/config cannot be read: {text}.",
        "Comments must stand on lines of their own; newer Match keywords are not understood.",
    ),
    (
        "FileNotFoundError",
        "",
        HostErrorKind.CONFIG,
        "A file that the SSH settings name does not exist: {text}.",
        "Correct `identity` of the host, or IdentityFile in ~/.ssh/config.",
    ),
    (
        "KeyImportError",
        "assphrase",
        HostErrorKind.CONFIG,
        "The key for {host} is encrypted.",
        "Add it to the SSH agent with ssh-add.",
    ),
    (
        "KeyEncryptionError",
        "",
        HostErrorKind.CONFIG,
        "The key for {host} cannot be decrypted: {text}.",
        "Add it to the SSH agent with ssh-add.",
    ),
    (
        "ChannelOpenError",
        "",
        HostErrorKind.UNREACHABLE,
        "{host} opens no more sessions: {text}.",
        "MaxSessions of its sshd is reached, or the account may not run commands.",
    ),
)


def describe(error: BaseException, *, host: str, user: str, port: int) -> HostError:
    """A ``HostError`` for anything that connecting raises; the original is chained by the caller."""
    names = {cls.__name__ for cls in type(error).__mro__}
    text = str(error) or type(error).__name__
    values = {"host": host, "user": user, "port": port, "text": text.rstrip(".")}
    for name, part, kind, message, remedy in _TABLE:
        if (not name or name in names) and part in text:
            return HostError(kind, message.format_map(values), remedy.format_map(values))
    if isinstance(error, ValueError):
        return HostError(HostErrorKind.CONFIG, f"The SSH settings for {host} cannot be used: {text}.")
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.strerror:
        text = error.strerror
    return HostError(HostErrorKind.UNREACHABLE, f"{host} cannot be reached: {text}.", "Try `ssh " + host + "`.")
