"""Links over a pipe and over a real sshd."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.host.links import HostOf, opened, ssh_host
from tests.host.sshd import Sshd, running_sshd
from tui.host.link import HostLink


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[HostLink]:
    async with opened(HostOf(state_dir=str(tmp_path / "state"))) as link:
        yield link


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    with running_sshd(tmp_path / "sshd") as running:
        yield running


@pytest.fixture(scope="session")
def lasting_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """One sshd for all tests that do it no harm."""
    with running_sshd(tmp_path_factory.mktemp("lasting") / "sshd") as running:
        yield running


@pytest.fixture(params=["local", "ssh"])
async def link(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[HostLink]:
    """The same over both ways."""
    state = tmp_path / "state"
    if request.param == "local":
        async with opened(HostOf(state_dir=str(state))) as found:
            yield found
    else:
        async with opened(ssh_host(request.getfixturevalue("lasting_server"), state)) as found:
            yield found
