"""From a host of a profile to a ``Link``. asyncssh is imported at the first SSH connection, not before."""

from __future__ import annotations

from tui.host.api import HostError, HostErrorKind
from tui.host.channel import Channel, PipeChannel
from tui.host.link import HostLink
from tui.host.source import command
from tui.host.target import HostConfig

LOCAL = "local"


class LocalLink(HostLink):
    """This machine, without SSH: the same agent over a pipe."""

    def __init__(self, host: HostConfig, **config: object) -> None:
        async def open_channel(mark: str) -> Channel:
            line = command(mark, host.python)
            try:
                return await PipeChannel.open(line)
            except OSError as error:
                raise HostError(HostErrorKind.UNREACHABLE, f"{host.name}: no shell: {error}.") from error

        super().__init__(host.name, open_channel, {"state_dir": host.state_dir, **config})


class SshLink(HostLink):
    """A host reached by SSH, as the user's ~/.ssh/config, agent, keys and known_hosts say."""

    def __init__(self, host: HostConfig, **config: object) -> None:
        async def open_channel(mark: str) -> Channel:
            from tui.host.ssh import open_ssh

            return await open_ssh(host, mark)

        super().__init__(host.name, open_channel, {"state_dir": host.state_dir, **config})


def open_link(host: HostConfig, *, read_only: bool = False) -> HostLink:
    """The link to ``host``; ``await link.open()`` connects. The agent of a ``read_only`` one launches and kills
    nothing, whatever it is asked."""
    kind = LocalLink if host.ssh == LOCAL else SshLink
    return kind(host, read_only=read_only)
