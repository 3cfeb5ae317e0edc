"""Certificates of hosts and users, marked lines of known_hosts, and keys that need hardware, against a real sshd."""

# ruff: noqa: ASYNC221  # small files and processes of the test
from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.host.links import HostOf, opened, ssh_host
from tests.host.sshd import Sshd, make_key, require_sshd, start_sshd
from tests.host.test_hostkeys import error_of, fingerprint, home
from tests.host.test_login import agent
from tui.host import keyring
from tui.host.answers import answer
from tui.host.api import HostErrorKind
from tui.host.question import LockedKey, UnknownHostKey

__all__ = ["agent", "home"]
PASSPHRASE = "correct horse"
Start = Callable[..., Sshd]


def sign(authority: Path, public: Path, principals: str, *more: str) -> None:
    """A certificate beside the public key."""
    command = ["ssh-keygen", "-q", "-s", str(authority), "-I", "test", "-n", principals, *more, str(public)]
    subprocess.run(command, check=True, capture_output=True)


def public(path: Path) -> str:
    return " ".join(path.with_name(path.name + ".pub").read_text().split()[:2])


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start sshds whose folder's keys may have been prepared."""
    require_sshd()
    servers: list[Sshd] = []

    def started(folder: Path, *lines: str) -> Sshd:
        servers.append(start_sshd(folder, *lines))
        return servers[-1]

    yield started
    for server in servers:
        server.stop()


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    make_key(tmp_path / "authority")
    return tmp_path / "authority"


@pytest.fixture
def certified(tmp_path: Path, start: Start, authority: Path) -> Callable[..., Sshd]:
    """An sshd that shows a certificate of ``authority``, by default a good one."""

    def made(principals: str = "127.0.0.1", *more: str) -> Sshd:
        folder = tmp_path / "certified"
        folder.mkdir(mode=0o700)
        make_key(folder / "hostkey")
        sign(authority, folder / "hostkey.pub", principals, "-h", *(more or ("-V", "-1h:+1h")))
        return start(folder, f"HostCertificate {folder}/hostkey-cert.pub")

    return made


def knows(server: Sshd, folder: Path, *lines: str) -> HostOf:
    """The server, with known_hosts of these lines; ``{}`` is its entry there."""
    (folder / "known").write_text("".join(line.replace("{}", f"[127.0.0.1]:{server.port}") + "\n" for line in lines))
    return ssh_host(server, folder / "state", known_hosts=str(folder / "known"))


# hosts


@pytest.mark.parametrize("pattern", ["{}", "*", "127.0.0.1"])
async def test_an_authority_vouches_for_its_hosts(
    certified: Callable[..., Sshd], authority: Path, tmp_path: Path, pattern: str
) -> None:
    async with opened(knows(certified(), tmp_path, f"@cert-authority {pattern} {public(authority)}")) as link:
        assert await link.runs() == []


@pytest.mark.parametrize("fault", ["another authority", "expired", "another name", "no certificate"])
async def test_a_certificate_that_does_not_do_is_no_more_than_an_unknown_key(
    certified: Callable[..., Sshd], start: Start, authority: Path, tmp_path: Path, fault: str
) -> None:
    if fault == "no certificate":
        server = start(tmp_path / "plain")
    else:
        server = certified(*{"expired": ("127.0.0.1", "-V", "-2h:-1h"), "another name": ("elsewhere",)}.get(fault, ()))
    if fault == "another authority":
        make_key(tmp_path / "other")
        authority = tmp_path / "other"
    host = knows(server, tmp_path, f"@cert-authority * {public(authority)}")
    error = await error_of(host)
    assert error.kind is HostErrorKind.HOST_KEY_UNKNOWN, error
    assert fingerprint(server.folder / "hostkey.pub") in error.message
    assert ("Its certificate does not do" in error.message) is (fault != "no certificate"), error.message
    assert isinstance(error.question, UnknownHostKey)
    assert await answer(error.question, "yes")
    async with opened(host) as link:  # as with `ssh`, the key counts where its certificate does not
        assert await link.runs() == []


async def test_a_known_key_needs_no_authority(certified: Callable[..., Sshd], tmp_path: Path) -> None:
    server = certified()
    async with opened(knows(server, tmp_path, f"{{}} {public(server.folder / 'hostkey')}")) as link:
        assert await link.runs() == []


async def test_an_unknown_host_with_a_certificate_shows_its_key(certified: Callable[..., Sshd], tmp_path: Path) -> None:
    server = certified()
    error = await error_of(knows(server, tmp_path, ""))
    assert error.kind is HostErrorKind.HOST_KEY_UNKNOWN and error.question
    assert fingerprint(server.folder / "hostkey.pub") in error.message


