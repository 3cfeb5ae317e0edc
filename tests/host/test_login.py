"""Logins as users of `ssh` know them: keys with passphrases, agents, host keys added on request, ~/.ssh/config."""

# ruff: noqa: ASYNC221, ASYNC240  # small files and processes of the test
from __future__ import annotations

import asyncio
import os
import re
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.links import HostOf, opened, ssh_host
from tests.host.sshd import Sshd, make_key, require_sshd, running_sshd
from tests.host.test_hostkeys import error_of, fingerprint, home
from tests.waiting import DEADLINE, eventually, until
from tui.host import keyring
from tui.host.answers import answer, open_asking
from tui.host.api import HostError, HostErrorKind
from tui.host.connect import SshLink
from tui.host.question import LockedKey, UnknownHostKey

__all__ = ["home"]
PASSPHRASE = "correct horse"


@pytest.fixture(autouse=True)
def closed_keys() -> Iterator[None]:
    yield
    keyring.forget()


def lock(server: Sshd) -> str:
    """Give the server's only accepted key a passphrase."""
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-P", "", "-N", PASSPHRASE, "-f", server.identity], check=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return server.identity


def usual(server: Sshd, home: Path, *lines: str) -> HostOf:
    """The server by an alias of ~/.ssh/config."""
    (home / ".ssh/config").write_text(
        f"Host gpu\n  HostName 127.0.0.1\n  Port {server.port}\n  User {server.user}\n"
        + "".join(f"  {line}\n" for line in lines)
        + f"Host *\n  UserKnownHostsFile {server.known_hosts}\n"
    )
    return HostOf("gpu", state_dir=str(home / "state"))


# passphrases


@pytest.mark.parametrize("public", [True, False])
async def test_a_key_is_opened_by_its_passphrase(server: Sshd, tmp_path: Path, home: Path, public: bool) -> None:
    path = lock(server)
    if not public:
        Path(path + ".pub").rename(tmp_path / "aside.pub")
    error = await error_of(ssh_host(server, tmp_path))
    assert error.kind is HostErrorKind.KEY_LOCKED and error.question == LockedKey(path)
    assert f"{path} is encrypted" in error.message and f"ssh-add {path}" in error.remedy
    with pytest.raises(HostError, match="does not open") as wrong:
        await answer(error.question, "wrong")
    assert "wrong" not in str(wrong.value)
    assert await answer(error.question, PASSPHRASE)
    async with opened(ssh_host(server, tmp_path)) as link:
        assert await link.runs() == []
    keyring.forget()
    assert (await error_of(ssh_host(server, tmp_path))).question == LockedKey(path)


async def test_an_encrypted_key_of_the_settings(server: Sshd, home: Path) -> None:
    path = lock(server)
    host = usual(server, home, f"IdentityFile {path}")
    error = await error_of(host)
    assert error.question == LockedKey(path)
    assert await answer(LockedKey(path), PASSPHRASE)
    async with opened(host) as link:
        assert await link.runs() == []


async def test_the_usual_key_of_the_user(server: Sshd, home: Path) -> None:
    path = Path(lock(server))
    path.rename(home / ".ssh/id_ed25519")
    error = await error_of(usual(server, home))
    assert error.question == LockedKey(str(home / ".ssh/id_ed25519"))


async def test_an_old_rsa_key(server: Sshd, tmp_path: Path, home: Path) -> None:
    path = tmp_path / "old"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", PASSPHRASE, "-f", str(path)], check=True
    )
    (server.folder / "authorized_keys").write_text((tmp_path / "old.pub").read_text())
    host = ssh_host(server, tmp_path, identity=str(path))
    error = await error_of(host)
    assert error.question == LockedKey(str(path))
    assert await answer(LockedKey(str(path)), PASSPHRASE)
    async with opened(host) as link:
        assert await link.runs() == []


