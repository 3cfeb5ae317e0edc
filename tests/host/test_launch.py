"""Launch, log, exit: over a pipe and over sshd."""

# ruff: noqa: ASYNC240  # small files and processes of the test, polled where nothing tells
from __future__ import annotations

import json
import os
import stat
import sys
import time
from dataclasses import replace
from pathlib import Path

from tests.host.links import Ear, follow, python
from tests.ports import free_port
from tui.host.api import RunWatch
from tui.host.link import HostLink

NASTY = ["", "a b", "new\nline", "it's", '"quoted"', "$HOME `id` \\ !x", "ünïcödé ☃", "*", "-x", "a\tb"]


async def test_log_and_status_of_a_run(link: HostLink) -> None:
    ear = Ear(link)
    run = await follow(link, python("print('one'); print('two'); raise SystemExit(7)"))
    ended = await ear.ended(run.run)
    assert ended.exit is not None
    assert (ended.exit.status, ended.exit.signal, ended.exit.left) == (7, None, ())
    assert ended.log_size == len(b"one\ntwo\n")
    assert await ear.log_of_size(run.run, ended.log_size) == b"one\ntwo\n"
    [record] = await link.runs("p", "s")
    assert (record.run, record.alive, record.exit, record.who) == (run.run, False, ended.exit, "alice@desk")


async def test_a_signal_is_named(link: HostLink) -> None:
    ear = Ear(link)
    run = await follow(link, python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"))
    ended = await ear.ended(run.run)
    assert ended.exit and (ended.exit.status, ended.exit.signal, ended.exit.oom_killed) == (None, "SIGSEGV", False)


async def test_arguments_and_environment_arrive_byte_for_byte(link: HostLink) -> None:
    ear = Ear(link)
    code = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['N']])); print('end')"
    env = {"N": "a 'b' \"c\"\nd $e \\ !f ☃"}
    run = await follow(link, python(code, *NASTY, env=env))
    text = await ear.log_until(run.run, b"end\n")
    assert json.loads(text.splitlines()[0]) == [NASTY, env["N"]]


async def test_any_bytes_in_a_log(link: HostLink, tmp_path: Path) -> None:
    data = os.urandom(2_000_000) + b"\r\n\xff\x00\x1b[31m"
    (tmp_path / "data").write_bytes(data)
    ear = Ear(link)
    code = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())"
    run = await follow(link, python(code, str(tmp_path / "data")))
    assert await ear.log_of_size(run.run, len(data)) == data


async def test_a_log_is_followed_from_a_byte_on(local: HostLink) -> None:
    ear = Ear(local)
    run = await follow(local, python("print('x' * 100_000, end='')"))
    ended = await ear.ended(run.run)
    assert len(await ear.log_of_size(run.run, ended.log_size or 0)) == 100_000
    await local.unfollow(run.run)
    ear.logs[run.run] = bytearray(99_990)
    await local.follow(run.run, 99_990)
    assert (await ear.log_of_size(run.run, 100_000))[99_990:] == b"x" * 10
    assert await local.read(run.run, 99_995, 100) == b"x" * 5


async def test_a_growing_log_is_whole_with_and_without_inotify(local: HostLink, tmp_path: Path) -> None:
    from tests.host.links import HostOf, opened

    code = "import time\nfor i in range(300): print('line', i); time.sleep(0.002)"
    expected = b"".join(b"line %d\n" % i for i in range(300))
    ear = Ear(local)
    run = await follow(local, python(code))
    async with opened(HostOf(state_dir=str(tmp_path / "state")), inotify=False) as polling:
        other = Ear(polling)
        await polling.follow(run.run)
        assert await ear.log_of_size(run.run, len(expected)) == expected
        assert await other.log_of_size(run.run, len(expected)) == expected


async def test_run_directory_is_private_and_holds_no_secret(link: HostLink, tmp_path: Path) -> None:
    secret = "s3cret-value"
    spec = python(
        "pass", "--api-key", "k3y", "--hf-token=" + secret, "--flag=" + secret,
        env={"HF_TOKEN": secret, "PLAIN": "x"}, secrets=(secret,), setup=f"export T={secret}",
    )  # fmt: skip
    run = await link.launch(spec)
    folder = Path(run.log).parent
    assert run.argv[3:] == ("--api-key", "***", "--hf-token=***", "--flag=***")
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert secret.encode() not in path.read_bytes()
        assert b"k3y" not in path.read_bytes()
    for parent in (folder, *folder.parents[:4]):
        assert stat.S_IMODE(parent.stat().st_mode) == 0o700, parent
    asked = json.loads((folder / "run.json").read_text())
    assert asked["format"] == 1
    assert asked["env"] == ["HF_TOKEN", "PLAIN"]


