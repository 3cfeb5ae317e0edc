"""Ports of the loopback address."""

from __future__ import annotations

import socket

_HELD: list[socket.socket] = []


def free_port() -> int:
    """A port that nobody else is given as long as this process lives: held bound, but not listening, so that a server
    that allows the address to be reused can have it."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _HELD.append(holder)
    return int(holder.getsockname()[1])


def listens(port: int, ip: str = "127.0.0.1") -> bool:
    """Whether somebody accepts connections there."""
    with socket.socket() as probe:
        return probe.connect_ex((ip, port)) == 0
