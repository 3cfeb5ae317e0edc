"""Questions of hosts, answered in a fleet: an answer helps every host that waits for it, also after a lost link."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fleet.rig import session
from tests.host.sshd import Sshd, require_sshd, start_sshd
from tests.waiting import DEADLINE
from tui.fleet.api import WRONG_PASSPHRASE, Answer, LockedKey, UnknownHostKey
from tui.host import keyring
from tui.profile.load import loads
from tui.profile.model import Profile

PASSPHRASE = "correct horse"


@dataclass
class Hosts:
    """Two sshds that accept one encrypted key, and whose keys nobody knows yet."""

    servers: list[Sshd]
    key: str
    known: Path
    profile: Profile


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    require_sshd()
    servers = [start_sshd(tmp_path / "one"), start_sshd(tmp_path / "two")]
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", PASSPHRASE, "-f", str(key)], check=True)
    for server in servers:
        shutil.copy(tmp_path / "key.pub", server.folder / "authorized_keys")
    known = tmp_path / "known"
    told = {
        name: {"ssh": server.address, "identity": str(key), "known_hosts": str(known),
               "state_dir": str(tmp_path / name / "state")}
        for name, server in zip(("one", "two"), servers, strict=True)
    }  # fmt: skip
    told["behind"] = {**told["two"], "jump": servers[0].address}
    text = {
        "name": "p",
        "hosts": told,
        "servers": {name: {"host": name, "command": ["/bin/true"], "port": 1 + at} for at, name in enumerate(told)},
    }
    yield Hosts(servers, str(key), known, loads(json.dumps(text)))
    keyring.forget()
    for server in servers:
        server.stop()


async def test_one_answer_for_all_who_wait(hosts: Hosts, tmp_path: Path) -> None:
    servers = [server for server in hosts.profile.servers if server.name != "behind"]
    async with session(hosts.profile, tmp_path, servers=servers) as fleet:
        offers = [host.question for host in fleet.hosts()]
        assert all(isinstance(offer, UnknownHostKey) for offer in offers) and len(set(offers)) == 2
        for offer in offers:
            assert offer and not (await fleet.act(Answer(offer, "no"))).ok
        assert not hosts.known.exists()
        for offer in offers:
            assert offer and (await fleet.act(Answer(offer, "yes"))).ok
        await fleet.settled()
        assert [host.question for host in fleet.hosts()] == [LockedKey(hosts.key)] * 2
        wrong = await fleet.act(Answer(LockedKey(hosts.key), "wrong"))
        assert not wrong.ok and wrong.details["error"] == WRONG_PASSPHRASE
        right = Answer(LockedKey(hosts.key), PASSPHRASE)
        assert PASSPHRASE not in repr(right)
        outcome = await fleet.act(right)
        assert outcome.ok and "one, two" in outcome.message
        await fleet.settled()
        assert [(host.phase, host.question) for host in fleet.hosts()] == [("connected", None)] * 2
        assert hosts.servers[0].kill_sessions()
        one = fleet.host_of("one")
        assert await fleet.until(lambda: one.state.phase == "unreachable", DEADLINE)
        assert await fleet.until(lambda: one.state.phase == "connected", DEADLINE)  # without another question


async def test_a_jump_host_asks_as_well(hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home/.ssh").mkdir(parents=True)
    (tmp_path / "home/.ssh/config").write_text(f"Host *\n  IdentityFile {hosts.key}\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    asked = []
    async with session(hosts.profile, tmp_path, servers=[hosts.profile.server("behind")]) as fleet:
        while (question := fleet.hosts()[0].question) is not None:
            assert question not in asked
            asked.append(question)
            assert (await fleet.act(Answer(question, PASSPHRASE if isinstance(question, LockedKey) else "yes"))).ok
            await fleet.settled()
        assert fleet.hosts()[0].phase == "connected"
    entries = [question.entry for question in asked if isinstance(question, UnknownHostKey)]
    assert entries == [f"[127.0.0.1]:{server.port}" for server in hosts.servers]
    assert asked.count(LockedKey(hosts.key)) == 1