@pytest.mark.parametrize("revoked", ["authority", "key"])
@pytest.mark.parametrize("pattern", ["{}", "*"])
async def test_what_is_revoked_counts_before_any_certificate(
    certified: Callable[..., Sshd], authority: Path, tmp_path: Path, revoked: str, pattern: str
) -> None:
    server = certified()
    bad = public(authority if revoked == "authority" else server.folder / "hostkey")
    host = knows(server, tmp_path, f"@cert-authority * {public(authority)}", f"@revoked {pattern} {bad}")
    error = await error_of(host)
    assert error.kind is HostErrorKind.HOST_KEY_REVOKED and error.question is None


async def test_lines_that_are_none_keep_nobody_out(start: Start, tmp_path: Path) -> None:
    server = start(tmp_path / "sshd")
    key = public(server.folder / "hostkey")
    host = knows(server, tmp_path, "garbage", "@odd * x", "|1|bad|bad ssh-ed25519 AAAA", "|9| x", f"{{}} {key}")
    async with opened(host) as link:
        assert await link.runs() == []


# users


@pytest.fixture
def trusting(tmp_path: Path, start: Start, authority: Path) -> Sshd:
    """An sshd that lets in whoever has a certificate, and no bare key."""
    server = start(tmp_path / "trusting", f"TrustedUserCAKeys {authority}.pub")
    (server.folder / "authorized_keys").write_text("")
    return server


def alias(server: Sshd, home: Path, *lines: str) -> HostOf:
    (home / ".ssh/config").write_text(
        f"Host gpu\n  HostName 127.0.0.1\n  Port {server.port}\n  User {server.user}\n"
        f"  UserKnownHostsFile {server.known_hosts}\n" + "".join(f"  {line}\n" for line in lines)
    )
    return HostOf("gpu", state_dir=str(home / "state"))


@pytest.mark.parametrize("way", ["identity", "beside", "CertificateFile", "one that is not there", "usual", "agent"])
async def test_a_certificate_logs_in(
    trusting: Sshd, authority: Path, agent: Path, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, way: str
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK")
    key = Path(trusting.identity)
    assert (await error_of(ssh_host(trusting, tmp_path / "state"))).kind is HostErrorKind.LOGIN_REFUSED
    sign(authority, key.with_name("id.pub"), trusting.user, "-V", "-1h:+1h")
    certificate = key.with_name("id-cert.pub")
    elsewhere = home / "elsewhere-cert.pub"
    match way:
        case "identity":
            host = ssh_host(trusting, tmp_path / "state")
        case "beside":
            host = alias(trusting, home, f"IdentityFile {key}")
        case "CertificateFile":
            certificate.rename(elsewhere)
            host = alias(trusting, home, f"IdentityFile {key}", f"CertificateFile {elsewhere}")
        case "one that is not there":
            lines = (f"IdentityFile {key}", "CertificateFile ~/none-cert.pub", f"CertificateFile {elsewhere}")
            certificate.rename(elsewhere)
            host = alias(trusting, home, *lines)
        case "usual":
            for name in ("id", "id.pub", "id-cert.pub"):
                key.with_name(name).rename(home / ".ssh" / name.replace("id", "id_ed25519", 1))
            host = alias(trusting, home)
        case _:
            subprocess.run(["ssh-add", "-q", str(key)], check=True, env={**os.environ, "SSH_AUTH_SOCK": str(agent)})
            monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
            host = alias(trusting, home)
    async with opened(host) as link:
        assert await link.runs() == []


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_an_encrypted_key_with_its_certificate(
    trusting: Sshd, authority: Path, home: Path, elsewhere: bool
) -> None:
    key = Path(trusting.identity)
    sign(authority, key.with_name("id.pub"), trusting.user, "-V", "-1h:+1h")
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", PASSPHRASE, "-f", str(key)], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    lines = [f"IdentityFile {key}"]
    if elsewhere:
        key.with_name("id-cert.pub").rename(home / "my-cert.pub")
        lines.append(f"CertificateFile {home}/my-cert.pub")
    host = alias(trusting, home, *lines)
    try:
        assert (await error_of(host)).question == LockedKey(str(key))
        assert await answer(LockedKey(str(key)), PASSPHRASE)
        async with opened(host) as link:
            assert await link.runs() == []
    finally:
        keyring.forget()


async def test_an_expired_certificate_is_refused(trusting: Sshd, authority: Path, tmp_path: Path) -> None:
    sign(authority, Path(trusting.identity).with_name("id.pub"), trusting.user, "-V", "-2h:-1h")
    error = await error_of(ssh_host(trusting, tmp_path / "state"))
    assert error.kind is HostErrorKind.LOGIN_REFUSED
