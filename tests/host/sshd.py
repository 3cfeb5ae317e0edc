"""OpenSSH's sshd on loopback, with keys and settings of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.leftovers import MARK, with_parent
from tests.ports import free_port, listens
from tests.processes import below
from tests.waiting import DEADLINE, until

SSHD = "/usr/sbin/sshd"


@dataclass
class Sshd:
    """A running sshd. ``address`` is ``user@ip:port``; ``identity`` is the only key it accepts."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    user: str = field(default_factory=getpass.getuser)
    ip: str = "127.0.0.1"

    @property
    def address(self) -> str:
        return self.address_at(self.port)

    def address_at(self, port: int) -> str:
        """The same server reached through ``port``, where a test's proxy listens; its key is known there too."""
        key = " ".join((self.folder / "hostkey.pub").read_text().split()[:2])
        with (self.folder / "known_hosts").open("a") as known:
            known.write(f"[{self.ip}]:{port} {key}\n")
        return f"{self.user}@{self.ip}:{port}"

    @property
    def identity(self) -> str:
        return str(self.folder / "id")

    @property
    def known_hosts(self) -> str:
        return str(self.folder / "known_hosts")

    def below(self) -> list[int]:
        """Process ids of everything that runs below this sshd."""
        return below(self.process.pid)

    def sessions(self) -> list[int]:
        """Process ids of the sshd processes below this one: one or two per connection."""
        return [pid for pid in self.below() if _name(pid).startswith("sshd")]

    def kill_sessions(self, number: int = signal.SIGKILL) -> int:
        """End every connection from the server's side; how many processes that took."""
        pids = self.sessions()
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
        return len(pids)

    def stop(self) -> None:
        """End the listener and all connections."""
        self.kill_sessions()
        self.process.terminate()
        self.process.wait(DEADLINE)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def make_key(path: Path) -> str:
    """An ed25519 key pair without passphrase; the public line is returned."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path)], check=True)
    return path.with_name(path.name + ".pub").read_text().strip()


def start_sshd(
    folder: Path, *lines: str, port: int | None = None, ip: str = "127.0.0.1", within: Sequence[str] = ()
) -> Sshd:
    """Start an sshd whose files are in ``folder``. Keys that are there stay.

    ``lines``: settings that go before its own. ``within``: the command that runs it in another network namespace.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    port = port or free_port()
    for name in ("hostkey", "id"):
        if not (folder / name).exists():
            make_key(folder / name)
    (folder / "authorized_keys").write_text((folder / "id.pub").read_text())
    (folder / "known_hosts").unlink(missing_ok=True)
    settings = [
        *lines,  # sshd takes the first that it reads
        f"Port {port}", f"ListenAddress {ip}", f"HostKey {folder}/hostkey", "PidFile none", "UsePAM no",
        f"AuthorizedKeysFile {folder}/authorized_keys", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
        "StrictModes no", "PermitRootLogin yes", "AllowTcpForwarding yes",
        f"SetEnv {MARK}={os.environ.get(MARK, '')}",
    ]  # fmt: skip
    (folder / "sshd_config").write_text("\n".join(settings) + "\n")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    log = (folder / "sshd.log").open("ab")
    process = subprocess.Popen(
        [*within, SSHD, "-D", "-e", "-f", str(folder / "sshd_config")],
        stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=with_parent,
    )  # fmt: skip
    server = Sshd(folder, port, process, ip=ip)
    assert server.address  # which makes its key known
    until(lambda: process.poll() is not None or listens(port, ip))
    if process.poll() is None:
        return server
    server.stop()
    raise RuntimeError("sshd did not start: " + (folder / "sshd.log").read_text())


def require_sshd() -> None:
    """Skip where there is no sshd; fail where HCS_REQUIRE_SSHD=1 says that there must be one."""
    if os.access(SSHD, os.X_OK) and shutil.which("ssh-keygen"):
        return
    if os.environ.get("HCS_REQUIRE_SSHD") == "1":
        pytest.fail("OpenSSH's sshd is required (HCS_REQUIRE_SSHD=1), and it is not here")
    pytest.skip("no OpenSSH sshd on this machine")


@contextmanager
def running_sshd(folder: Path, *lines: str) -> Iterator[Sshd]:
    """An sshd for the length of a block; skips where there is none."""
    require_sshd()
    server = start_sshd(folder, *lines)
    try:
        yield server
    finally:
        server.stop()