async def test_keys_without_a_passphrase_go_first(server: Sshd, tmp_path: Path, home: Path) -> None:
    """As with `ssh`: nobody is asked for a passphrase that is not needed."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", PASSPHRASE, "-f", str(tmp_path / "locked")], check=True)
    host = usual(server, home, f"IdentityFile {tmp_path / 'locked'}", f"IdentityFile {server.identity}")
    async with opened(host) as link:
        assert await link.runs() == []


async def test_a_question_is_asked_once(server: Sshd, tmp_path: Path, home: Path) -> None:
    path = lock(server)
    asked: list[HostError] = []

    async def ask(error: HostError) -> bool:
        asked.append(error)
        assert error.question
        return await answer(error.question, PASSPHRASE)

    link = SshLink(ssh_host(server, tmp_path))
    try:
        assert (await open_asking(link, ask)).boot_id
    finally:
        await link.close()
    assert [error.question for error in asked] == [LockedKey(path)]


# agents


@pytest.fixture
def agent(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    require_sshd()
    path = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    until(lambda: subprocess.run(["ssh-add", "-l"], capture_output=True).returncode == 1)  # there, and without keys
    yield path
    process.terminate()
    process.wait(DEADLINE)


async def test_an_agent_has_the_key(server: Sshd, home: Path, agent: Path) -> None:
    subprocess.run(["ssh-add", "-q", server.identity], check=True)
    Path(server.identity).unlink()
    async with opened(usual(server, home)) as link:
        assert await link.runs() == []


async def test_an_agent_full_of_keys(server: Sshd, tmp_path: Path, home: Path, agent: Path) -> None:
    for number in range(7):
        make_key(tmp_path / f"k{number}")
        subprocess.run(["ssh-add", "-q", str(tmp_path / f"k{number}")], check=True)
    error = await error_of(usual(server, home, f"IdentityFile {server.identity}"))
    assert error.kind is HostErrorKind.LOGIN_REFUSED
    assert "too many keys" in error.message and "IdentitiesOnly" in error.remedy
    async with opened(usual(server, home, f"IdentityFile {server.identity}", "IdentitiesOnly yes")) as link:
        assert await link.runs() == []
    async with opened(ssh_host(server, tmp_path / "state")) as link:  # by `identity`
        assert await link.runs() == []


# host keys


async def unknown(server: Sshd, home: Path, known: Path, *lines: str) -> HostError:
    (home / ".ssh/config").write_text(
        f"Host *\n  IdentityFile {server.identity}\n  UserKnownHostsFile {known}\n" + "".join(f"  {x}\n" for x in lines)
    )
    return await error_of(HostOf(server.address))


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
async def test_a_host_key_is_added_on_request(server: Sshd, home: Path, mask: int) -> None:
    known = home / "new/known_hosts"
    error = await unknown(server, home, known)
    offer = error.question
    assert isinstance(offer, UnknownHostKey) and offer.file == str(known)
    assert offer.fingerprint == "ED25519 " + fingerprint(server.folder / "hostkey.pub")
    for reply in ("", "y", "no", "YES please"):
        assert not await answer(offer, reply)
        assert not known.exists()
    before = os.umask(mask)
    try:
        assert await answer(offer, "yes")
    finally:
        os.umask(before)
    assert stat.S_IMODE(known.stat().st_mode) == 0o600 and stat.S_IMODE(known.parent.stat().st_mode) == 0o700
    async with opened(HostOf(server.address, state_dir=str(home / "state"))) as link:
        assert await link.runs() == []
    options = ["-F", str(home / ".ssh/config"), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]
    command = ["ssh", *options, "-p", str(server.port), f"{server.user}@127.0.0.1", "true"]
    assert subprocess.run(command, capture_output=True).returncode == 0  # OpenSSH reads it alike


async def test_names_are_hashed_where_they_are_hashed(server: Sshd, home: Path) -> None:
    known = home / "known_hosts"
    known.write_text("other " + make_key(home / "other").rsplit(" ", 1)[0])  # and no newline at its end
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known)], check=True, capture_output=True)
    known.write_text(known.read_text().rstrip("\n"))
    error = await unknown(server, home, known)
    assert error.question and await answer(error.question, "yes")
    lines = known.read_text().splitlines()
    assert len(lines) == 2 and all(re.match(r"\|1\|\S+\|\S+ ssh-ed25519 \S+$", line) for line in lines)
    assert "127.0.0.1" not in known.read_text()
    found = subprocess.run(["ssh-keygen", "-F", f"[127.0.0.1]:{server.port}", "-f", str(known)], capture_output=True)
    assert found.returncode == 0


async def test_a_changed_or_revoked_key_is_never_written_over(server: Sshd, home: Path) -> None:
    known = home / "known_hosts"
    error = await unknown(server, home, known)
    offer = error.question
    assert isinstance(offer, UnknownHostKey)
    entry = f"{offer.entry} {make_key(home / 'other').rsplit(' ', 1)[0]}\n"
    known.write_text(entry)
    with pytest.raises(HostError, match="nothing was added"):
        await answer(offer, "yes")
    assert known.read_text() == entry
    changed = await unknown(server, home, known)
    assert changed.kind is HostErrorKind.HOST_KEY_CHANGED and changed.question is None
    known.write_text(f"@revoked * {offer.key}\n")
    revoked = await unknown(server, home, known)
    assert revoked.kind is HostErrorKind.HOST_KEY_REVOKED and revoked.question is None


async def test_a_file_that_cannot_be_written_says_so(server: Sshd, home: Path) -> None:
    (home / "known_hosts").mkdir()
    error = await unknown(server, home, home / "known_hosts")
    assert error.question
    with pytest.raises(HostError, match="cannot be added to") as found:
        await answer(error.question, "yes")
    assert found.value.kind is HostErrorKind.CONFIG


@pytest.mark.parametrize(
    ("value", "told", "offered"),
    [
        ("no", "does not count here", True),
        ("accept-new", "does not count here", True),
        ("ask", "answer yes", True),
        ("yes", "only you can add", False),
    ],
)
async def test_strict_host_key_checking_is_heard(
    server: Sshd, home: Path, value: str, told: str, offered: bool
) -> None:
    error = await unknown(server, home, home / "none", f"StrictHostKeyChecking {value}")
    assert error.kind is HostErrorKind.HOST_KEY_UNKNOWN
    assert told in error.remedy and (error.question is not None) is offered
    assert not (home / "none").exists()


async def test_an_alias_of_a_host_key(server: Sshd, home: Path) -> None:
    key = " ".join((server.folder / "hostkey.pub").read_text().split()[:2])
    (home / "known").write_text(f"the-box {key}\n")
    (home / ".ssh/config").write_text(
        f"Host *\n  IdentityFile {server.identity}\n  HostKeyAlias the-box\n  UserKnownHostsFile {home}/known\n"
    )
    async with opened(HostOf(server.address, state_dir=str(home / "state"))) as link:
        assert await link.runs() == []
    (home / "known").unlink()
    error = await error_of(HostOf(server.address))
    assert isinstance(error.question, UnknownHostKey) and error.question.entry == "the-box"
    assert await answer(error.question, "yes")
    assert (home / "known").read_text() == f"the-box {key}\n"


# ~/.ssh/config


async def test_includes_matches_and_tokens(server: Sshd, home: Path) -> None:
    (home / ".ssh/conf.d").mkdir()
    (home / "keys").mkdir()
    Path(server.identity).rename(home / f"keys/box-{server.user}")
    (home / ".ssh/config").write_text(
        'Include ~/.ssh/conf.d/*.conf\nMatch host 127.0.0.1 exec "test -n %p"\n  IdentityFile ~/keys/%n-%r\n'
    )
    (home / ".ssh/conf.d/a.conf").write_text(
        f"Host box\n  HostName 127.0.0.1\n  Port {server.port}\n  User {server.user}\n"
        f"  UserKnownHostsFile {server.known_hosts}\n"
    )
    async with opened(HostOf("box", state_dir=str(home / "state"))) as link:
        assert await link.runs() == []


async def test_identity_files_that_are_not_there(server: Sshd, home: Path) -> None:
    host = usual(server, home, "IdentityFile ~/.ssh/no_such_key", f"IdentityFile {server.identity}")
    async with opened(host) as link:
        assert await link.runs() == []


async def test_a_proxy_command_is_a_shell_line(server: Sshd, home: Path) -> None:
    host = usual(
        server, home, f"IdentityFile {server.identity}",
        f"ProxyCommand ssh -F none -i {server.identity} -o UserKnownHostsFile={server.known_hosts} -p {server.port}"
        f" -W %h:%p {server.user}@127.0.0.1 2>/dev/null",
    )  # fmt: skip
    async with opened(host) as link:
        assert await link.runs() == []


# what sshd allows


@pytest.mark.parametrize("method", ["password", "publickey,keyboard-interactive", "publickey,password"])
async def test_a_password_or_a_second_factor(tmp_path: Path, method: str) -> None:
    ways = ("PasswordAuthentication yes", "KbdInteractiveAuthentication yes", "UsePAM yes")
    with running_sshd(tmp_path / "sshd", f"AuthenticationMethods {method}", *ways) as server:
        error = await error_of(ssh_host(server, tmp_path))
        assert error.kind is HostErrorKind.LOGIN_REFUSED and error.question is None
        assert "a password or a code" in error.message and "by keys only" in error.remedy


def held(server: Sshd) -> socket.socket:
    """A connection that sshd has let in, and that says nothing."""
    let_in: list[socket.socket] = []

    def knock() -> bool:
        sock = socket.create_connection(("127.0.0.1", server.port))
        if sock.recv(4) == b"SSH-":
            let_in.append(sock)
        else:
            sock.close()  # those who looked whether sshd is up have not left yet
        return bool(let_in)

    until(knock)
    return let_in[0]


async def test_connections_beyond_max_startups_are_tried_again(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "sshd", "MaxStartups 2:100:2", "LogLevel VERBOSE") as server:
        log = server.folder / "sshd.log"
        crowd = [held(server) for _ in range(2)]
        link = SshLink(ssh_host(server, tmp_path))
        opening = asyncio.ensure_future(link.open())
        await eventually(lambda: "MaxStartups" in log.read_text())
        for sock in crowd:
            sock.close()
        assert (await opening).boot_id
        await link.close()


async def test_max_startups_that_stay_exceeded_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tui.host import ssh

    monkeypatch.setattr(ssh, "KNOCK_SECONDS", 0.01)
    with running_sshd(tmp_path / "sshd", "MaxStartups 2:100:2") as server:
        with held(server), held(server):
            error = await error_of(ssh_host(server, tmp_path))
        assert error.kind is HostErrorKind.UNREACHABLE and "MaxStartups" in error.remedy


async def test_many_links_to_one_sshd(sshd: Sshd, tmp_path: Path) -> None:
    """With OpenSSH's usual limits (MaxStartups 10:30:100, MaxSessions 10): no link waits for another attempt."""
    links = [SshLink(ssh_host(sshd, tmp_path)) for _ in range(16)]
    try:
        hellos = await asyncio.gather(*(link.open() for link in links))
        assert len(hellos) == 16
    finally:
        await asyncio.gather(*(link.close() for link in links))


async def test_a_server_that_takes_no_session(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "sshd", "MaxSessions 0") as server:
        error = await error_of(ssh_host(server, tmp_path))
        assert error.kind is HostErrorKind.UNREACHABLE and "MaxSessions" in error.remedy
