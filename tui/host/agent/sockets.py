"""Who listens on a TCP port: asked of the kernel by netlink (``sock_diag(7)``), or read from /proc/net/tcp and tcp6.

Those two go through the table of all connections for the few that listen, which takes the kernel several milliseconds
on a machine with much memory, whatever it holds.
"""

from __future__ import annotations

import _socket as socket  # without the enums and selectors of ``socket``, which would be a twentieth of the agent
import os
import struct

from .files import read_text
from .procs import look
from .tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator

LISTEN = "0A"
FAMILIES = (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6))

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLMSG_ERROR, NLMSG_DONE = 2, 3
DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
QUESTION = struct.Struct("=BBBxI2s46x")  # inet_diag_req_v2: family, protocol, extensions, states, port, the rest
ANSWER = struct.Struct("=4x2s2s16s16x12x12xII")  # inet_diag_msg: ports, source, ... , uid, inode
TCP_LISTEN = 10


class Listener(NamedTuple):
    """A listening socket; ``inode`` finds its owner among the descriptors of processes."""

    address: str
    inode: str
    port: int = 0
    uid: int = -1


def listeners(port: int) -> list[Listener]:
    """Everything that listens on ``port`` in this network namespace."""
    found = _asked(port)
    return list(_listening("%04X" % port)) if found is None else [one for one in found if one.port == port]


def all_listeners() -> list[Listener]:
    """Everything that listens on any port in this network namespace."""
    found = _asked()
    return list(_listening()) if found is None else found


def _asked(port: int = 0) -> list[Listener] | None:
    """What netlink says of ``port``, or of any; ``None`` where it may not be asked, as in some containers."""
    found: list[Listener] = []
    try:
        kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
    except (OSError, AttributeError):
        return None
    try:
        kernel.settimeout(1.0)
        for _, family in FAMILIES:
            question = QUESTION.pack(family, socket.IPPROTO_TCP, 0, 1 << TCP_LISTEN, port.to_bytes(2, "big"))
            size = HEADER.size + len(question)
            kernel.sendto(HEADER.pack(size, SOCK_DIAG_BY_FAMILY, DUMP, 0, 0) + question, (0, 0))
            while (more := _answers(kernel.recv(1 << 16), family)) is not None:
                found += more
    except OSError:
        return None
    finally:
        kernel.close()
    return found


def _answers(data: bytes, family: int) -> list[Listener] | None:
    """The sockets in one piece of the answer; ``None`` after the last. Raises ``OSError``."""
    found: list[Listener] = []
    at = 0
    while at + HEADER.size <= len(data):
        size, kind, _, _, _ = HEADER.unpack_from(data, at)
        if kind == NLMSG_DONE:
            return None
        if kind == NLMSG_ERROR or size < HEADER.size:
            raise OSError("the kernel does not tell")
        port, _, address, uid, inode = ANSWER.unpack_from(data, at + HEADER.size)
        raw = address if family == socket.AF_INET6 else address[:4]
        found.append(Listener(socket.inet_ntop(family, raw), str(inode), int.from_bytes(port, "big"), uid))
        at += (size + 3) & ~3
    return found


def _listening(port: str = "") -> Iterator[Listener]:
    """``port`` in the kernel's four hexadecimal digits; any without it."""
    for name, family in FAMILIES:
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
