"""Who listens on a TCP port, from /proc/net/tcp and /proc/net/tcp6."""

from __future__ import annotations

import os
import socket
from typing import Iterable, Iterator, NamedTuple

from .files import read_text
from .procs import look

LISTEN = "0A"


class Listener(NamedTuple):
    """A listening socket; ``inode`` finds its owner among the descriptors of processes."""

    address: str
    inode: str
    port: int = 0
    uid: int = -1


def listeners(port: int) -> list[Listener]:
    """Everything that listens on ``port`` in this network namespace."""
    return list(_listening("%04X" % port))


def all_listeners() -> list[Listener]:
    """Everything that listens on any port in this network namespace."""
    return list(_listening())


def _listening(port: str = "") -> Iterator[Listener]:
    """``port`` in the kernel's four hexadecimal digits; any without it."""
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in (read_text("/proc/self/net/" + name, 64 << 20) or "").splitlines()[1:]:
            if LISTEN not in line or port not in line:
                continue
            fields = line.split()
            address, _, local_port = fields[1].rpartition(":")
            if local_port == (port or local_port) and fields[3] == LISTEN:
                yield Listener(_address(family, address), fields[9], int(local_port, 16), int(fields[7]))


def _address(family: int, text: str) -> str:
    """The kernel prints 32-bit words in host byte order (little-endian on all GPU hosts)."""
    raw = bytes.fromhex(text)
    words = b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4))
    return socket.inet_ntop(family, words)


def reachable(found: Iterable[Listener]) -> str:
    """The address to connect to: loopback, unless the server listens elsewhere only."""
    addresses = [listener.address for listener in found]
    for address in addresses:
        if address == "0.0.0.0" or address.startswith("127."):
            return "127.0.0.1"
    for address in addresses:
        if address in ("::", "::ffff:0.0.0.0"):
            return "127.0.0.1" if _dual_stack() else "::1"
        if address.startswith("::ffff:"):
            return address[7:]
        return address
    return "127.0.0.1"


def _dual_stack() -> bool:
    return (read_text("/proc/sys/net/ipv6/bindv6only") or "0").strip() == "0"


def holds(pid: int, inodes: set[str]) -> str | None:
    """Which of the sockets ``inodes`` the process has open; ``None`` too when its descriptors cannot be seen."""
    return next(held(pid, inodes), None)


def held(pid: int, inodes: set[str]) -> Iterator[str]:
    """Those of the sockets ``inodes`` that the process has open."""
    folder = "/proc/%d/fd" % pid
    try:
        for fd in os.listdir(folder):
            try:
                target = os.readlink(folder + "/" + fd)
            except OSError:
                continue
            if target.startswith("socket:[") and target[8:-1] in inodes:
                yield target[8:-1]
    except OSError:
        pass


def owner(inodes: set[str]) -> str | None:
    """Who holds one of these sockets: ``pid 123 (nginx)``, or ``None`` when it belongs to another user."""
    for entry in os.listdir("/proc"):
        if entry.isdigit() and holds(int(entry), inodes):
            proc = look(int(entry))
            return "pid %s (%s)" % (entry, proc.name if proc else "?")
    return None


def who_listens(port: int) -> str | None:
    """``None`` when the port is free, else who has it."""
    found = listeners(port)
    if not found:
        return None
    return owner({listener.inode for listener in found}) or "a process of another user"
