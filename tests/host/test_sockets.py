"""Listening sockets: netlink and /proc say the same, and the one stands in for the other."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from tui.host.agent import sockets


@pytest.fixture
def ears() -> Iterator[list[socket.socket]]:
    """One that listens on IPv4, one on IPv6 where there is any, and one that is only bound."""
    found = [socket.create_server(("127.0.0.1", 0))]
    if socket.has_dualstack_ipv6():
        found.append(socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True))
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    found.append(bound)
    yield found
    for one in found:
        one.close()


def mine(found: list[sockets.Listener], ears: list[socket.socket]) -> set[sockets.Listener]:
    ports = {ear.getsockname()[1] for ear in ears}
    return {one for one in found if one.port in ports}


def test_netlink_and_proc_say_the_same(ears: list[socket.socket]) -> None:
    asked = sockets._asked()
    if asked is None:
        pytest.skip("netlink may not be asked here")
    listening = ears[:-1]
    assert mine(asked, ears) == mine(list(sockets._listening()), ears)
    assert {one.inode for one in mine(asked, ears)} == {str(os.fstat(ear.fileno()).st_ino) for ear in listening}
    assert {one.uid for one in mine(asked, ears)} == {os.getuid()}


def test_one_port_is_asked_for(ears: list[socket.socket]) -> None:
    for ear in ears[:-1]:
        port = ear.getsockname()[1]
        assert [(one.port, one.inode) for one in sockets.listeners(port)] == [
            (port, str(os.fstat(ear.fileno()).st_ino))
        ]
    assert sockets.listeners(ears[-1].getsockname()[1]) == []


def test_without_netlink_proc_is_read(ears: list[socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    before = mine(sockets.all_listeners(), ears)
    monkeypatch.delattr("_socket.AF_NETLINK")
    assert sockets._asked() is None
    assert mine(sockets.all_listeners(), ears) == before
    port = ears[0].getsockname()[1]
    assert sockets.listeners(port) == [one for one in before if one.port == port]


def test_what_netlink_refuses_is_no_answer() -> None:
    error = sockets.HEADER.pack(sockets.HEADER.size, sockets.NLMSG_ERROR, 0, 0, 0)
    with pytest.raises(OSError):
        sockets._answers(error, socket.AF_INET)
    assert sockets._answers(sockets.HEADER.pack(16, sockets.NLMSG_DONE, 0, 0, 0), socket.AF_INET) is None
