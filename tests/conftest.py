"""What all tests share: a home folder of their own, and the rules for what may be skipped."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.host.sshd import Sshd, running_sshd
from tests.leftovers import none_left

_FOLDERS = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")
# What a user's session may set and what changes the program's answers.
_UNSET = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "SSH_AUTH_SOCK", "TEXTUAL", "TEXTUAL_THEME", "COLORTERM")


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """A shell's background jobs ignore SIGINT and hand that on; programs under test must end by it all the same."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """What the tests started ends with them, however they end; what they forgot is an error."""
    with none_left():
        yield


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty home folder for this process and its children: no test reads or writes the user's files."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        for name in _FOLDERS:
            patch.delenv(name, raising=False)
        for name in _UNSET:
            patch.delenv(name, raising=False)
        patch.setenv("TERM", "xterm-256color")
        patch.setenv("LC_ALL", "C.UTF-8")
        yield folder


@pytest.fixture
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """An sshd for one test."""
    with running_sshd(tmp_path_factory.mktemp("sshd")) as running:
        yield running


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Real SGLang takes minutes and gigabytes: it is tested only where its folder is named (``make test-real``)."""
    if collection_path.name == "real_sglang" and not any("real_sglang" in argument for argument in config.args):
        return True
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With ``HCS_REQUIRE_SSHD=1`` a test that needs sshd fails where it would be skipped."""
    report = yield
    if report.skipped and os.environ.get("HCS_REQUIRE_SSHD") == "1" and _needs_sshd(item):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, but HCS_REQUIRE_SSHD=1 says that sshd must be here"
    return report


def _needs_sshd(item: pytest.Item) -> bool:
    return item.get_closest_marker("sshd") is not None or "sshd" in getattr(item, "fixturenames", ())
