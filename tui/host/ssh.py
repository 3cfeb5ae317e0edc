"""A channel over SSH: one asyncssh connection (and its jump hosts), one exec session, no terminal, bytes only."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import random
import weakref
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import asyncssh

from tui.host import hostkeys, login, openssh, wording
from tui.host.api import HostError, HostErrorKind
from tui.host.channel import Tail
from tui.host.forward import LOOPBACK
from tui.host.proxy import Proxy
from tui.host.source import command
from tui.host.target import HostConfig, Target, parse_target
from tui.host.threads import let_go_at_the_end

KEEPALIVE_SECONDS, KEEPALIVE_COUNT = 5, 3
MAX_JUMPS = 8
FORWARD_SECONDS = 10.0
AT_ONCE = 4  # connections being set up to one address; sshd drops the eleventh (MaxStartups)
KNOCKS, KNOCK_SECONDS = 5, 0.4  # attempts while sshd hangs up before it says anything; growing, jittered waits

logging.getLogger("asyncssh").addHandler(logging.NullHandler())  # else its warnings end on the user's screen

_gates: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Semaphore]]
_gates = weakref.WeakKeyDictionary()


@contextlib.asynccontextmanager
async def _gate(address: str) -> AsyncIterator[None]:
    gates = _gates.setdefault(asyncio.get_running_loop(), {})
    async with gates.setdefault(address, asyncio.Semaphore(AT_ONCE)):
        yield


class SshChannel:
    """The agent at the other end of an exec session."""

    def __init__(self, host: str, connections: list[asyncssh.SSHClientConnection], proxies: list[Proxy]) -> None:
        self._host = host
        self._connections = connections
        self._proxies = proxies
        self._tail = Tail()
        self._process: asyncssh.SSHClientProcess[bytes] | None = None
        self._drain: asyncio.Task[None] | None = None

    async def start(self, line: str) -> None:
        self._process = await self._connections[-1].create_process(
            line, encoding=None, request_pty=False, stderr=asyncssh.PIPE, x11_forwarding=False
        )
        self._drain = asyncio.create_task(self._drain_stderr(self._process))

    async def _drain_stderr(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        with contextlib.suppress(OSError, asyncssh.Error):
            while data := await process.stderr.read(65536):
                self._tail.add(data)

    async def read(self, size: int) -> bytes:
        assert self._process is not None
        try:
            return await self._process.stdout.read(size)
        except asyncssh.Error as error:
            raise ConnectionError(error.reason or str(error)) from error

    def write(self, data: bytes) -> None:
        assert self._process is not None
        try:
            self._process.stdin.write(data)
        except asyncssh.Error as error:
            raise ConnectionError(error.reason or str(error)) from error

    async def close(self) -> None:
        """End session and connections; a dead peer is not waited for."""
        if self._drain is not None:
            self._drain.cancel()
        if self._process is not None:
            self._process.close()
        for connection in reversed(self._connections):
            connection.close()
            try:
                async with asyncio.timeout(1.0):
                    await connection.wait_closed()
            except (TimeoutError, OSError, asyncssh.Error):
                connection.abort()
        for proxy in self._proxies:
            await proxy.close()

    def last_words(self) -> str:
        return str(self._tail)

    async def forward(self, address: str, port: int, local: int) -> asyncssh.SSHListener:
        """Listen here for connections that lead there; first see whether sshd lets any through."""
        connection = self._connections[-1]
        try:
            async with asyncio.timeout(FORWARD_SECONDS):
                _, writer = await connection.open_connection(address, port, encoding=None)
                writer.close()
        except asyncssh.ChannelOpenError as error:
            if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
                raise HostError(
                    HostErrorKind.REFUSED,
                    f"sshd of {self._host} forbids forwarding.",
                    "Its AllowTcpForwarding or DisableForwarding says so.",
                ) from error  # of any other: nothing listens there yet
        except (TimeoutError, OSError, asyncssh.Error) as error:
            raise HostError(HostErrorKind.UNREACHABLE, f"{self._host} does not answer: {error}.") from error
        try:
            return await connection.forward_local_port(LOOPBACK, local, address, port)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise HostError(HostErrorKind.CONFIG, f"Port {local} of this machine cannot be used: {why}.") from error


async def open_ssh(config: HostConfig, mark: str) -> SshChannel:
    """Connect, log in, start the agent's interpreter. Raises ``HostError``."""
    let_go_at_the_end()
    target = parse_target(config.ssh)
    channel = SshChannel(target.host, [], [])
    line = command(mark, config.python)
    dialer = _Dialer(config, channel)
    try:
        await dialer.connect(target, final=True)
        try:
            await channel.start(line)
        except (OSError, asyncssh.Error) as error:
            raise dialer.describe(error, target) from error
    except BaseException:
        await channel.close()
        raise
    return channel


@dataclass
class _Door:
    """One host on the way: what asyncssh is asked for, and what is known of it."""

    target: Target
    settings: asyncssh.SSHClientConnectionOptions
    arguments: dict[str, Any]
    keys: login.Keys
    known: hostkeys.Known
    certificate: str = ""  # why its certificate does not do

    def show_plain_key(self) -> None:
        """Have it show its key alone, of the kind that `ssh` shows."""
        self.arguments["server_host_key_algs"] = list(hostkeys.PREFERRED_ALGORITHMS)

    def wants_plain_key(self, client: login.Client, error: Exception) -> bool:
        """Whether its certificate does not do, or it has no key of the kinds on file, so that whatever key it has
        counts, as with `ssh`."""
        if "server_host_key_algs" in self.arguments or client.key is not None or client.hung_up:
            return False
        if isinstance(error, asyncssh.HostKeyNotVerifiable) and "revoked" not in str(error):
            self.certificate = str(error)
            return self.known.has_authority
        hung_up = isinstance(error, asyncssh.ConnectionLost | ConnectionError) and not wording.timed_out(error)
        return hung_up or isinstance(error, asyncssh.KeyExchangeFailed)