async def test_the_link_to_the_log_moves_and_a_file_there_is_kept(link: HostLink, tmp_path: Path) -> None:
    ear = Ear(link)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/server.log").write_text("precious")
    for number in range(2):
        spec = python(f"print('run {number}')", cwd=str(tmp_path), log_link="logs/server.log")
        run = await follow(link, spec)
        await ear.ended(run.run)
        assert (tmp_path / "logs/server.log").read_text() == f"run {number}\n"
        assert Path(run.log).read_text() == f"run {number}\n"
    kept = [path for path in (tmp_path / "logs").iterdir() if not path.is_symlink()]
    assert [path.read_text() for path in kept] == ["precious"]


async def test_setup_lines_come_before_and_may_bring_the_interpreter(link: HostLink, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/my python").symlink_to(sys.executable)
    ear = Ear(link)
    spec = python(
        "import os; print(os.environ['FROM_SETUP'], os.getpid())",
        setup=f'PATH="{tmp_path}/bin:$PATH"\nexport FROM_SETUP=yes',
    )
    run = await follow(link, replace(spec, argv=("my python", *spec.argv[1:])))
    assert await ear.log_until(run.run, b"\n") == f"yes {run.pid}\n".encode()


async def test_the_server_does_not_inherit_our_habits(local: HostLink) -> None:
    """Signals at their defaults, stdin empty, its own session, nothing open but its log."""
    code = (
        "import os, signal, sys, json\n"
        "ignored = [s.name for s in signal.Signals if signal.getsignal(s) is signal.SIG_IGN]\n"
        "fds = sorted(int(f) for f in os.listdir('/proc/self/fd'))\n"
        "print(json.dumps([ignored, sys.stdin.read(), os.getsid(0) == os.getpid(), fds]))"
    )
    ear = Ear(local)
    run = await follow(local, python(code))
    ignored, stdin, leads, fds = json.loads(await ear.log_until(run.run, b"]\n"))
    assert (set(ignored) - {"SIGPIPE", "SIGXFSZ", "SIGXFZ"}, stdin, leads) == (set(), "", True)
    assert len(fds) == 4  # 0, 1, 2, and the listing itself


async def test_a_watch_sees_processes_memory_and_the_socket(link: HostLink) -> None:
    port = free_port()
    code = (
        "import socket, sys, time\n"
        "held = bytearray(b'x' * 50_000_000)\n"
        "s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
        "s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(); print('ready'); time.sleep(60)"
    )
    ear = Ear(link)
    run = await follow(link, python(code, str(port), port=port))
    await ear.until(lambda: any(seen.listening == "own" for seen in ear.of(RunWatch)))
    seen = ear.of(RunWatch)[-1]
    assert seen.alive and seen.pids == (run.pid,)
    assert seen.pinned is not None and 50_000_000 < seen.pinned < 200_000_000
    assert seen.total and seen.available and seen.available < seen.total
    assert abs(seen.at - time.time()) < 60
    report = await link.kill(run.run, 5)
    assert report.left == () and report.port_free is True


async def test_a_foreign_listener_is_told_apart(local: HostLink) -> None:
    import socket

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        ear = Ear(local)
        run = await follow(local, python("import time; time.sleep(60)", port=port))
        sock.listen()
        await ear.until(lambda: any(seen.listening == "foreign" for seen in ear.of(RunWatch)))
        seen = next(seen for seen in ear.of(RunWatch) if seen.listening == "foreign")
        assert seen.listener is not None and str(os.getpid()) in seen.listener
        assert seen.run == run.run


async def test_the_version_of_sglang_beside_the_interpreter_is_known(local: HostLink, tmp_path: Path) -> None:
    program = tmp_path / "env/bin/python"
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    packages = tmp_path / "env/lib/python3.12/site-packages"
    packages.mkdir(parents=True)
    for name in ("sglang_router-0.3.1.dist-info", "sglang-0.5.12.post1.dist-info", "sglang"):
        (packages / name).mkdir()
    (tmp_path / "env/pyvenv.cfg").write_text("home = /usr/bin\n")
    spec = replace(python("pass"), argv=(str(program), "-c", "pass"))
    run = await local.launch(spec)
    assert run.sglang == "0.5.12.post1"
    assert (await local.runs("p", spec.server))[0].sglang == "0.5.12.post1"
    (packages / "sglang-0.5.12.post1.dist-info").rename(packages / "other-1.0.dist-info")
    assert (await local.launch(replace(spec, server="other"))).sglang is None
