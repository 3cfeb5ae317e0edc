"""~/.ssh/config where OpenSSH reads it twice or asyncssh reads less: names, tokens, hops, agents, hardware keys."""

# ruff: noqa: ASYNC240  # small files and processes of the test
from __future__ import annotations

import base64
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.links import HostOf, opened
from tests.host.sshd import Sshd, make_key, require_sshd, start_sshd
from tests.host.test_hostkeys import error_of, home
from tui.host import wording
from tui.host.answers import answer
from tui.host.api import HostErrorKind
from tui.host.question import UnknownHostKey

__all__ = ["home"]


def settings(home: Path, *lines: str) -> None:
    (home / ".ssh/config").write_text("\n".join(lines) + "\n")


async def works(home: Path, alias: str) -> None:
    async with opened(HostOf(alias, state_dir=str(home / "state"))) as link:
        assert await link.runs() == []


def login(server: Sshd) -> tuple[str, ...]:
    return f"  Port {server.port}", f"  User {server.user}", f"  IdentityFile {server.identity}"


# names


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Names that resolve to the loopback address, and the canonical ones that a resolver tells of them."""
    known: dict[str, str] = {}
    real = socket.getaddrinfo

    def resolve(host: Any, port: Any, *more: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name is None or not name.endswith(".test"):
            return real(host, port, *more, **named)
        if name not in known:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        kind, mode, protocol, _, address = real("127.0.0.1", port, type=socket.SOCK_STREAM)[0]
        return [(kind, mode, protocol, known[name], address)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return known


def canonical(server: Sshd, known: Path, *lines: str) -> tuple[str, ...]:
    return (
        "CanonicalizeHostname yes", "CanonicalDomains none.test lab.test", *lines,
        "Host *.lab.test", *login(server), f"  UserKnownHostsFile {known}",
    )  # fmt: skip


async def test_a_canonical_name_chooses_its_settings_and_its_key(
    server: Sshd, home: Path, names: dict[str, str]
) -> None:
    names["box.lab.test"] = "box.lab.test"
    known = home / "known"
    settings(home, *canonical(server, known))
    error = await error_of(HostOf("box"))
    assert error.kind is HostErrorKind.HOST_KEY_UNKNOWN and str(known) in error.message
    assert isinstance(error.question, UnknownHostKey)
    assert error.question.entry == f"[box.lab.test]:{server.port}", "as `ssh` names it"
    assert await answer(error.question, "yes")
    await works(home, "box")


async def test_an_alias_of_the_resolver_counts_where_it_may(server: Sshd, home: Path, names: dict[str, str]) -> None:
    names.update({"box.lab.test": "real.lab.test", "real.lab.test": "real.lab.test"})
    known = home / "known"
    settings(home, *canonical(server, known, "CanonicalizePermittedCNAMEs *.lab.test:*.lab.test"))
    error = await error_of(HostOf("box"))
    assert isinstance(error.question, UnknownHostKey)
    assert error.question.entry == f"[real.lab.test]:{server.port}"


async def test_a_name_without_a_canonical_one_stays(server: Sshd, home: Path, names: dict[str, str]) -> None:
    settings(home, "CanonicalizeHostname yes", "CanonicalDomains none.test", "Host localhost", *login(server))
    error = await error_of(HostOf("localhost"))
    assert isinstance(error.question, UnknownHostKey) and error.question.entry == f"[localhost]:{server.port}"
    settings(home, "CanonicalizeHostname yes", "CanonicalDomains none.test", "CanonicalizeFallbackLocal no")
    error = await error_of(HostOf("localhost"))
    assert error.kind is HostErrorKind.UNREACHABLE and "canonicalize" in error.message


# blocks


@pytest.mark.parametrize(
    "match",
    [
        "host 127.0.0.1", "originalhost bo?", "user {user}", "localuser {user}", "final all", "exec true", "all",
        "!host elsewhere", "host 127.* exec true user {user}",
    ],
)  # fmt: skip
async def test_blocks_that_match(server: Sshd, home: Path, match: str) -> None:
    settings(
        home, "Host box", "  HostName 127.0.0.1", f"  User {server.user}", f"Match {match.format(user=server.user)}",
        *login(server), f"  UserKnownHostsFile {server.known_hosts}",
    )  # fmt: skip
    await works(home, "box")


async def test_files_that_are_included(server: Sshd, home: Path) -> None:
    """By patterns, from included files too, and before what comes after them."""
    box = ("Host box", "  HostName 127.0.0.1", *login(server), f"  UserKnownHostsFile {server.known_hosts}")
    for name, lines in {"d-1": ("Include nested/*",), "d-2": ("Host other", "  Port 1"), "nested/x": box}.items():
        (home / ".ssh" / name).parent.mkdir(exist_ok=True)
        (home / ".ssh" / name).write_text("\n".join(lines) + "\n")
    settings(home, "Include d-* none/*", "Host *", "  Port 2")
    await works(home, "box")


@pytest.mark.parametrize("token", ["%d", "%u-%r", "%h:%p", "%n", "%%", "${HCS_TEST_KEYS}"])
async def test_tokens_of_key_files(server: Sshd, home: Path, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("HCS_TEST_KEYS", "by-environment")
    values = {
        "%d": str(home), "%u-%r": f"{server.user}-{server.user}", "%h:%p": f"127.0.0.1:{server.port}", "%n": "box",
        "%%": "%", "${HCS_TEST_KEYS}": "by-environment",
    }  # fmt: skip
    folder = Path(values[token]) if token == "%d" else home / values[token]
    folder.mkdir(exist_ok=True)
    Path(server.identity).rename(folder / "key")
    name = f"{token}/key" if token == "%d" else f"~/{token}/key"
    settings(
        home, "Host box", "  HostName 127.0.0.1", f"  Port {server.port}", f"  User {server.user}",
        f"  IdentityFile {name}", f"  UserKnownHostsFile {server.known_hosts}",
    )  # fmt: skip
    await works(home, "box")


@pytest.mark.parametrize(
    "name", ["%d/hosts/%h", "~/hosts/%n-%p", "~/hosts/%k", "${HOME}/hosts/x", "/dev/null ~/hosts/x"]
)
async def test_tokens_of_known_hosts(server: Sshd, home: Path, name: str) -> None:
    (home / "hosts").mkdir()
    values = {
        "%d": str(home),
        "%h": "127.0.0.1",
        "%n": "box",
        "%p": str(server.port),
        "%k": "box",
        "${HOME}": str(home),
    }
    path = name.removeprefix("/dev/null ")
    for token, value in values.items():
        path = path.replace(token, value)
    Path(path).expanduser().write_text(Path(server.known_hosts).read_text())
    settings(home, "Host box", "  HostName 127.0.0.1", *login(server), f"  UserKnownHostsFile {name}")
    await works(home, "box")


async def test_the_machines_known_hosts_count_beside_the_users(server: Sshd, home: Path) -> None:
    known = f"GlobalKnownHostsFile {server.known_hosts}"
    settings(home, known, "Host box", "  HostName 127.0.0.1", *login(server), "  UserKnownHostsFile ~/none")
    await works(home, "box")
    settings(home, known, "Host box", "  HostName 127.0.0.1", *login(server))
    await works(home, "box")


# hops


@pytest.fixture
def hops(tmp_path: Path) -> Iterator[Callable[[], Sshd]]:
    """More sshds, each with keys of its own."""
    require_sshd()
    servers: list[Sshd] = []

    def another() -> Sshd:
        servers.append(start_sshd(tmp_path / f"hop{len(servers)}"))
        return servers[-1]

    yield another
    for server in servers:
        server.stop()


def block(name: str, server: Sshd, *lines: str) -> tuple[str, ...]:
    known = f"  UserKnownHostsFile {server.known_hosts}"
    return f"Host {name}", "  HostName 127.0.0.1", *login(server), known, "  IdentitiesOnly yes", *lines


@pytest.mark.parametrize("way", ["one", "a list", "nested", "a match", "by command"])
async def test_hops_with_keys_of_their_own(server: Sshd, home: Path, hops: Callable[[], Sshd], way: str) -> None:
    first, second = hops(), hops()
    jump = {
        "one": ["  ProxyJump first"], "a list": ["  ProxyJump first,second"], "nested": ["  ProxyJump second"],
        "a match": ["Match host 127.0.0.1 originalhost box", "  ProxyJump first"],
        "by command": [f"  ProxyCommand ssh -F {home}/.ssh/config -W %h:%p first"],
    }[way]  # fmt: skip
    before = ["  ProxyJump first"] if way == "nested" else []
    settings(home, *block("box", server, *jump), *block("first", first), *block("second", second, *before))
    await works(home, "box")
    seen = [b"Accepted publickey" in (hop.folder / "sshd.log").read_bytes() for hop in (first, second)]
    assert seen == [True, way in ("a list", "nested")]


async def test_a_hop_that_is_away_is_named(server: Sshd, home: Path, hops: Callable[[], Sshd]) -> None:
    first = hops()
    settings(home, *block("box", server, "  ProxyJump first"), *block("first", first))
    first.stop()
    error = await error_of(HostOf("box"))
    assert error.kind is HostErrorKind.UNREACHABLE and error.message.startswith("first "), error.message


# agents and hardware


async def test_an_agent_that_hangs_is_named(
    server: Sshd, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wording, "LOGIN_SECONDS", 1)
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(tmp_path / "agent"))
        deaf.listen()
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        settings(home, *block("box", server))
        (home / ".ssh/config").write_text((home / ".ssh/config").read_text().replace("IdentitiesOnly yes", ""))
        error = await error_of(HostOf("box"))
    assert error.kind is HostErrorKind.UNREACHABLE and "hung SSH agent" in error.remedy, error


@pytest.mark.parametrize("agent", ["none", "~/no-such-socket", "SSH_AUTH_SOCK"])
async def test_an_agent_that_is_not_there(
    server: Sshd, home: Path, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(home / "gone"))
    settings(home, *block("box", server, f"  IdentityAgent {agent}"))
    await works(home, "box")


def security_key(path: Path, server: Sshd) -> None:
    """A key file as `ssh-keygen -t ed25519-sk` leaves it, whose secret is in a device that nobody has."""

    def text(*parts: bytes) -> bytes:
        return b"".join(struct.pack(">I", len(part)) + part for part in parts)

    kind, application = b"sk-ssh-ed25519@openssh.com", b"ssh:"
    point = base64.b64decode(make_key(path.with_name("ordinary")).split()[1])[-32:]
    blob = text(kind, point, application)
    private = b"\0" * 8 + text(kind, point, application) + b"\1" + text(b"handle", b"", b"test")
    private += bytes(range(1, 1 + -len(private) % 8))
    body = b"openssh-key-v1\0" + text(b"none", b"none", b"") + struct.pack(">I", 1) + text(blob, private)
    lines = base64.encodebytes(body).decode()
    path.write_text(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}-----END OPENSSH PRIVATE KEY-----\n")
    path.chmod(0o600)
    line = f"{kind.decode()} {base64.b64encode(blob).decode()} test\n"
    path.with_name(path.name + ".pub").write_text(line)
    (server.folder / "authorized_keys").write_text(line)


@pytest.mark.parametrize("way", ["identity", "IdentityFile", "usual"])
async def test_a_key_on_a_security_key_is_named(server: Sshd, home: Path, way: str) -> None:
    path = home / ".ssh/id_ed25519_sk"
    security_key(path, server)
    lines = ["Host box", "  HostName 127.0.0.1", f"  Port {server.port}", f"  User {server.user}"]
    lines += [f"  UserKnownHostsFile {server.known_hosts}"] + [f"  IdentityFile {path}"] * (way == "IdentityFile")
    settings(home, *lines)
    error = await error_of(HostOf("box", identity=str(path) if way == "identity" else None))
    assert error.kind is HostErrorKind.LOGIN_REFUSED, error
    assert "security key" in error.message and f"ssh-add {path}" in error.remedy, error


async def test_a_security_key_stands_in_no_other_keys_way(server: Sshd, home: Path) -> None:
    allowed = (server.folder / "authorized_keys").read_text()
    security_key(home / ".ssh/id_ed25519_sk", server)
    (server.folder / "authorized_keys").write_text(allowed + (server.folder / "authorized_keys").read_text())
    lines = ["  HostName 127.0.0.1", f"  UserKnownHostsFile {server.known_hosts}"]
    settings(home, "Host box", *lines, "  IdentityFile ~/.ssh/id_ed25519_sk", *login(server))
    await works(home, "box")