class _Dialer:
    """Opens the connections of one channel: jump hosts first, each as strictly as the last."""

    def __init__(self, config: HostConfig, channel: SshChannel) -> None:
        self._config = config
        self._connections = channel._connections
        self._proxies = channel._proxies
        self._depth = 0

    def describe(self, error: BaseException, target: Target, port: int = 22) -> HostError:
        user = target.user or os.environ.get("USER") or "this user"
        return wording.describe(error, host=target.host, user=user, port=target.port or port)

    async def connect(self, target: Target, final: bool = False) -> asyncssh.SSHClientConnection:
        self._depth += 1
        if self._depth > MAX_JUMPS:
            raise HostError(HostErrorKind.CONFIG, f"More than {MAX_JUMPS} jump hosts before {target.host}.")
        arguments = self._arguments(target)
        try:
            settings = await asyncssh.SSHClientConnectionOptions.construct(None, **arguments, client_keys=None)
            await openssh.second_pass(settings, target.host)
        except (OSError, ValueError, asyncssh.Error) as error:
            raise self.describe(error, target) from error
        jump = (self._config.jump if final else None) or settings.tunnel
        tunnel = None
        for hop in str(jump).split(",") if jump and jump != "none" else ():
            tunnel = await self.connect(parse_target(hop))
        return await self._dial(target, settings, tunnel, final)

    def _arguments(self, target: Target) -> dict[str, Any]:
        """Only what the profile says; the rest is ~/.ssh/config's."""
        arguments: dict[str, Any] = {"host": target.host, "config": ()}  # (): the default files
        if target.port is not None:
            arguments["port"] = target.port
        if target.user is not None:
            arguments["username"] = target.user
        return arguments

    def _known_hosts(self, settings: asyncssh.SSHClientConnectionOptions, final: bool) -> list[str]:
        if self._config.known_hosts and (final or self._config.jump):
            return [self._config.known_hosts]
        return openssh.known_hosts_files(settings)

    async def _door(
        self, target: Target, settings: asyncssh.SSHClientConnectionOptions, tunnel: Any, final: bool
    ) -> _Door:
        files = self._known_hosts(settings, final)
        known = await asyncio.to_thread(hostkeys.read_files, files)
        name, port = settings.host_key_alias or settings.host, settings.port
        if settings.host_key_alias:
            port = 22  # its entries name no port
        keys = login.Keys.of(settings.config, self._config.identity if final else None)
        arguments = self._arguments(target) | keys.arguments() | {
            "known_hosts": known, "tunnel": tunnel, "proxy_command": None,
            "agent_forwarding": False, "keepalive_interval": KEEPALIVE_SECONDS, "keepalive_count_max": KEEPALIVE_COUNT,
            "login_timeout": wording.LOGIN_SECONDS, "connect_timeout": wording.CONNECT_SECONDS,
            "utf8_decode_errors": "replace", "x11_forwarding": False,
        }  # fmt: skip
        door = _Door(target, settings, arguments, keys, hostkeys.Known(known, tuple(files), name, port))
        if not door.known.has_entry:
            door.show_plain_key()
        return door

    async def _dial(
        self, target: Target, settings: asyncssh.SSHClientConnectionOptions, tunnel: Any, final: bool
    ) -> asyncssh.SSHClientConnection:
        door = await self._door(target, settings, tunnel, final)
        for attempt in itertools.count(1):
            client = login.Client(door.keys)
            try:
                connection = await self._knock(door, client)
                break
            except (OSError, ValueError, asyncssh.Error) as error:
                if door.wants_plain_key(client, error):
                    door.show_plain_key()
                elif client.hung_up and not wording.timed_out(error) and attempt < KNOCKS:  # MaxStartups
                    await asyncio.sleep(random.uniform(0.5, 1.5) * attempt * KNOCK_SECONDS)
                else:
                    raise await self._explained(error, door, client) from error
        self._connections.append(connection)
        return connection

    async def _explained(self, error: Exception, door: _Door, client: login.Client) -> HostError:
        host, user, port = door.target.host, door.settings.username, door.settings.port
        if isinstance(error, asyncssh.HostKeyNotVerifiable):
            return hostkeys.verdict(door.known, client, await openssh.host_key_policy(door.target), door.certificate)
        if isinstance(error, asyncssh.PermissionDenied):
            return wording.refused(
                error, host=host, user=user, port=port,
                wants_password=client.wants_password, locked=client.locked, unusable=client.unusable,
            )  # fmt: skip
        return self.describe(error, Target(host, user, port))

    async def _knock(self, door: _Door, client: login.Client) -> asyncssh.SSHClientConnection:
        """One attempt, through the ProxyCommand if there is one."""
        proxy, arguments, settings = None, door.arguments, door.settings
        line = settings.config.get("ProxyCommand")
        if arguments["tunnel"] is None and settings.proxy_command and line:
            proxy = await Proxy.start(str(line), door.target.host)
            self._proxies.append(proxy)
            arguments = {**arguments, "sock": proxy.socket}
        try:
            async with _gate(f"{settings.host}:{settings.port}"):
                return await asyncssh.connect(**arguments, client_factory=lambda: client)
        except (asyncssh.HostKeyNotVerifiable, asyncssh.PermissionDenied):
            raise
        except (OSError, ValueError, asyncssh.Error) as error:
            if proxy is not None and proxy.failed:
                raise proxy.error() from error
            raise
