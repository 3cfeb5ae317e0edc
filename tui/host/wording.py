"""What went wrong with a connection, in the user's words: one table."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from tui.host.api import HostError, HostErrorKind
from tui.host.question import LockedKey
from tui.host.target import parse_target, ssh_words

FINAL = frozenset(  # trying again changes nothing, and may lock the user out
    {
        HostErrorKind.HOST_KEY_UNKNOWN,
        HostErrorKind.HOST_KEY_CHANGED,
        HostErrorKind.HOST_KEY_REVOKED,
        HostErrorKind.LOGIN_REFUSED,
        HostErrorKind.KEY_LOCKED,
        HostErrorKind.CONFIG,
        HostErrorKind.NO_PYTHON,
    }
)

LOGIN_SECONDS = 20
CONNECT_SECONDS = 15
_HUNG_UP = "Too many connections at once (MaxStartups), a penalty after failed logins, or no host key type in common."

# (exception's class name, part of its text) → kind, message, remedy; {host} {user} {port} {words} {text} are filled in
_TABLE: tuple[tuple[str, str, HostErrorKind, str, str], ...] = (
    (
        "PermissionDenied",
        "",
        HostErrorKind.LOGIN_REFUSED,
        "{host} refused all keys for {user}.",
        "Try `ssh {words}`; if that works, its key must be in ~/.ssh, the SSH agent, or `identity` of the host.",
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
        _HUNG_UP,
    ),
    (
        "ConnectionResetError",
        "",
        HostErrorKind.UNREACHABLE,
        "{host} closed the connection before the login.",
        _HUNG_UP,
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
        "Comments must stand on lines of their own; newer Match keywords, and = in Match exec, are not understood.",
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
        "",
        HostErrorKind.CONFIG,
        "A key for {host} cannot be read: {text}.",
        "Correct `identity` of the host, or IdentityFile in ~/.ssh/config.",
    ),
    (
        "HostKeyNotVerifiable",
        "",
        HostErrorKind.HOST_KEY_CHANGED,
        "The host key of {host} cannot be trusted: {text}.",
        "Compare it with the host's before you connect by any means.",
    ),
    (
        "KeyExchangeFailed",
        "",
        HostErrorKind.UNREACHABLE,
        "{host} and this side have no method in common: {text}.",
        "See Ciphers, MACs, KexAlgorithms and HostKeyAlgorithms in ~/.ssh/config, or update the host's sshd.",
    ),
    (
        "ProtocolError",
        "",
        HostErrorKind.UNREACHABLE,
        "{host} broke off the connection: {text}.",
        "Try `ssh {words}`.",
    ),
    (
        "ChannelOpenError",
        "",
        HostErrorKind.UNREACHABLE,
        "{host} opens no more sessions: {text}.",
        "MaxSessions of its sshd is reached, or the account may not run commands.",
    ),
)


def login_hint(address: str) -> str:
    """What to try where the host at ``address``, as a profile has it, says nothing of its own."""
    if address == "local":
        return "This machine may be overloaded, or the `python` of the host hangs."
    target = parse_target(address)
    user = f"{target.user}@" if target.user else ""
    return f"Try `ssh {ssh_words(user + target.host, target.port or 22)}`."


def timed_out(error: BaseException) -> bool:
    """Whether the other side took the connection and then said nothing until the login was given up."""
    return "Login timeout" in str(error)


def refused(
    error: BaseException,
    *,
    host: str,
    user: str,
    port: int,
    wants_password: bool,
    locked: Sequence[str],
    unusable: Sequence[str] = (),
) -> HostError:
    """No key was accepted, or a key alone was not enough. ``locked``: encrypted keys that were not tried;
    ``unusable``: those that need hardware."""
    if locked:
        return HostError(
            HostErrorKind.KEY_LOCKED,
            f"{host} accepted no key of {user} that can be used without a passphrase; {locked[0]} is encrypted.",
            f"Add it to the SSH agent: ssh-add {locked[0]}",
            question=LockedKey(locked[0]),
        )
    if unusable:
        return HostError(
            HostErrorKind.LOGIN_REFUSED,
            f"{host} accepted no key of {user} that can be used here; {unusable[0]} is on a security key (FIDO), which"
            " only an SSH agent can ask.",
            f"Add it to the SSH agent: ssh-add {unusable[0]}. A key that must be touched cannot reconnect unattended.",
        )
    if wants_password:
        return HostError(
            HostErrorKind.LOGIN_REFUSED,
            f"{host} did not let {user} in by keys alone: it asks for a password or a code.",
            "hcs-tui logs in by keys only, since it must reconnect unattended: install a key there (ssh-copy-id), or"
            " have it exempted from the second factor.",
        )
    return describe(error, host=host, user=user, port=port)


def describe(error: BaseException, *, host: str, user: str, port: int) -> HostError:
    """A ``HostError`` for anything that connecting raises; the original is chained by the caller."""
    names = {cls.__name__ for cls in type(error).__mro__}
    text = str(error) or type(error).__name__
    values = {"host": host, "user": user, "port": port, "words": ssh_words(host, port), "text": text.rstrip(".")}
    for name, part, kind, message, remedy in _TABLE:
        if (not name or name in names) and part in text:
            return HostError(kind, message.format_map(values), remedy.format_map(values))
    if isinstance(error, UnicodeDecodeError):
        return HostError(
            HostErrorKind.CONFIG,
            f"~/.ssh/config, or a file that it includes, is not UTF-8: {text}.",
            "Save it as UTF-8; comments count too.",
        )
    if isinstance(error, ValueError):
        return HostError(HostErrorKind.CONFIG, f"The SSH settings for {host} cannot be used: {text}.")
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.strerror:
        text = error.strerror
    return HostError(
        HostErrorKind.UNREACHABLE, f"{host} cannot be reached: {text}.", f"Try `ssh {ssh_words(host, port)}`."
    )
