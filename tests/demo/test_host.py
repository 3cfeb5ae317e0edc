"""The embedded host: who may log in, what commands see, what is left when it ends."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest

from tests.demo.running import SECONDS
from tests.processes import is_running
from tests.waiting import eventually, until
from tui.demo.host import FILES, DemoHost, DemoPaths, prepare


@pytest.fixture
def host(tmp_path: Path) -> Iterator[DemoPaths]:
    with DemoHost() as demo:
        yield demo.start(tmp_path / "demo", speed=500, load=False)


def port_of(paths: DemoPaths) -> int:
    found = re.search(r"demo@127\.0\.0\.1:(\d+)", paths.profile.read_text())
    assert found
    return int(found[1])


@asynccontextmanager
async def connected(
    paths: DemoPaths, key: object = None, user: str = "demo"
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    async with asyncssh.connect(
        "127.0.0.1",
        port_of(paths),
        username=user,
        client_keys=[key or str(paths.key)],
        known_hosts=str(paths.known_hosts),
        agent_path=None,
        config=None,
    ) as connection:
        yield connection


async def test_a_command_has_streams_status_and_a_home_of_its_own(host: DemoPaths) -> None:
    async with connected(host) as connection:
        done = await connection.run("cat; echo oops >&2; pwd; exit 7", input="hello\n")
    assert (done.exit_status, done.stderr) == (7, "oops\n")
    said, home = str(done.stdout).splitlines()
    assert said == "hello"
    assert Path(home) != Path.home() and "hcs-demo-home-" in home


async def test_a_command_that_a_signal_ends_says_which(host: DemoPaths) -> None:
    async with connected(host) as connection:
        done = await connection.run("kill -9 $$")
    assert done.exit_signal is not None and done.exit_signal[0] == "KILL"


async def test_signals_reach_the_group(host: DemoPaths) -> None:
    async with connected(host) as connection, connection.create_process("echo up; sleep 300; true") as process:
        await process.stdout.readline()
        process.terminate()
        done = await process.wait(timeout=SECONDS)
    assert done.exit_signal is not None and done.exit_signal[0] == "TERM"


async def test_much_output_arrives_whole(host: DemoPaths) -> None:
    async with connected(host) as connection:
        done = await connection.run("head -c 5000000 /dev/zero", encoding=None)
    assert done.stdout == bytes(5_000_000)


async def test_a_channel_that_closes_takes_its_command_along(host: DemoPaths) -> None:
    async with connected(host) as connection:
        process = await connection.create_process("echo $$; sleep 300; true")
        pid = int(await process.stdout.readline())
    await eventually(lambda: not is_running(pid))


async def test_another_key_is_refused(host: DemoPaths) -> None:
    with pytest.raises(asyncssh.PermissionDenied):
        async with connected(host, asyncssh.generate_private_key("ssh-ed25519")):
            pass


async def test_who_logs_in_as_none_of_its_hosts_is_told(host: DemoPaths) -> None:
    async with connected(host, user="root") as connection:
        done = await connection.run("id")
    assert (done.exit_status, done.stdout) == (1, "") and "no host of that name" in str(done.stderr)


@pytest.mark.skipif(not shutil.which("ssh"), reason="no OpenSSH client here")
def test_openssh_logs_in_with_the_served_key(host: DemoPaths) -> None:
    command = ["ssh", "-F", "/dev/null", "-p", str(port_of(host)), "-i", str(host.key), "-o", "BatchMode=yes"]
    command += ["-o", f"UserKnownHostsFile={host.known_hosts}", "-o", "IdentitiesOnly=yes"]
    done = subprocess.run([*command, "demo@127.0.0.1", "echo $USER"], capture_output=True, timeout=SECONDS)
    assert (done.returncode, done.stdout) == (0, b"demo\n"), done.stderr


def test_files_are_for_the_user_alone_and_go_with_the_host(tmp_path: Path) -> None:
    with DemoHost() as demo:
        demo.start(tmp_path / "demo", load=False)
        assert stat.S_IMODE((tmp_path / "demo").stat().st_mode) == 0o700
        assert {stat.S_IMODE((tmp_path / "demo" / name).stat().st_mode) for name in FILES} == {0o600}
    assert not any((tmp_path / "demo" / name).exists() for name in FILES)


def test_a_folder_may_be_served_again_but_foreign_files_are_kept(tmp_path: Path) -> None:
    for _ in range(2):
        with DemoHost() as demo:
            demo.start(tmp_path, load=False)
    other = tmp_path / "other"
    other.mkdir()
    (other / "key").write_text("mine")
    with pytest.raises(FileExistsError, match="was not written by a demo"):
        prepare(other)
    assert (other / "key").read_text() == "mine"


async def test_all_that_was_started_ends_with_the_host(tmp_path: Path) -> None:
    with DemoHost() as demo:
        paths = demo.start(tmp_path, load=False)
        async with connected(paths) as connection:
            done = await connection.run("setsid sleep 300 >/dev/null 2>&1 </dev/null & echo $!; echo $HOME")
            pid, home = str(done.stdout).split()
            assert is_running(int(pid))
    assert not is_running(int(pid))
    assert not Path(home).parent.exists()


def test_the_end_is_quiet_with_commands_still_running(tmp_path: Path) -> None:
    """Nothing of asyncio's about closed loops reaches the terminal, whatever the moment of the end."""
    code = (
        "import asyncio, sys; from pathlib import Path; from tests.demo.test_host import connected\n"
        "from tui.demo.host import DemoHost\n"
        "async def use(paths):\n"
        "    async with connected(paths) as connection:\n"
        "        process = await connection.create_process('trap \"\" HUP; echo up; sleep 300; true')\n"
        "        await process.stdout.readline()\n"
        "with DemoHost() as host:\n"
        "    asyncio.run(use(host.start(Path(sys.argv[1]), load=False)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_host_that_nobody_waits_for_any_more_ends_quietly(tmp_path: Path) -> None:
    """Ctrl-C while it comes up: who started it is gone before it says where it is."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "tui.demo.embedded", str(tmp_path), "1", "1", "0"]
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(command, input=b"", stdout=closed, stderr=subprocess.PIPE, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_host_ends_when_the_one_who_started_it_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tui.demo.host import DemoHost; h = DemoHost();"
        "h.start(Path(sys.argv[1]), load=False); print(h._process.pid, flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdin and owner.stdout
    pid = int(owner.stdout.readline())
    owner.kill()
    owner.wait(SECONDS)
    owner.stdin.close()
    owner.stdout.close()
    until(lambda: not is_running(pid))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_stays_until_interrupted(tmp_path: Path, number: int) -> None:
    code = "import sys; from pathlib import Path; from tui.demo.host import serve; serve(Path(sys.argv[1]), 2)"
    serving = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stderr=subprocess.PIPE)
    assert serving.stderr
    assert b"hcs-tui up" in serving.stderr.readline()
    assert (tmp_path / "demo.yaml").is_file()
    serving.send_signal(number)
    assert serving.wait(SECONDS) == 0
    serving.stderr.close()
    assert not (tmp_path / "demo.yaml").exists()


def test_more_servers_take_the_scenarios_in_turn(tmp_path: Path) -> None:
    from tui.profile.load import load

    with DemoHost() as demo:
        profile = load(demo.start(tmp_path, servers=6, load=False).profile)
    scenarios = [server.command[server.command.index("--scenario") + 1] for server in profile.servers if server.command]
    assert scenarios == ["hicache", "mtp", "plain", "host-memory", "hicache", "mtp"]
    assert len({server.port for server in profile.servers}) == 6
    assert Path(str(profile.hosts[0].identity)).is_absolute()
