"""Ports of a host on this machine's loopback: opened on request, opened again after each reconnect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tui.host.api import Forwarded, HostError

LOOPBACK = "127.0.0.1"


class Listener(Protocol):
    """A listening socket of this machine whose connections lead to the host (asyncssh's ``SSHListener``)."""

    def get_port(self) -> int: ...

    def close(self) -> None: ...


class Forwarder(Protocol):
    """What can open one: a session over SSH."""

    async def forward(self, address: str, port: int, local: int) -> Listener: ...


@dataclass(slots=True)
class _Forward:
    address: str
    local: int
    listener: Listener | None


class Forwards:
    """All forwarded ports of one host, by the port there. ``tell`` hears what becomes of them at a reconnect."""

    def __init__(self, tell: Callable[[Forwarded], None]) -> None:
        self._tell = tell
        self._open: dict[int, _Forward] = {}

    async def open(self, through: Forwarder, port: int, address: str, local: int) -> int:
        """Bring ``address:port`` of the host to ``local`` of this machine's loopback (0: any free one); the local port.
        Raises ``HostError``."""
        known = self._open.get(port)
        if known is not None:
            return known.local
        listener = await through.forward(address, port, local)
        if port in self._open:  # somebody else was faster
            listener.close()
        else:
            self._open[port] = _Forward(address, listener.get_port(), listener)
        return self._open[port].local

    async def resume(self, through: Forwarder) -> None:
        """The connection is a new one: listen again, at the same ports of this machine."""
        for port, forward in list(self._open.items()):
            _close(forward)
            trouble = ""
            try:
                forward.listener = await through.forward(forward.address, port, forward.local)
            except HostError as error:
                trouble = str(error)
            if self._open.get(port) is forward:
                self._tell(Forwarded(port, forward.local, trouble))
            else:  # it was let go meanwhile
                _close(forward)

    def close(self, port: int | None = None) -> None:
        """Let go of one port, or of all."""
        for number in list(self._open) if port is None else [port]:
            forward = self._open.pop(number, None)
            if forward is not None:
                _close(forward)


def _close(forward: _Forward) -> None:
    if forward.listener is not None:
        forward.listener.close()
        forward.listener = None
