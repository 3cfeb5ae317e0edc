"""Parts without a host: frames, addresses, masking, names, wording."""

from __future__ import annotations

import asyncio
import socket

import asyncssh
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.host.agent import frames, sockets
from tui.host.agent.files import safe_name
from tui.host.agent.masking import Masker
from tui.host.agent.procs import Proc, descendants, members, parse_stat
from tui.host.api import HostError, HostErrorKind
from tui.host.target import Target, parse_target
from tui.host.wording import FINAL, describe

HEADERS = st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=20) | st.none(), max_size=4)


@given(st.lists(st.tuples(HEADERS, st.binary(max_size=200)), max_size=6), st.data())
def test_frames_survive_any_chunking(sent: list[tuple[dict[str, object], bytes]], data: st.DataObject) -> None:
    stream = b"".join(frames.encode(header, body) for header, body in sent)
    decoder, found, at = frames.Decoder(), [], 0
    while at < len(stream):
        size = data.draw(st.integers(1, max(1, len(stream) - at)))
        found += decoder.feed(stream[at : at + size])
        at += size
    assert found == sent


@given(st.binary(min_size=12, max_size=100).filter(lambda data: not data.startswith(frames.MAGIC)))
def test_anything_else_is_a_bad_frame(data: bytes) -> None:
    with pytest.raises(frames.BadFrame):
        frames.Decoder().feed(data)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("gpu-host", Target("gpu-host")),
        ("me@gpu", Target("gpu", "me")),
        ("me@10.0.0.5:2222", Target("10.0.0.5", "me", 2222)),
        ("[::1]:22", Target("::1", None, 22)),
        ("ssh://me@gpu:22/", Target("gpu", "me", 22)),
    ],
)
def test_addresses(text: str, target: Target) -> None:
    assert parse_target(text) == target


@pytest.mark.parametrize("text", ["", "-oProxyCommand=x", "a b", "host:0", "host:99999", "host:port", "@host"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(HostError) as found:
        parse_target(text)
    assert found.value.kind is HostErrorKind.CONFIG


@given(st.text(max_size=30))
def test_a_name_is_one_path_component(name: str) -> None:
    safe = safe_name(name.encode("utf-8", "replace").decode())
    assert safe and "/" not in safe and not safe.startswith(".") and safe.isascii()


def test_masking() -> None:
    hide = Masker(["tok", "token-long"], ["api-key"])
    assert hide.argv(["--api-key", "a", "--API_KEY=b", "x=token-long", "tok"]) == [
        "--api-key", "***", "--API_KEY=***", "x=***", "***",
    ]  # fmt: skip
    assert hide.text("export A=tok B=token-long") == "export A=*** B=***"
    assert hide.text(None) is None


def test_a_process_may_be_called_anything() -> None:
    fields = " ".join(str(number) for number in range(3, 53)).split()
    fields[0] = "S"
    proc = parse_stat(7, "7 (a) b (c)) " + " ".join(fields))
    assert proc == Proc(7, "a) b (c)", "S", 4, 6, 22, threads=20)
    assert parse_stat(7, "garbage") is None


def test_members_of_a_run() -> None:
    def proc(pid: int, parent: int, session: int, start: int = 100) -> Proc:
        return Proc(pid, "x", "S", parent, session, start)

    procs = {p.pid: p for p in [proc(10, 1, 10), proc(11, 10, 10), proc(12, 11, 12), proc(20, 1, 20), proc(21, 20, 20)]}
    process = {"pid": 10, "start": 100}
    assert members(process, procs) == {10, 11, 12}
    assert members({"pid": 20, "start": 99}, procs) == set()  # the pid is somebody else's now
    assert descendants([20], procs) == {21}


def test_where_to_connect() -> None:
    def listener(address: str) -> sockets.Listener:
        return sockets.Listener(address, "1")

    assert sockets.reachable([]) == "127.0.0.1"
    assert sockets.reachable([listener("0.0.0.0")]) == "127.0.0.1"
    assert sockets.reachable([listener("10.0.0.5")]) == "10.0.0.5"
    assert sockets.reachable([listener("::1")]) == "::1"
    assert sockets.reachable([listener("::ffff:10.0.0.5")]) == "10.0.0.5"


@pytest.mark.parametrize(
    ("error", "kind", "part"),
    [
        (asyncssh.PermissionDenied("no"), HostErrorKind.LOGIN_REFUSED, "gpu refused all keys for me"),
        (asyncssh.ProtocolError("Too many authentication failures"), HostErrorKind.LOGIN_REFUSED, "too many keys"),
        (asyncssh.ConnectionLost("Login timeout expired"), HostErrorKind.UNREACHABLE, "no login within 20 s"),
        (asyncssh.ConnectionLost("Connection lost"), HostErrorKind.UNREACHABLE, "before the login"),
        (ConnectionResetError(104, "Connection reset by peer"), HostErrorKind.UNREACHABLE, "before the login"),
        (socket.gaierror(-2, "Name or service not known"), HostErrorKind.UNREACHABLE, "name gpu is not known"),
        (ConnectionRefusedError(111, "Connection refused"), HostErrorKind.UNREACHABLE, "no SSH server on port 22"),
        (TimeoutError(), HostErrorKind.UNREACHABLE, "did not answer within 15 s"),
        (asyncssh.ConfigParseError("x line 3: Extra"), HostErrorKind.CONFIG, "line 3"),
        (OSError(113, "No route to host"), HostErrorKind.UNREACHABLE, "No route to host"),
        (ValueError("odd"), HostErrorKind.CONFIG, "odd"),
        (UnicodeDecodeError("utf-8", b"\xfc", 0, 1, "invalid"), HostErrorKind.CONFIG, "~/.ssh/config, or a file"),
    ],
)
def test_wording(error: Exception, kind: HostErrorKind, part: str) -> None:
    said = describe(error, host="gpu", user="me", port=22)
    assert said.kind is kind and part in said.message
    assert (kind in FINAL) == (kind is not HostErrorKind.UNREACHABLE)


@pytest.mark.parametrize("error", [asyncssh.PermissionDenied("no"), OSError(113, "No route to host")])
def test_advice_to_try_ssh_names_a_port_that_is_not_the_usual_one(error: Exception) -> None:
    assert "`ssh -p 2222 gpu`" in describe(error, host="gpu", user="me", port=2222).remedy
    assert "`ssh gpu`" in describe(error, host="gpu", user="me", port=22).remedy


def test_importing_the_link_loads_no_asyncssh() -> None:
    import subprocess
    import sys

    code = "import sys, tui.host.connect; raise SystemExit('asyncssh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_links_can_be_made_without_a_loop() -> None:
    from tests.host.links import HostOf
    from tui.host.connect import open_link

    assert open_link(HostOf()).name == "box"
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
