"""Whom we talk to: strict host keys, logins, and the traps of ~/.ssh/config."""

# ruff: noqa: ASYNC221, ASYNC240  # small files and processes of the test, polled where nothing tells
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.host.links import HostOf, opened, ssh_host
from tests.host.sshd import Sshd, make_key
from tests.ports import free_port
from tui.host.api import HostError, HostErrorKind
from tui.host.connect import SshLink


async def error_of(host: HostOf) -> HostError:
    link = SshLink(host)
    with pytest.raises(HostError) as found:
        await link.open()
    await link.close()
    assert found.value.message and "Traceback" not in str(found.value)
    return found.value


def fingerprint(path: Path) -> str:
    told = subprocess.run(["ssh-keygen", "-l", "-f", str(path)], capture_output=True, text=True, check=True)
    return told.stdout.split()[1]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of our own, with an empty ~/.ssh, and no SSH agent."""
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return folder


async def test_an_unknown_host_key(server: Sshd, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    error = await error_of(ssh_host(server, tmp_path, known_hosts=str(tmp_path / "empty")))
    assert error.kind is HostErrorKind.HOST_KEY_UNKNOWN
    assert "ED25519 " + fingerprint(server.folder / "hostkey.pub") in error.message
    assert str(tmp_path / "empty") in error.message


async def test_a_changed_host_key(server: Sshd, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other").split()
    (tmp_path / "known").write_text(f"[127.0.0.1]:{server.port} {other[0]} {other[1]}\n")
    error = await error_of(ssh_host(server, tmp_path, known_hosts=str(tmp_path / "known")))
    assert error.kind is HostErrorKind.HOST_KEY_CHANGED
    assert "CHANGED" in error.message and fingerprint(server.folder / "hostkey.pub") in error.message
    assert f"ssh-keygen -R '[127.0.0.1]:{server.port}'" in error.remedy


@pytest.mark.parametrize("pattern", ["[127.0.0.1]:{port}", "*"])
async def test_a_revoked_host_key(server: Sshd, tmp_path: Path, pattern: str) -> None:
    key = " ".join((server.folder / "hostkey.pub").read_text().split()[:2])
    (tmp_path / "known").write_text(f"@revoked {pattern.format(port=server.port)} {key}\n")
    error = await error_of(ssh_host(server, tmp_path, known_hosts=str(tmp_path / "known")))
    assert error.kind is HostErrorKind.HOST_KEY_REVOKED


async def test_a_hashed_entry_is_found(server: Sshd, tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text(Path(server.known_hosts).read_text())
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known)], check=True, capture_output=True)
    async with opened(ssh_host(server, tmp_path / "state", known_hosts=str(known))) as link:
        assert await link.runs() == []


async def test_a_key_that_the_host_does_not_accept(server: Sshd, tmp_path: Path) -> None:
    make_key(tmp_path / "wrong")
    error = await error_of(ssh_host(server, tmp_path, identity=str(tmp_path / "wrong")))
    assert error.kind is HostErrorKind.LOGIN_REFUSED
    assert f"refused all keys for {server.user}" in error.message


async def test_an_encrypted_key(server: Sshd, tmp_path: Path, home: Path) -> None:
    path = tmp_path / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(path)], check=True)
    (tmp_path / "locked.pub").unlink()
    error = await error_of(ssh_host(server, tmp_path, identity=str(path)))
    assert error.kind is HostErrorKind.KEY_LOCKED
    assert "encrypted" in error.message and "ssh-add" in error.remedy


async def test_nobody_listens(server: Sshd, tmp_path: Path) -> None:
    port = free_port()
    error = await error_of(ssh_host(server, tmp_path, ssh=f"root@127.0.0.1:{port}"))
    assert error.kind is HostErrorKind.UNREACHABLE
    assert f"no SSH server on port {port}" in error.message


async def test_a_name_that_nobody_knows(server: Sshd, tmp_path: Path) -> None:
    error = await error_of(ssh_host(server, tmp_path, ssh="no-such-host.invalid"))
    assert error.kind is HostErrorKind.UNREACHABLE
    assert "no-such-host.invalid" in error.message


async def test_no_python_there(server: Sshd, tmp_path: Path) -> None:
    error = await error_of(ssh_host(server, tmp_path, python="/no/such/python3"))
    assert error.kind is HostErrorKind.NO_PYTHON
    assert "/no/such/python3" in error.message


async def test_an_alias_with_its_settings(server: Sshd, tmp_path: Path, home: Path) -> None:
    (home / ".ssh/config").write_text(
        f"Host gpu\n  HostName 127.0.0.1\n  Port {server.port}\n  User {server.user}\n"
        f"  IdentityFile {server.identity}\n  UserKnownHostsFile {server.known_hosts}\n"
        "  RequestTTY force\n  StrictHostKeyChecking no\n  ForwardAgent yes\n"
    )
    async with opened(HostOf("gpu", state_dir=str(tmp_path / "state"))) as link:
        assert await link.runs() == []


@pytest.mark.parametrize("setting", ["UserKnownHostsFile none", "StrictHostKeyChecking no", ""])
async def test_no_setting_switches_the_check_off(server: Sshd, home: Path, setting: str) -> None:
    (home / ".ssh/config").write_text(f"Host *\n  IdentityFile {server.identity}\n  {setting}\n")
    error = await error_of(HostOf(server.address))
    assert error.kind is HostErrorKind.HOST_KEY_UNKNOWN


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Host *\n  Port 22 # comment\n", "line 2"),
        ("Match sessiontype exec\n  User x\n", "match condition"),
        ('Match exec "test a = a"\n  User x\n', "match condition"),
    ],
)
async def test_settings_that_cannot_be_read_are_named(server: Sshd, home: Path, text: str, told: str) -> None:
    (home / ".ssh/config").write_text(text)
    error = await error_of(HostOf(server.address, known_hosts=server.known_hosts))
    assert error.kind is HostErrorKind.CONFIG
    assert told in error.message
    assert error.remedy


async def test_a_jump_host(server: Sshd, tmp_path: Path, home: Path) -> None:
    (home / ".ssh/config").write_text(
        f"Host *\n  IdentityFile {server.identity}\n  UserKnownHostsFile {server.known_hosts}\n"
    )
    async with opened(HostOf(server.address, jump=server.address, state_dir=str(tmp_path / "state"))) as link:
        assert await link.runs() == []


async def test_a_jump_host_is_checked_as_strictly(server: Sshd, home: Path) -> None:
    (home / ".ssh/config").write_text(f"Host *\n  IdentityFile {server.identity}\n  UserKnownHostsFile none\n")
    error = await error_of(HostOf(f"{server.user}@127.0.0.1:1", jump=server.address))
    assert error.kind is HostErrorKind.HOST_KEY_UNKNOWN


async def test_a_proxy_command(server: Sshd, tmp_path: Path, home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(
        "import os, socket, sys, threading\n"
        "print('noise of the proxy', file=sys.stderr, flush=True)\n"
        "s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "def up():\n    while data := os.read(0, 65536): s.sendall(data)\n"
        "threading.Thread(target=up, daemon=True).start()\n"
        "while data := s.recv(65536): os.write(1, data)\n"
    )
    (home / ".ssh/config").write_text(
        f"Host proxied\n  HostName 127.0.0.1\n  Port {server.port}\n  IdentityFile {server.identity}\n"
        f"  UserKnownHostsFile {server.known_hosts}\n  ProxyCommand python3 {relay} %p\n"
        f"Host broken\n  ProxyCommand sh -c 'echo cannot dig a tunnel >&2; exit 3'\n"
    )
    async with opened(HostOf(f"{server.user}@proxied", state_dir=str(tmp_path / "state"))) as link:
        assert await link.runs() == []
    error = await error_of(HostOf("broken"))
    assert error.kind is HostErrorKind.UNREACHABLE
    assert "ProxyCommand" in error.message and "cannot dig a tunnel" in error.message
    assert capfd.readouterr().err == ""


async def test_a_key_of_another_kind_than_the_one_on_file(server: Sshd, tmp_path: Path) -> None:
    """sshd hangs up on whoever asks for kinds of keys that it does not have."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(tmp_path / "old")], check=True)
    old = " ".join((tmp_path / "old.pub").read_text().split()[:2])
    (tmp_path / "known").write_text(f"[127.0.0.1]:{server.port} {old}\n")
    error = await error_of(ssh_host(server, tmp_path, known_hosts=str(tmp_path / "known")))
    assert error.kind is HostErrorKind.HOST_KEY_CHANGED
    assert fingerprint(server.folder / "hostkey.pub") in error.message
